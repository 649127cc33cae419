"""Tool results that are too long for a model: stored whole, shown cut, and read in parts."""

from __future__ import annotations

from agent_brain.memories.control import READ_RESULT
from agent_brain.memories.message import Message, Role
from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

FULL_RESULT = "full_result"  # the key of the whole text in a message's metadata
PART_CHARACTERS = 8_000  # read at a time unless the model asks for less


def store_full_text(message: Message, full: str) -> Message:
    """Return ``message``, a shortened result, with the whole text and a note on how to read it."""
    note = (
        f"\n[Shortened from {len(full)} characters. To read the rest: "
        f'{READ_RESULT}(id="{message.tool_call_id}", offset=…)]'
    )
    metadata = {**message.metadata, FULL_RESULT: full}
    return message.model_copy(update={"content": message.content + note, "metadata": metadata})


@tool(name=READ_RESULT, idempotent=True)
async def read_result(
    context: ToolContext,
    id: str,  # noqa: A002 - what models call it
    offset: int = 0,
    length: int = PART_CHARACTERS,
) -> str:
    """Read a part of an earlier tool result that was shortened.

    Args:
        context: The call.
        id: The id that the note in the shortened result names.
        offset: The first character to read, from 0.
        length: How many characters to read, at most 8000.
    """
    full = await _find(context, id)
    if not 0 <= offset < len(full) or length < 1:
        raise ToolError(f"offset must be 0 to {len(full) - 1} and length at least 1")
    end = min(offset + min(length, PART_CHARACTERS), len(full))
    more = f"Read on with offset={end}." if end < len(full) else "This is the end."
    return f"{full[offset:end]}\n[Characters {offset} to {end} of {len(full)}. {more}]"


async def _find(context: ToolContext, call_id: str) -> str:
    memory = context.memory
    kept: list[str] = []
    for message in reversed(await memory.dump()) if memory is not None else ():
        full = message.metadata.get(FULL_RESULT)
        if message.role is Role.TOOL and isinstance(full, str) and message.tool_call_id:
            if message.tool_call_id == call_id:
                return full
            kept.append(message.tool_call_id)
    there = f"Shortened results: {', '.join(kept[:5])}." if kept else "None is kept any more."
    raise ToolError(f"There is no shortened result of a call {call_id!r}. {there}")
