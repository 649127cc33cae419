"""One entry of a journal, and its data as text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias, cast

from pydantic import JsonValue

from agent_brain.tools.text import clean

Row: TypeAlias = tuple[int, str, str]  # an entry as it is stored: seq, kind, data as JSON text


@dataclass(frozen=True, slots=True)
class Entry:
    """One change in a session: plain, immutable data.

    Attributes:
        kind: The kind of change, such as ``"message"`` or ``"control"``.
        data: Its details, as a JSON value.
        seq: The sequence number. It grows within a session and is never reused, not even after a
            deletion; 0 before the entry is written.
    """

    kind: str
    data: JsonValue
    seq: int = 0


def to_line(data: JsonValue) -> str:
    """Return ``data`` as JSON text that any encoding and any database can store."""
    return clean(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def from_line(line: str) -> JsonValue:
    """Return the data that :func:`to_line` encoded."""
    return cast(JsonValue, json.loads(line))
