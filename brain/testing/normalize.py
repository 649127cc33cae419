"""Events without what differs from run to run, so that two runs can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_brain.states.events import Event


def normalize_events(events: Iterable[Event | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events as JSON values in which ids are numbered as they appear, and times are ``"time"``.

    Two runs that did the same give equal lists. Ids of runs, model responses, actions and messages
    become ``"run-1"``, ``"response-2"``, ``"action-2"``, ``"message-3"``, the same id the same
    number, so that it still shows which result belongs to which call. Everything else stays:
    arguments and texts that contain ids of their own are not looked into.

    Args:
        events: Events, or what their ``to_dict`` gave.
    """
    ids = _Ids()
    return [ids.event(e.to_dict() if isinstance(e, Event) else dict(e)) for e in events]


class _Ids:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def _number(self, kind: str, value: Any) -> Any:
        if not isinstance(value, str) or not value:
            return value
        count = sum(1 for known, _ in self._known if known == kind)
        return self._known.setdefault((kind, value), f"{kind}-{count + 1}")

    def event(self, data: dict[str, Any]) -> dict[str, Any]:
        plain = dict(data)
        plain["run_id"] = self._number("run", plain.get("run_id"))
        if "response_id" in plain:
            plain["response_id"] = self._number("response", plain["response_id"])
        for name, value in data.items():
            if name == "action" and isinstance(value, Mapping):
                plain[name] = self._action(value)
            elif name == "actions" and isinstance(value, list):
                plain[name] = [self._action(a) if isinstance(a, Mapping) else a for a in value]
            elif name in ("goal", "result") and isinstance(value, Mapping) and "role" in value:
                plain[name] = self._message(value)
        return plain

    def _action(self, action: Mapping[str, Any]) -> dict[str, Any]:
        return {**action, "id": self._number("action", action.get("id"))}

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        plain = {**message, "id": self._number("message", message.get("id"))}
        plain["tool_call_id"] = self._number("action", message.get("tool_call_id"))
        plain["tool_calls"] = [self._action(action) for action in message.get("tool_calls", ())]
        for name in ("created_at", "expires_at"):
            if message.get(name) is not None:
                plain[name] = "time"
        return plain
