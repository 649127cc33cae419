"""Events as JSON bytes. Private."""

from __future__ import annotations

import json
from functools import lru_cache

from agent_brain.states.events import AgentEvent, Position, TextDelta
from agent_brain.tools.text import clean, to_compact_json

_encode_ascii = json.JSONEncoder(ensure_ascii=False).encode


def event_json(event: AgentEvent) -> bytes:
    """Return what :meth:`Event.to_json` returns, as UTF-8; fast for text."""
    if type(event) is not TextDelta:
        return event.to_json().encode()
    start, end = _around_text(event.at, event.response_id, thought=event.thought)
    text = event.text
    quoted = _encode_ascii(text) if text.isascii() else to_compact_json(clean(text))
    return f"{start}{quoted}{end}".encode()


@lru_cache(maxsize=1024)
def _around_text(at: Position, response_id: str | None, *, thought: bool) -> tuple[str, str]:
    """Return the JSON of a text event before and after its text."""
    marker = "\ue000"  # private use: in no name of a state
    whole = TextDelta(marker, thought, response_id, at=at).to_json()
    start, _, end = whole.rpartition(f'"{marker}"')
    return start, end
