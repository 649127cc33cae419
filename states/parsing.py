"""Reading a thought and at most one action out of a model's text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_brain.tools.action import Action

_NAME_KEYS = ("name", "action", "tool", "function")
_ARGS_KEYS = ("args", "arguments", "action_input", "input", "parameters")
_FENCE = re.compile(r"```[a-zA-Z]*\s*|```")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a text says: the thought, the action if it asks for one, what was wrong if it is unclear."""

    thought: str
    action: Action | None = None
    problem: str | None = None


def parse_reasoning(text: str) -> Parsed:
    """Split ``text`` into a thought and at most one action.

    An action is a JSON object with a tool's name (``name``, ``action`` or ``tool``) and its
    arguments (``args``, ``arguments`` or ``input``). Small faults of the JSON are repaired; other
    JSON objects in the text are part of the thought.
    """
    found = [(start, value) for start, value in _objects(text) if _name_of(value) is not None]
    if not found:
        return Parsed(text.strip())
    start, value = found[0]
    thought = _FENCE.sub("", text[:start]).strip()
    if len(found) > 1:
        return Parsed(thought, problem=f"there are {len(found)} JSON actions; give exactly one")
    args = _args_of(value)
    if args is None:
        return Parsed(thought, problem='"args" is not a JSON object of arguments by name')
    return Parsed(thought, Action(name=str(_name_of(value)), args=args))


def _objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every outermost JSON object in ``text``, repaired if need be, with where it starts."""
    position = text.find("{")
    decoder = json.JSONDecoder()
    while position >= 0:
        end = _closing(text, position)
        try:
            value, end = decoder.raw_decode(text, position)
        except ValueError:
            value = _repaired(text[position:end])
        if isinstance(value, dict):
            yield position, value
        position = text.find("{", end)


def _repaired(text: str) -> Any:
    from json_repair import repair_json

    return repair_json(text, return_objects=True)


def _closing(text: str, start: int) -> int:
    """Just past the brace that closes the one at ``start``; the end of the text if none does."""
    depth, quoted, escaped = 0, False, False
    for index in range(start, len(text)):
        character = text[index]
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = quoted
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return index + 1
    return len(text)


def _name_of(value: dict[str, Any]) -> str | None:
    """The tool that an object calls; an object without arguments must have no other keys."""
    if not any(key in value for key in _ARGS_KEYS) and len(value) > 1:
        return None
    names = [value[key] for key in _NAME_KEYS if isinstance(value.get(key), str) and value[key]]
    return names[0] if names else None


def _args_of(value: dict[str, Any]) -> dict[str, Any] | None:
    args = next((value[key] for key in _ARGS_KEYS if key in value), {})
    if isinstance(args, str):
        args = _repaired(args) if args.strip() else {}
    if args is None:
        return {}
    return args if isinstance(args, dict) else None
