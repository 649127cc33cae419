"""Events as JSON bytes."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any

from pydantic_core import to_jsonable_python

from agent_brain.common.text import clean, to_compact_json
from agent_brain.states import events

PLAIN = frozenset(  # whose fields hold no values of the program's own classes
    (
        events.ActionDelta,
        events.ActionRequested,
        events.ActionStarted,
        events.MessageReceived,
        events.ResponseStarted,
        events.RunStarted,
        events.StateEntered,
        events.StateExited,
        events.UsageReported,
    )
)
MARK = "\0text\0"  # in no name of a state, and written alike by all encoders
_AS_EVENTS: Any = {"by_alias": False, "inf_nan_mode": "null"}
_encode_ascii = json.JSONEncoder(ensure_ascii=False).encode


def event_json(event: events.AgentEvent) -> bytes:
    """Return what :meth:`Event.to_json` returns, as UTF-8; fast for what most events are."""
    if type(event) in PLAIN:
        try:
            return to_compact_json(to_jsonable_python(_fields(event), **_AS_EVENTS)).encode()
        except UnicodeEncodeError:  # a lone surrogate
            return event.to_json().encode()
    if type(event) is not events.TextDelta:
        return event.to_json().encode()
    start, end = _around_text(event.at, event.response_id, thought=event.thought)
    return f"{start}{quoted(event.text)}{end}".encode()


def quoted(text: str) -> str:
    """Return ``text`` as JSON."""
    return _encode_ascii(text) if text.isascii() else to_compact_json(clean(text))


def around(whole: str) -> tuple[str, str]:
    """Return the JSON before and after the text :data:`MARK`, in whose place others are written."""
    start, _, end = whole.rpartition(quoted(MARK))
    return start, end


def _fields(event: events.AgentEvent) -> dict[str, Any]:
    at = event.at
    place = {"run_id": at.run_id, "step": at.step, "state": at.state, "path": at.path}
    kind: Any = type(event)
    own = {name: getattr(event, name) for name in _names(kind)}
    return {"kind": event.kind, **place, **own}


@cache
def _names(kind: type[events.AgentEvent]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name != "at")


@lru_cache(maxsize=1024)
def _around_text(at: events.Position, response_id: str | None, *, thought: bool) -> tuple[str, str]:
    """Return the JSON of a text event before and after its text."""
    return around(events.TextDelta(MARK, thought, response_id, at=at).to_json())
