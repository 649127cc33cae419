"""Messages, calls and events as what is compared, and how they differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_brain.common.text import to_compact_json
from agent_brain.memories.message import Message, Role
from agent_brain.states.events import Event
from agent_brain.tools.action import Action

Shape = tuple[object, ...]


def call_text(action: Action) -> str:
    """Return a call in the form ``add(a=1, b=2)``."""
    if action.unparsed is not None:
        return f"{action.name}(? {action.unparsed!r})"
    return f"{action.name}({args_text(action.args)})"


def args_text(args: object) -> str:
    """Return arguments in the form ``a=1, city="Rome"``."""
    if not isinstance(args, dict):
        return repr(args)
    return ", ".join(f"{name}={_value(value)}" for name, value in args.items())


def _value(value: object) -> str:
    try:
        return to_compact_json(value)
    except (TypeError, ValueError):  # validated arguments may be any object
        return repr(value)


def message_lines(message: Message) -> list[str]:
    """Return a message as lines, one for each line of its text and for each call."""
    who = message.role.value
    if message.name is not None:
        who += f" {message.name}"
    if message.is_error:
        who += " (error)"
    said = message.content.splitlines() or ([] if message.tool_calls else ["(nothing)"])
    calls = [f"-> {call_text(action)}" for action in message.tool_calls]
    first, *rest = [*said, *calls]
    return [f"{who}: {first}", *(f"    {line}" for line in rest)]


def message_shape(message: Message) -> Shape:
    """Return what messages are compared by: everything but IDs and times."""
    calls = tuple(action_shape(action) for action in message.tool_calls)
    name = message.name if message.role is not Role.ASSISTANT else None
    attached = tuple(attachment.model_dump_json() for attachment in message.attachments)
    return (message.role, message.content, name, calls, message.is_error, attached)


def action_shape(action: Action) -> Shape:
    """Return what calls are compared by: everything but the ID."""
    return (action.name, to_compact_json(sorted(action.args.items())), action.unparsed)


def explain_messages(
    title: str, expected: Iterable[Message], actual: Iterable[Message]
) -> str | None:
    """Return how two lists of messages differ, or None if they are equal."""
    wanted, found = list(expected), list(actual)
    if [message_shape(m) for m in wanted] == [message_shape(m) for m in found]:
        return None
    shown = (_lines_of(wanted), _lines_of(found))
    if shown[0] == shown[1]:  # the difference is not visible in the lines, such as trailing spaces
        shown = ([repr(message_shape(m)) for m in wanted], [repr(message_shape(m)) for m in found])
    return explain_lines(title, *shown)


def explain_actions(title: str, expected: Iterable[Action], actual: Iterable[Action]) -> str | None:
    """Return how two lists of calls differ, or None if they are equal."""
    wanted, found = list(expected), list(actual)
    if [action_shape(a) for a in wanted] == [action_shape(a) for a in found]:
        return None
    return explain_lines(title, [call_text(a) for a in wanted], [call_text(a) for a in found])


def explain_lines(title: str, expected: Sequence[str], actual: Sequence[str]) -> str:
    """Return a diff: ``-`` marks what was expected and is missing, ``+`` what was not expected."""
    lines = [line for line in difflib.ndiff(expected, actual) if not line.startswith("?")]
    body = "\n".join(f"  {line}".rstrip() for line in lines) or "  (nothing on either side)"
    return f"{title} (- expected, + found):\n{body}"


def _lines_of(messages: Sequence[Message]) -> list[str]:
    return [line for message in messages for line in message_lines(message)]


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
