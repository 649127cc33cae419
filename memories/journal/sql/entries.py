"""The table of entries of a journal in a SQL database.

The checksum of an entry covers the session's key and the entry with its number. An entry that is
missing is noticed when a session is read as a whole: its row has the number of its entries.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias
from zlib import crc32

from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import check_found, damaged
from agent_brain.memories.journal.entry import (
    Entry,
    Line,
    Lines,
    Rows,
    checksum,
)
from agent_brain.memories.journal.sql.database import Cursor, Row, Transaction
from agent_brain.memories.journal.sql.sessions import FETCHED, Counts, Key

PAGE = 1000  # rows that are read at once
NAMED = 500  # numbers of entries in one statement
RETIRED = 0x52455449  # is added to the checksum of an entry that is retired
UNKNOWN = 2**63 - 1  # the last number of a session whose row is damaged

# An entry to be written: retired, seq, kind, version, time, data
New: TypeAlias = tuple[bool, int, str, int, int, str]


def write(tx: Transaction, key: Key, entries: Sequence[New]) -> None:
    """Add entries to a locked session."""
    checker = _Checker(key)
    rows = []
    for retired, seq, kind, version, time, data in entries:
        stored = _to_text(kind, key)
        seal = checker.seal(stored, data) + seq + version + time + retired * RETIRED
        rows.append((key.id, int(retired), seq, stored, version, time, seal, data))
    tx.add_entries(rows)


def read(tx: Transaction, key: Key, counts: Counts, after: int, *, history: bool) -> list[Entry]:
    """Return the entries of a session with a number above ``after``, in order.

    Raises:
        JournalDamagedError: One is not what was written.
    """
    found: list[Entry] = []
    at, size = after, PAGE
    while size == PAGE:
        page, damage = read_page(tx, key, counts, at, PAGE, history=history)
        if damage is not None:
            raise damage
        found += page
        at, size = (page[-1].seq if page else at), len(page)
    if after <= 0:
        check_count(key, counts, len(found), history=history)
    return found


def read_page(
    tx: Transaction,
    key: Key,
    counts: Counts,
    after: int,
    size: int,
    *,
    history: bool,
) -> tuple[Lines, JournalDamagedError | None]:
    """Return at most ``size`` entries above ``after``, none after a damage, and its error."""
    lines: list[Line] = []
    found = Lines(lines)
    if not counts.last:
        return found, None
    checker = _Checker(key, after)
    try:
        with checker.reading(tx):
            cursor = _select(tx, key, counts, after, size, ", version, time", history=history)
            for seq, stored, seal, data, retired, version, time in cursor:
                checker.check([(seq, stored, seal, data)], counts.last)
                lines.append((seq, checker.kinds[stored], version, time, bool(retired), data))
    except JournalDamagedError as error:
        return found, error
    return found, None


def read_rows(tx: Transaction, key: Key, counts: Counts, after: int) -> Rows:
    """Return the entries in use with a number above ``after``, as :meth:`Journal.rows` does."""
    found = Rows()
    if not counts.last:
        return found
    checker = _Checker(key, after)
    size = PAGE
    with checker.reading(tx):
        while size == PAGE:
            size = 0
            cursor = _select(tx, key, counts, checker.at, PAGE)
            while rows := cursor.fetchmany(FETCHED):
                checker.check(rows, counts.last)
                seqs, kinds, _, lines = zip(*rows, strict=True)
                found.seqs.extend(seqs)
                found.kinds.extend(map(checker.kinds.__getitem__, kinds))
                found.lines.extend(lines)
                size += len(rows)
        if counts.version > 1:
            found.versions = dict(
                tx.execute(
                    "SELECT seq, version FROM entries "
                    "WHERE session = ? AND retired = 0 AND seq > ? AND version > 1",
                    [key.id, after],
                )
            )
    if after <= 0:
        check_count(key, counts, len(found), history=False)
    return found


def check_count(key: Key, counts: Counts, found: int, *, history: bool) -> None:
    """Check how many entries of a session were found.

    Raises:
        JournalDamagedError: Somebody else has removed or added some.
    """
    wanted = counts.live + (counts.retired if history else 0)
    check_found(key.text, f"the {key.place}", found, wanted)


def retire(tx: Transaction, key: Key, counts: Counts, seqs: Collection[int]) -> int:
    """Move entries to the history; return how many."""
    sets = f"retired = 1, checksum = checksum + {RETIRED}"
    return _change(tx, f"UPDATE entries SET {sets}", key, counts, seqs, retired=0)


def remove(tx: Transaction, key: Key, counts: Counts, seqs: Collection[int]) -> tuple[int, int]:
    """Remove entries; return how many, and how many of the history."""
    live = _change(tx, "DELETE FROM entries", key, counts, seqs, retired=0)
    if not counts.retired:
        return live, 0
    return live, _change(tx, "DELETE FROM entries", key, counts, seqs, retired=1)


def trim(tx: Transaction, key: Key, before: int) -> int:
    """Remove entries of the history below a number; return how many."""
    where = "session = ? AND retired = 1 AND seq < ?"
    return tx.execute(f"DELETE FROM entries WHERE {where}", [key.id, before]).rowcount


def clear(tx: Transaction, key: Key, last: int) -> int:
    """Remove all entries of a locked session; return how many.

    No session that is created later gets their numbers, or one up to ``last``.
    """
    if not last:  # it may be damaged
        sql = "SELECT coalesce(max(seq), 0) FROM entries WHERE session = ?"
        last = tx.get_one(sql, [key.id])[0]
    removed = tx.execute("DELETE FROM entries WHERE session = ?", [key.id]).rowcount
    tx.execute("UPDATE journal SET deleted = ? WHERE deleted < ?", [last, last])
    return removed


def _change(
    tx: Transaction, sql: str, key: Key, counts: Counts, seqs: Collection[int], *, retired: int
) -> int:
    known = sorted(seq for seq in {*seqs} if 0 < seq <= counts.last)
    changed = 0
    for start in range(0, len(known), NAMED):
        part = known[start : start + NAMED]
        among = ", ".join("?" * len(part))
        where = f"WHERE session = ? AND retired = ? AND seq IN ({among})"
        changed += tx.execute(f"{sql} {where}", [key.id, retired, *part]).rowcount
    return changed


def _select(
    tx: Transaction,
    key: Key,
    counts: Counts,
    after: int,
    size: int,
    more: str = "",
    *,
    history: bool = False,
) -> Cursor:
    """Select seq, kind, checksum without version and time, and data; with more, retired too."""
    sql, params = "", list[int]()
    for retired in (0, 1) if history else (0,):
        flag = f", {retired}{more}" if more else ""
        sql += " UNION ALL " if sql else ""
        sql += f"SELECT seq, kind, checksum - version - time - {retired * RETIRED}, data{flag} "
        sql += f"FROM entries WHERE session = ? AND retired = {retired} AND seq > ?"
        params += [key.id, min(max(after, 0), counts.last)]
    return tx.execute(f"{sql} ORDER BY seq LIMIT ?", [*params, size])


class _Checker:
    """Checks rows of a session in order: that each is what was written.

    Attributes:
        at: The number of the last row that was checked.
        kinds: The kinds that were checked, by how they are stored.
    """

    def __init__(self, key: Key, after: int = 0) -> None:
        self.at = max(after, 0)
        self.kinds: dict[str, str] = {}
        self._key = key
        self._start = checksum(key.text)
        self._starts: dict[str, int] = {}  # of checksums, by kind

    def _start_of(self, stored: str) -> int:
        if stored not in self._starts:
            self._starts[stored] = crc32(stored.encode() + b"\0", self._start)
            self.kinds[stored] = sys.intern(_from_text(stored))
        return self._starts[stored]

    def seal(self, stored: str, data: str) -> int:
        """Return the checksum of an entry, to which its numbers are added.

        They are not part of the text: checking the entries of a session takes half the time.
        """
        return crc32(data.encode(), self._start_of(stored))

    def check(self, rows: Sequence[Row], last: int) -> None:
        """Check the next rows.

        Raises:
            JournalDamagedError: One is damaged; ``at`` is the number of the one before it.
        """
        at, starts = self.at, self._starts
        for seq, stored, found, data in rows:
            if stored not in starts:
                self._start_of(stored)
            right = crc32(data.encode(), starts[stored]) + seq == found
            if not right or not at < seq <= last:  # a damaged tree leads elsewhere
                self.at = at
                raise damaged(self._key.text, seq, f"the {self._key.place}")
            at = seq
        self.at = at

    @contextmanager
    def reading(self, tx: Transaction) -> Iterator[None]:
        """Raise the errors of a damaged database as those of this session."""
        try:
            yield
        except JournalError:
            raise
        except (ValueError, OverflowError, TypeError, AttributeError) as error:  # other types
            raise self._broken() from error
        except Exception as error:
            if not tx.is_damage(error):
                raise
            raise self._broken() from error

    def _broken(self) -> JournalDamagedError:
        return self._key.damaged(f"what comes after entry {self.at} cannot be read")


def _to_text(kind: str, key: Key) -> str:
    """Return a kind as any database can store it: without the character NUL."""
    try:
        kind.encode()
    except UnicodeEncodeError as error:
        raise JournalError(
            f"The kind {kind!r} of an entry has half of a character ({error.reason}), which "
            f"the {key.place} cannot hold"
        ) from error
    return kind.replace("\\", "\\\\").replace("\0", "\\0")


def _from_text(text: str) -> str:
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))
