"""Parse a model's text into a thought and at most one action.

Small models rarely write clean JSON: they add code fences, single quotes and trailing commas, stop
in the middle, or use the formats of other APIs. Whatever is unambiguous is accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_brain.tools.action import Action

_NAME_KEYS = ("name", "action", "tool", "function")
_ARGS_KEYS = ("args", "arguments", "action_input", "input", "parameters")
_WRAPPERS = ("function", "action", "tool_call")
_FENCE = re.compile(r"```[a-zA-Z]*\s*|```")
_MAX_OPENERS = 500
_NAMED = re.compile(  # "Action: name / Action Input: {…}", and "<function=name>{…}</function>"
    r"^[ \t*]*action[ \t*]*:[ \t*`\"']*(?P<action>[\w.-]+)[ \t*`\"']*(?:\r?\n[ \t]*){1,3}"
    r"\**action[ _]input[ \t*]*:[ \t*]*(?P<input>.*?)"
    r"(?=^[ \t*]*(?:observation|thought|action)\b|\Z)"
    r"|<function=(?P<function>[\w.-]+)>(?P<body>.*?)(?:</function>|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_LEAD_IN = re.compile(r"(?:\baction\s*:|<tool_call>)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The thought and the action in a text.

    Attributes:
        thought: The text before the action, or all of it.
        action: The call that it asks for, if any.
        problem: Why the call cannot be read, if so; then there is no action.
    """

    thought: str
    action: Action | None = None
    problem: str | None = None


def parse_reasoning(text: str) -> Parsed:
    """Split ``text`` into a thought and at most one action.

    An action is a JSON object with a tool's name (``name``, ``action`` or ``tool``) and its
    arguments (``args``, ``arguments`` or ``input``); or ``Action: name`` and, on the next line,
    ``Action Input: {…}``; or ``<function=name>{…}</function>``. Small errors in the JSON are
    repaired; other JSON objects in the text are part of the thought.
    """
    thinking, tag, rest = text.partition("</think>")
    if tag and "<think" not in thinking:  # opened by the chat template
        text = rest
    found = list(_named_calls(text)) or [
        (start, call)
        for start, value in _values(text, "{")
        if isinstance(value, dict) and (call := _call_in(value)) is not None
    ]
    if not found:
        return Parsed(text.strip())
    start, (name, args) = found[0]
    thought = _LEAD_IN.sub("", _FENCE.sub("", text[:start]).strip()).strip()
    if len(found) > 1:
        return Parsed(thought, problem=f"there are {len(found)} JSON actions; give exactly one")
    if args is None:
        return Parsed(thought, problem='"args" is not a JSON object of arguments by name')
    try:
        return Parsed(thought, Action(name=name, args=args))
    except (ValueError, RecursionError):
        return Parsed(thought, problem='"args" is nested too deeply')


def _named_calls(text: str) -> Iterator[tuple[int, tuple[str, dict[str, Any] | None]]]:
    """Yield the calls whose name is written before their arguments, with their positions."""
    for match in _NAMED.finditer(text):
        name = match["action"] or match["function"]
        written = match["input"] if match["action"] else match["body"]
        written = _FENCE.sub("", written).strip()
        value = next((v for start, v in _values(written, "{") if start == 0), None)
        empty = written.casefold() in ("", "none", "null", "n/a")
        yield match.start(), (name, {} if empty else value if isinstance(value, dict) else None)


def json_values(text: str) -> Iterator[Any]:
    """Return the outermost JSON objects and arrays in ``text`` in order, repaired if necessary."""
    return (value for _, value in _values(text, "{["))


def _values(text: str, openers: str) -> Iterator[tuple[int, Any]]:
    """Yield the values that begin with one of ``openers``, with their positions."""
    decoder = json.JSONDecoder()
    opening = re.compile(f"[{re.escape(openers)}]")
    match = opening.search(text)
    while match:
        start = match.start()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = _closing(text, start)
            value = _repaired(text[start:end])
        if isinstance(value, dict | list):
            yield start, value
        match = opening.search(text, end)


def _repaired(text: str) -> Any:
    from json_repair import repair_json

    if text.count("{") + text.count("[") > _MAX_OPENERS:
        return None  # not meant as JSON, and repairing it may take minutes
    try:
        return repair_json(text, return_objects=True)
    except (ValueError, RecursionError):
        return None


def _closing(text: str, start: int) -> int:
    """Return the index after the bracket that closes the one at ``start``, or the text's end."""
    opener = text[start]
    closer = {"{": "}", "[": "]"}[opener]
    depth, quoted, escaped = 0, False, False
    for index in range(start, len(text)):
        character = text[index]
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = quoted
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in (opener, closer):
            depth += 1 if character == opener else -1
            if depth == 0:
                return index + 1
    return len(text)


def _call_in(value: dict[str, Any]) -> tuple[str, dict[str, Any] | None] | None:
    """Return the name and arguments of the call that an object describes, if it does.

    An object without arguments must have no other keys. The arguments are None if they are unclear.
    """
    for key in _WRAPPERS:  # {"type": "function", "function": {"name": …, "arguments": …}}
        inner = value.get(key)
        if isinstance(inner, dict):
            return _call_in(inner)
    if not any(key in value for key in _ARGS_KEYS) and len(value) > 1:
        return None
    names = [value[key] for key in _NAME_KEYS if isinstance(value.get(key), str) and value[key]]
    return (names[0], _args_of(value)) if names else None


def _args_of(value: dict[str, Any]) -> dict[str, Any] | None:
    args: Any = next((value[key] for key in _ARGS_KEYS if key in value), {})
    if isinstance(args, str):
        args = _repaired(args) if args.strip() else {}
    if args is None:
        return {}
    return args if isinstance(args, dict) else None
