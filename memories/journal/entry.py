"""One entry of a journal, and its data as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import compress
from operator import itemgetter
from typing import Any, TypeAlias, cast, overload
from zlib import crc32

from pydantic import JsonValue

from agent_brain.common.models import set_slots_directly
from agent_brain.common.text import clean

Row: TypeAlias = tuple[int, str, str]  # an entry as it is stored: seq, kind, data as JSON text
Line: TypeAlias = tuple[int, str, int, int | None, bool, str]
"""An entry to be written: seq, kind, version, time in milliseconds, retired, data as JSON text.

Unlike an object, a tuple of these is nothing that Python's garbage collector has to look at.
"""
FREED = 5_000  # entries at once
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Entry:
    """One change in a session: plain, immutable data.

    Attributes:
        kind: The kind of change, such as ``"message"`` or ``"step"``.
        data: Its details, as a JSON value.
        seq: The sequence number. It grows within a session and is never reused, not even after a
            deletion; 0 before the entry is written.
        version: The version of the form of ``data``, from 1.
        time: When it was written (aware, UTC, to the millisecond); None before that.
        retired: Whether a later entry has replaced it, so that only the history has it.
    """

    kind: str
    data: JsonValue
    seq: int = 0
    version: int = 1
    time: datetime | None = None
    retired: bool = False


set_slots_directly(Entry)


class Lines(Sequence[Entry]):
    """Entries whose data is text: each is an object only while it is used.

    All of them as objects would make Python's garbage collector stop the event loop.

    Args:
        lines: The entries, whose data can be stored.

    Attributes:
        more: Whether times and what is retired are kept.
    """

    more = True

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> Lines: ...
    def __getitem__(self, at: int | slice) -> Entry | Lines:
        if isinstance(at, slice):
            return Lines(self.lines[at])
        seq, kind, version, time, retired, line = self.lines[at]
        when = None if time is None else from_milliseconds(time)
        return Entry(kind, from_line(line), seq, version, when, retired)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def last(self) -> int:
        """The sequence number of the last entry; there must be one."""
        return self.lines[-1][0]

    def take(self, *columns: Sequence[Any]) -> None:
        """Append entries: numbers, kinds, versions, texts, times, and whether they are retired."""
        seqs, kinds, versions, lines, times, retired = columns
        self.lines += zip(seqs, kinds, versions, times, map(bool, retired), lines, strict=True)


class Rows(Sequence[Row]):
    """Rows as three columns, which take less time and memory than a tuple for each row.

    Attributes:
        seqs: The sequence numbers.
        kinds: The kinds.
        lines: The texts.
        versions: The versions that are not 1, by sequence number.
        more: Whether times and what is retired are kept.
    """

    more = False

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.seqs: list[int] = []
        self.kinds: list[str] = []
        self.lines: list[str] = []
        self.versions: dict[int, int] = {}
        if rows:
            self.extend(rows)

    @classmethod
    def of_pages(cls, pages: Iterable[Lines]) -> Rows:
        """Return the rows of entries."""
        rows = cls()
        for page in pages:
            lines = page.lines
            rows.seqs += map(itemgetter(0), lines)
            rows.kinds += map(sys.intern, map(itemgetter(1), lines))
            rows.lines += map(itemgetter(5), lines)
            if any(map((1).__ne__, map(itemgetter(2), lines))):
                rows.versions.update((line[0], line[2]) for line in lines if line[2] != 1)
        return rows

    @classmethod
    def joined(cls, parts: Iterable[Rows]) -> Rows:
        """Return the rows of all parts."""
        rows = cls()
        for part in parts:
            rows.seqs += part.seqs
            rows.kinds += part.kinds
            rows.lines += part.lines
            rows.versions.update(part.versions)
        return rows

    @property
    def last(self) -> int:
        """The sequence number of the last row; there must be one."""
        return self.seqs[-1]

    def take(self, *columns: Sequence[Any]) -> None:
        """Append entries: numbers, kinds, which are interned, versions and texts."""
        seqs, kinds, versions, lines = columns
        self.seqs += seqs
        self.kinds += kinds
        self.lines += lines
        if versions.count(1) < len(versions):
            numbered = zip(seqs, versions, strict=True)
            self.versions.update(pair for pair in numbered if pair[1] != 1)

    def extend(self, rows: Iterable[Row]) -> None:
        """Append ``rows``."""
        for seq, kind, line in rows:
            self.seqs.append(seq)
            self.kinds.append(sys.intern(kind))
            self.lines.append(line)

    def without(self, kinds: Collection[str]) -> Rows:
        """Return the rows that are of none of ``kinds``."""
        if all(kind not in kinds for kind in {*self.kinds}):
            return self
        chosen = [kind not in kinds for kind in self.kinds]
        return self._map(lambda column: [*compress(column, chosen)])

    def moved(self, by: int) -> Rows:
        """Return the rows with their sequence numbers raised by ``by``."""
        found = self[:]
        found.seqs = [seq + by for seq in self.seqs]
        found.versions = {seq + by: version for seq, version in self.versions.items()}
        return found

    def free(self) -> None:
        """Remove all rows in slices: one call for all would block every thread meanwhile."""
        for column in (self.seqs, self.kinds, self.lines):
            while column:
                del column[-FREED:]

    def _map(self, change: Callable[[list[Any]], list[Any]]) -> Rows:
        found = Rows()
        found.versions = self.versions
        columns: list[list[Any]] = [self.seqs, self.kinds, self.lines]
        found.seqs, found.kinds, found.lines = map(change, columns)
        return found

    def __len__(self) -> int:
        return len(self.seqs)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Rows: ...
    def __getitem__(self, at: int | slice) -> Row | Rows:
        if isinstance(at, slice):
            return self._map(lambda column: column[at])
        return self.seqs[at], self.kinds[at], self.lines[at]

    def __iter__(self) -> Iterator[Row]:
        return zip(self.seqs, self.kinds, self.lines, strict=True)


def to_line(data: JsonValue) -> str:
    """Return ``data`` as JSON text that any encoding and any database can store."""
    line = encode(data)
    return line if line.isascii() else clean(line)


def from_line(line: str) -> JsonValue:
    """Return the data that :func:`to_line` encoded."""
    return cast(JsonValue, json.loads(line))


def checksum(session: str) -> int:
    """Return what the checksums of a session's entries begin with; see :func:`seal`."""
    return crc32(session.encode("utf-8", "surrogatepass") + b"\0")


def seal(start: int, seq: int, kind: str, version: int, time: int, line: str) -> int:
    """Return the checksum (CRC-32) of a stored entry.

    It covers the session and the number too, so that an entry is not read in another place.

    Args:
        start: The :func:`checksum` of the session.
        seq: The sequence number.
        kind: The kind.
        version: The version.
        time: When it was written, in milliseconds since 1970.
        line: The data as text.
    """
    text = f"{seq}\0{kind}\0{version}\0{time}\0{line}"
    return crc32(text.encode("utf-8", "surrogatepass"), start)


def to_milliseconds(time: datetime) -> int:
    """Return a time as milliseconds since 1970."""
    return round(time.timestamp() * 1000)


def from_milliseconds(time: int) -> datetime:
    """Return milliseconds since 1970 as a time."""
    return datetime.fromtimestamp(time / 1000, UTC)
