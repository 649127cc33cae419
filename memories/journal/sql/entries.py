"""The table of entries of a journal in a SQL database.

The checksum of an entry covers the session's key and the entry with its number. An entry that is
missing is noticed when a session is read as a whole: its row has the number of its entries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TypeAlias
from zlib import crc32

from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import check_found, damaged
from agent_brain.memories.journal.entry import Line, Lines, checksum
from agent_brain.memories.journal.sql import sessions
from agent_brain.memories.journal.sql.database import Cursor, Transaction
from agent_brain.memories.journal.sql.sessions import Counts, Key

NAMED = 500  # numbers of entries in one statement
RETIRED = 0x52455449  # is added to the checksum of an entry that is retired
UNKNOWN = 2**63 - 1  # the last number of a session whose row is damaged
OTHER_TYPES = (ValueError, OverflowError, TypeError, AttributeError)  # errors of damaged columns

# An entry to be written: retired, seq, kind, version, time, data
New: TypeAlias = tuple[bool, int, str, int, int, str]
# The session, the next entries up to a damage, and its error
Page: TypeAlias = tuple[Counts, Lines, JournalDamagedError | None]


def write(tx: Transaction, key: Key, entries: Sequence[New]) -> None:
    """Add entries to a locked session."""
    start = checksum(key.text)
    rows = []
    for retired, seq, kind, version, time, data in entries:
        stored = _to_text(kind, key)
        # The numbers are not part of the text: checking a session takes half the time.
        seal = crc32(data.encode(), _start_of(stored, start)) + seq + version + time
        seal += retired * RETIRED
        rows.append((key.id, int(retired), seq, stored, version, time, seal, data))
    tx.add_entries(rows)


def pages(
    do: Callable[[Callable[[Transaction], Page]], Page],
    key: Key,
    after: int,
    size: int,
    *,
    history: bool,
    whole: bool = False,
) -> Iterator[Lines]:
    """Yield the entries of a session with a number above ``after``, in order.

    Args:
        do: Calls a function with a transaction.
        key: The session's key.
        after: A sequence number.
        size: The most entries of a page.
        history: Include retired entries.
        whole: Yield nothing of a session whose row is damaged.

    Raises:
        JournalDamagedError: One is not what was written; what is before it was yielded.
        JournalError: The session was removed between two pages.
    """
    first, at, found = None, after, 0
    while True:
        read = partial(_read_page, key=key, after=at, size=size, history=history, whole=whole)
        counts, page, damage = do(read)
        first = first or counts
        if (counts.base, counts.created) != (first.base, first.created):
            raise JournalError(
                f"Session {key.text!r} in the {key.place} was removed while it was read"
            )
        if page:
            yield page
            at, found = page.lines[-1][0], found + len(page)
        if len(page) < size:
            break
    if damage is not None:
        raise damage
    if after <= 0 and counts == first:
        wanted = counts.live + (counts.retired if history else 0)
        check_found(key.text, f"the {key.place}", found, wanted)


def _read_page(
    tx: Transaction, key: Key, after: int, size: int, *, history: bool, whole: bool
) -> Page:
    """Return the session, at most ``size`` entries above ``after``, and the error of a damage."""
    try:
        counts = sessions.find(tx, key).shown
    except Exception as error:  # its entries have checksums of their own
        if whole or not (isinstance(error, JournalDamagedError) or tx.is_damage(error)):
            raise
        counts = Counts(last=UNKNOWN)
    lines: list[Line] = []
    damage = None
    try:
        if counts.last:
            _read(tx, key, counts.last, after, size, lines, history=history)
        if counts.last == UNKNOWN:
            last = lines[-1][0] if lines else after
            damage = key.damaged(
                f"its row is damaged or missing: what came after entry {last} is unknown"
            )
    except JournalDamagedError as error:
        damage = error
    return counts, Lines(lines), damage


def _read(
    tx: Transaction, key: Key, last: int, after: int, size: int, into: list[Line], *, history: bool
) -> None:
    """Append the next entries to ``into``.

    Raises:
        JournalDamagedError: One is not what was written.
    """
    start, at = checksum(key.text), max(after, 0)
    known: dict[str, tuple[str, int]] = {}  # kinds, and what their checksums begin with
    try:
        for seq, stored, version, time, retired, data, seal in _select(
            tx, key, min(at, last), size, history=history
        ):
            if stored not in known:
                known[stored] = sys.intern(_from_text(stored)), _start_of(stored, start)
            kind, kind_start = known[stored]
            right = crc32(data.encode(), kind_start) + seq == seal
            if not right or not at < seq <= last:  # a damaged tree leads elsewhere
                raise damaged(key.text, seq, f"the {key.place}")
            at = seq
            into.append((seq, kind, version, time, bool(retired), data))
    except JournalError:
        raise
    except Exception as error:
        if not isinstance(error, OTHER_TYPES) and not tx.is_damage(error):
            raise
        raise key.damaged(f"what comes after entry {at} cannot be read") from error


def _select(tx: Transaction, key: Key, after: int, size: int, *, history: bool) -> Cursor:
    """Select entries, and their checksums without version, time and whether they are retired."""
    parts = [
        f"SELECT seq, kind, version, time, {retired}, data, "
        f"checksum - version - time - {retired * RETIRED} "
        f"FROM entries WHERE session = ? AND retired = {retired} AND seq > ?"
        for retired in ((0, 1) if history else (0,))
    ]
    sql = f"{' UNION ALL '.join(parts)} ORDER BY seq LIMIT ?"
    return tx.execute(sql, [*[key.id, after] * len(parts), size])


def change(
    tx: Transaction, sql: str, key: Key, counts: Counts, seqs: Collection[int], *, retired: bool
) -> int:
    """Run a statement for entries of a locked session; return how many it changed."""
    known = sorted(seq for seq in {*seqs} if 0 < seq <= counts.last)
    changed = 0
    for at in range(0, len(known), NAMED):
        part = known[at : at + NAMED]
        where = f"session = ? AND retired = ? AND seq IN ({', '.join('?' * len(part))})"
        params = [key.id, int(retired), *part]
        changed += tx.execute(f"{sql} WHERE {where}", params).rowcount
    return changed


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


def _start_of(stored: str, start: int) -> int:
    """Return what the checksum of an entry of a kind begins with."""
    return crc32(stored.encode() + b"\0", start)


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
