"""Results for the tool calls that a run leaves open."""

from __future__ import annotations

from collections.abc import Iterable

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role, is_partial
from agent_brain.memories.wrapper import offers


async def open_results(memory: Memory, why: str) -> list[Message]:
    """Return a result for each call of the last assistant message that has none yet.

    Args:
        memory: The memory of the run.
        why: Why the calls do not run, as a clause, such as "the run was cancelled".
    """
    answered: set[str | None] = set()
    for message in reversed(await memory.dump()):
        if message.role is Role.TOOL:
            answered.add(message.tool_call_id)
        elif message.role is Role.ASSISTANT:
            open_calls = [call for call in message.tool_calls if call.id not in answered]
            return [memory.control.result_of(call, why) for call in open_calls]
    return []


async def undo_half_a_step(memory: Memory) -> None:
    """Return to the last step of a run that was interrupted, before it continues.

    Calls that the step itself had asked for get their results, as it asks again.
    """
    await memory.rollback()
    await memory.drop_branches()
    if not memory.control.next_actions:
        asked = memory.control.human_requests  # what was decided for branches and states stays
        await close_open_calls(memory, "the run was interrupted")
        memory.control.human_requests = asked


async def take_partial_answer(memory: Memory, turn: Iterable[Message]) -> list[Message]:
    """Remove the partial answer in the turn of a run that continues, and return it.

    It stays in a memory that cannot delete messages.
    """
    partial = [message for message in turn if is_partial(message)]
    delete = getattr(memory, "delete", None)
    if not partial or delete is None or not offers(memory, "delete"):
        return []
    await delete([message.id for message in partial])
    return partial


async def close_open_calls(memory: Memory, why: str) -> None:
    """Record a result for each open call; see :func:`open_results`."""
    results = await open_results(memory, why)
    if results:
        await memory.update(results)
    memory.control.close_calls()
