"""A summary without a model: who said what, in a line each."""

from __future__ import annotations

from collections.abc import Sequence

from agent_brain.memories.message import Message, Role
from agent_brain.tools.text import shorten

LINE_TOKENS = 40
OUTLINE_TOKENS = 1000


async def outline(previous_summary: str, messages: Sequence[Message]) -> str:
    """``previous_summary`` with a line for each message, shortened in the middle where it is long.

    The summariser of :class:`SummaryMemory` if it is given none; a model writes better ones.
    """
    lines = [previous_summary] if previous_summary else []
    for message in messages:
        text = " ".join(message.content.split())
        calls = ", ".join(call.name for call in message.tool_calls)
        if calls:
            text = f"{text} (called {calls})".strip()
        if text:
            lines.append(f"{_speaker(message)}: {shorten(text, LINE_TOKENS)}")
    return shorten("\n".join(lines), OUTLINE_TOKENS)


def _speaker(message: Message) -> str:
    if message.role is Role.TOOL:
        return f"{message.name or 'tool'}{' failed' if message.is_error else ''}"
    return message.name or message.role.value
