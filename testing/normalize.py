"""Events without what differs between runs, for comparing two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_brain.states.events import Event

_TIMES = ("created_at", "expires_at")


def normalize_events(events: Iterable[Event | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return events as JSON values with numbered IDs, and with ``"time"`` for times.

    Two runs that did the same return equal lists. IDs of runs, model responses, actions and
    messages become ``"run-1"``, ``"response-2"``, ``"action-2"``, ``"message-3"``; equal IDs get
    equal numbers, so results still refer to their calls. Arguments and texts are not changed, even
    if they contain IDs.

    Args:
        events: Events, or what their ``to_dict()`` returned.
    """
    ids = _Ids()
    return [ids.event(e.to_dict() if isinstance(e, Event) else dict(e)) for e in events]


class _Ids:
    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def _number(self, data: dict[str, Any], field: str, kind: str) -> None:
        known = self._known.setdefault(kind, {})
        if isinstance(data.get(field), str) and data[field]:
            data[field] = known.setdefault(data[field], f"{kind}-{len(known) + 1}")

    def event(self, event: dict[str, Any]) -> dict[str, Any]:
        self._number(event, "run_id", "run")
        self._number(event, "response_id", "response")
        if event.get("kind") == "action_delta":
            self._number(event, "id", "action")
        for name, value in event.items():
            if name == "action" and isinstance(value, Mapping):
                event[name] = self._action(value)
            elif name == "actions" and isinstance(value, list):
                event[name] = [self._action(a) if isinstance(a, Mapping) else a for a in value]
            elif name in ("goal", "result") and isinstance(value, Mapping) and "role" in value:
                event[name] = self._message(value)
        return event

    def _action(self, action: Mapping[str, Any]) -> dict[str, Any]:
        data = dict(action)
        self._number(data, "id", "action")
        return data

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        data = dict(message)
        self._number(data, "id", "message")
        self._number(data, "tool_call_id", "action")
        data["tool_calls"] = [self._action(action) for action in message.get("tool_calls", ())]
        return data | {name: "time" for name in _TIMES if data.get(name) is not None}
