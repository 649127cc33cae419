"""Texts of a report's file: long ones are cut, those that occur often are there once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent_brain.common.scrubber import Scrubber
from agent_brain.common.secrets import secret_spans
from agent_brain.common.text import clean_json

LONGEST = 20_000
"""Characters of one text."""


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, or its beginning and how much was left out."""
    if len(text) <= longest:
        return text
    left_out = len(text) - longest
    return f"{text[:longest]}\n[… {left_out:,} more characters are not in this file]"


def cut_all(value: Any, longest: int = LONGEST) -> Any:
    """Return JSON data without characters that cannot be written, and with its texts cut."""
    return _cut_inside(clean_json(value), longest)


def _cut_inside(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return cut(value, longest)
    if isinstance(value, dict):
        return {name: _cut_inside(item, longest) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut_inside(item, longest) for item in value]
    return value


def hide_secrets(value: Any) -> Any:
    """Return JSON data without secrets in its texts; most data has none, and is looked at once."""
    has_some = bool(secret_spans("\n".join(_texts(value))))
    return Scrubber().data(value) if has_some else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


class Once:
    """A list in which each value is once.

    Attributes:
        values: The values, in the order in which they came.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        """Return where a value of JSON is in the list; it is added if it is not there."""
        key = json.dumps(value, ensure_ascii=False, sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]
