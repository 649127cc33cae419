"""One entry of a journal, and how its data becomes text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agent_brain.tools.text import clean


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that happened in a session: plain data, never changed afterwards.

    Attributes:
        kind: What happened, such as ``"message"`` or ``"control"``.
        data: The particulars, as a JSON value.
        seq: The entry's place: grows within a session and is never used twice, not even after a
            deletion; 0 in an entry that no journal has written yet.
    """

    kind: str
    data: JsonValue
    seq: int = 0


def to_line(data: JsonValue) -> str:
    """``data`` as JSON text that every encoding and every database can carry."""
    return clean(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def from_line(line: str) -> JsonValue:
    """The data that :func:`to_line` wrote."""
    return cast(JsonValue, json.loads(line))
