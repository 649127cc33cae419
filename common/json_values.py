"""Find JSON values in a model's text, and repair what models write for JSON.

A repair mends quotes, commas, comments and keys. It never adds what is missing: a bracket or a
quotation mark that was opened and not closed, a value that was left out, or the rest of a list
behind ``...``. Such text was cut off, and what it would have said is not known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_OPENERS = re.compile(r"[{\[]")
_MARKS = re.compile(r"""["'{}\[\]]|\.\.\.|…|:\s*(?=[,}\]])""")
_STRING_END = re.compile(r'(?<!\\)(?:\\\\)*"')
_QUOTE_END = re.compile(r"'(?=\s*(?:[,:}\]]|\Z))")
_CLOSERS = {"{": "}", "[": "]"}
_MAX_OPENERS = 500


INCOMPLETE: Final = "the JSON is not complete: something was opened and not closed, or left out"


def json_values(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects and arrays in ``text`` in order, repaired if necessary.

    Raises:
        ValueError: One of them is not complete.
    """
    opening = _OPENERS.search(text)
    while opening:
        value, end = json_value_at(text, opening.start())
        if isinstance(value, dict | list):
            yield value
        opening = _OPENERS.search(text, end)


def json_value_at(text: str, start: int) -> tuple[Any, int]:
    """Return the object or array that begins at ``start``, and the index after it.

    The value is None if it cannot be repaired.

    Raises:
        ValueError: It is not complete.
    """
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        end = _end_of(text, start)
    return repaired(text[start:end]), end


def repaired(text: str) -> Any:
    """Return the value of complete text that is nearly JSON; None if it cannot be repaired."""
    from json_repair import repair_json

    if text.count("{") + text.count("[") > _MAX_OPENERS:
        return None  # not meant as JSON, and repairing it may take minutes
    try:
        return repair_json(text, return_objects=True)
    except (ValueError, RecursionError):
        return None


def _end_of(text: str, start: int) -> int:
    """Return the index after the bracket that closes the one at ``start``.

    Raises:
        ValueError: Nothing closes it, or something inside it is not complete.
    """
    missing: list[str] = []
    index = start
    while mark := _MARKS.search(text, index):
        found, index = mark[0], mark.end()
        if found in _CLOSERS:
            missing.append(_CLOSERS[found])
        elif found == '"':
            index = _after(_STRING_END, text, index)
        elif found == "'":
            before = text[max(start, mark.start() - 20) : mark.start()].rstrip()
            if before.endswith(("{", "[", ",", ":")):  # else it is an apostrophe
                index = _after(_QUOTE_END, text, index)
        elif found not in "}]" or found != missing.pop():
            break
        elif not missing:
            return index
    raise ValueError(INCOMPLETE)


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.search(text, start)
    return found.end() if found else len(text)
