"""Parse a model's text into a thought and at most one action.

Only what ends the response is a call, and only in a place where nothing is quoted: a call in a
sentence, in a list, in a quotation or between other text is text about a call, such as one that a
web page asks for. Small models rarely write clean JSON, so the form is read with patience.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_brain.common.json_values import json_value_at, json_values
from agent_brain.tools.action import Action

_NAME_KEYS = ("name", "action", "tool", "function")
_ARGS_KEYS = ("args", "arguments", "action_input", "input", "parameters")
_WRAPPERS = ("function", "action", "tool_call")
_ALL_FENCED = re.compile(r"```\w*[ \t]*\n(?P<code>(?:(?!```).)*)\n```", re.DOTALL)
_FENCED = re.compile(
    r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)|\Z)", re.MULTILINE | re.DOTALL
)
_CALL = (
    r"(?:(?:\**action[ \t*]*:[ \t*]*|<tool_call>\s*)?(?=\{)"
    r"|\**action[ \t*]*:[ \t*`\"']*(?P<action>[\w.-]+)[ \t*`\"']*(?:\r?\n[ \t]*){1,3}"
    r"\**action[ _]input[ \t*]*:[ \t*]*"
    r"|<function=(?P<function>[\w.-]+)>[ \t]*)"
)
_NEXT = re.compile(rf"(?:(?:,|and|then)\s+)?{_CALL}", re.IGNORECASE)
_FIRST = re.compile(  # on a line of its own, behind a sentence or a thought
    rf"(?:^|(?<=[.!?])[ \t]+|(?<=</think>)\s*){_CALL}", re.IGNORECASE | re.MULTILINE
)
_REST = re.compile(r"\s*(?:</tool_call>|</function>)?\s*", re.IGNORECASE)
_OPEN_QUOTE = re.compile(r"""(?:<\w[^<>]{0,100}>|[\s:(]["'“‘«])\s*\Z""")
_LISTED = re.compile(r"[ \t]*(?:[>|]|(?:[*+-]|\d+[.)]|[A-Za-z][.)])(?:\s|\Z))")
_NO_OBJECT = re.compile(r"(?:(?!</function>)[^\n])*")
_NO_ARGS = ("none", "null", "n/a")


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


_Call: TypeAlias = tuple[str, dict[str, Any] | None]
"""The name and the arguments; None if these are unclear."""


def parse_reasoning(text: str) -> Parsed:
    """Split ``text`` into a thought and at most one action.

    An action is a JSON object with a tool's name (``name``, ``action`` or ``tool``) and its
    arguments (``args``, ``arguments`` or ``input``); or ``Action: name`` and, on the next line,
    ``Action Input: {…}``; or ``<function=name>{…}</function>``. It ends the text, and begins a line
    or follows a sentence; or the whole text is one code fence with nothing else in it. Small errors
    in the JSON are repaired. Anything else is part of the thought.
    """
    text = text.strip()
    whole = _ALL_FENCED.fullmatch(text)
    if whole:
        text = whole["code"].strip()
    try:
        ending = _objects_at_the_end(text)
    except ValueError as error:
        return Parsed(text, problem=str(error))
    calls = [(start, call) for start, call in ending if call is not None]
    if not calls or ending[-1][1] is None:
        return Parsed(text)
    start, (name, args) = calls[0]
    thought = text[:start].strip()
    if len(calls) > 1:
        return Parsed(thought, problem=f"there are {len(calls)} JSON actions; give exactly one")
    if args is None:
        return Parsed(thought, problem='"args" is not a JSON object of arguments by name')
    try:
        return Parsed(thought, Action(name=name, args=args))
    except (ValueError, RecursionError):
        return Parsed(thought, problem='"args" is nested too deeply')


def _objects_at_the_end(text: str) -> list[tuple[int, _Call | None]]:
    """Return the JSON objects that end ``text``: where they begin, and their calls.

    Raises:
        ValueError: The last one is not complete.
    """
    unfenced = _FENCED.sub(lambda fence: "`" * len(fence[0]), text)
    index = 0
    while begin := _FIRST.search(unfenced, index):
        quoted = _is_quoted(text, begin.start())
        found = []
        following: re.Match[str] | None = begin
        while following:
            call, end = _call_at(text, following)
            found.append((following.start(), call))
            index = _end_of(_REST, text, end)
            if index == len(text):
                return [] if quoted else found
            following = _NEXT.match(unfenced, index)
    return []


def _is_quoted(text: str, start: int) -> bool:
    """Return whether what begins at ``start`` is in a list or a quotation."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    if _LISTED.match(line) or line.count('"') % 2:
        return True
    return _OPEN_QUOTE.search(text[max(0, start - 200) : start]) is not None


def _call_at(text: str, begin: re.Match[str]) -> tuple[_Call | None, int]:
    """Return the call that begins there, if the object is one, and the index after it.

    Raises:
        ValueError: Its JSON is not complete.
    """
    name = begin["action"] or begin["function"]
    if text.startswith("{", begin.end()):
        value, end = json_value_at(text, begin.end())
        value = value if isinstance(value, dict) else None
        if name is None:
            return (None if value is None else _call_in(value)), end
        return (name, value), end
    end = _end_of(_NO_OBJECT, text, begin.end())
    empty = text[begin.end() : end].strip().casefold() in _NO_ARGS
    closed = end == begin.end() and text.startswith("</function>", end)
    return (name, {} if empty or closed else None), end


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the index after what ``pattern``, which matches anything, matches at ``start``."""
    found = pattern.match(text, start)
    return start if found is None else found.end()


def _call_in(value: dict[str, Any]) -> _Call | None:
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
        text = args.strip()
        args = next(json_values(text), None) if text.startswith("{") else text or {}
    if args is None:
        return {}
    return args if isinstance(args, dict) else None
