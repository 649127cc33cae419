"""Continue a response that the provider has paused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from agent_brain.memories.message import Message
from agent_brain.states.aclosing import closing
from agent_brain.states.models.llm import Finish, Piece, Thought

Ask: TypeAlias = Callable[[Sequence[Message]], AsyncIterator[Piece]]
MOST_PAUSES = 10


async def through_pauses(ask: Ask, messages: Sequence[Message]) -> AsyncIterator[Piece]:
    """Yield the pieces of a response; each time it is paused, send it back and continue it.

    Claude pauses a long turn in which it uses the tools of its servers (``pause_turn``); see
    https://docs.anthropic.com/en/api/handling-stop-reasons.

    Args:
        ask: Makes a request with messages.
        messages: Those of the first one.
    """
    said: list[str] = []
    whole = Finish()
    sent = messages
    for pauses in range(MOST_PAUSES + 1):
        finish: Finish | None = None
        async with closing(ask(sent)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finish):
                    finish = piece
                    continue
                if isinstance(piece, str) and not isinstance(piece, Thought):
                    said.append(piece)
                yield piece
        if finish is None:
            return
        whole = Finish(
            finish.reason,
            _joined(whole.provider_data, finish.provider_data),
            _joined(whole.metadata, finish.metadata),
        )
        if finish.reason != "pause":
            yield whole
            return
        if pauses == MOST_PAUSES:
            yield replace(whole, reason="length")
            return
        metadata = {"provider_data": dict(whole.provider_data)}
        sent = [*messages, Message.assistant("".join(said), metadata=metadata)]


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, with their lists one behind the other."""
    joined = dict(first)
    for name, value in second.items():
        before = joined.get(name)
        if isinstance(before, list) and isinstance(value, list):
            joined[name] = [*before, *value]
        elif isinstance(before, Mapping) and isinstance(value, Mapping):
            joined[name] = _joined(before, value)
        else:
            joined[name] = value
    return joined
