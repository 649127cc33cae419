"""The entries of a journal in a SQL database, and what calls do with them in a transaction.

The checksum of an entry covers the session's key and the entry with its number. An entry that is
missing is noticed when a session is read as a whole: its row has the number of its entries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import lt
from typing import TypeAlias, TypeVar
from zlib import crc32

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import conflict, damaged, held_error, lost
from agent_brain.memories.journal.entry import Line, Lines, Rows, checksum
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.journal.sql import sessions
from agent_brain.memories.journal.sql.database import Cursor, Transaction
from agent_brain.memories.journal.sql.sessions import FETCHED, Counts, Key, Record
from agent_brain.memories.journal.threaded import Change

log = get_logger(__name__)
PURGED = 100  # sessions at once
NAMED = 500  # numbers of entries in one statement
RETIRED = 0x52455449  # is added to the checksum of an entry that is retired
RETIRE = f"UPDATE entries SET retired = 1, checksum = checksum + {RETIRED}"
DELETE = "DELETE FROM entries"
UNKNOWN = 2**63 - 1  # the last number of a session whose row is damaged
OTHER_TYPES = ValueError | OverflowError | TypeError | AttributeError  # errors of damaged columns

# An entry to be written: retired, seq, kind, version, time, data
New: TypeAlias = tuple[bool, int, str, int, int, str]
PageT = TypeVar("PageT", Lines, Rows)
# The session, the next entries up to a damage, and its error
Page: TypeAlias = tuple[Counts, PageT, JournalDamagedError | None]
# Calls with a transaction, perhaps again if the connection breaks
Do: TypeAlias = Callable[[Callable[[Transaction], Page[PageT]]], Page[PageT]]


def pages(
    do: Do[PageT],
    key: Key,
    kind: type[PageT],
    after: int,
    size: int,
    *,
    history: bool,
    whole: bool = False,
) -> Iterator[PageT]:
    """Yield the entries of a session with a number above ``after``, in order.

    Args:
        do: Calls a function with a transaction.
        key: The session's key.
        kind: What a page is.
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
        read = partial(_read_page, key=key, kind=kind, after=at, size=size, history=history)
        counts, page, damage = do(partial(read, whole=whole))
        first = first or counts
        if (counts.base, counts.created) != (first.base, first.created):
            raise JournalError(
                f"Session {key.text!r} in the {key.place} was removed while it was read"
            )
        if page:
            yield page
            at, found = page.last, found + len(page)
        if len(page) < size:
            break
    if damage is not None:
        raise damage
    if after <= 0 and counts == first:
        wanted = counts.live + (counts.retired if history else 0)
        if found != wanted:  # somebody else has removed or added some
            raise key.damaged(f"it has {found} of the {wanted} entries that were written")


def _read_page(
    tx: Transaction,
    key: Key,
    kind: type[PageT],
    after: int,
    size: int,
    *,
    history: bool,
    whole: bool,
) -> Page[PageT]:
    """Return the session, at most ``size`` entries above ``after``, and the error of a damage."""
    try:
        counts = sessions.find(tx, key).shown
    except Exception as error:  # its entries have checksums of their own
        if whole or not (isinstance(error, JournalDamagedError) or tx.is_damage(error)):
            raise
        counts = Counts(last=UNKNOWN)
    page = kind([])
    damage = None
    try:
        if counts.last:
            _read(tx, key, counts.last, after, size, page, history=history)
        if counts.last == UNKNOWN:
            last = page.last if page else after
            damage = key.damaged(
                f"its row is damaged or missing: what came after entry {last} is unknown"
            )
    except JournalDamagedError as error:
        damage = error
    return counts, page, damage


def _read(
    tx: Transaction,
    key: Key,
    last: int,
    after: int,
    size: int,
    into: Lines | Rows,
    *,
    history: bool,
    batch: int = FETCHED,
) -> None:
    """Append the next entries to ``into``.

    Raises:
        JournalDamagedError: One is not what was written.
    """
    start, at = checksum(key.text), max(after, 0)
    kinds, starts = dict[str, str](), dict[str, int]()  # what checksums begin with, by kind
    try:
        cursor = _select(tx, key, min(at, last), size, history=history, more=into.more)
        while rows := cursor.fetchmany(batch):
            seqs, stored, versions, data, seals, *more = zip(*rows, strict=True)
            for kind in {*stored} - starts.keys():
                kinds[kind], starts[kind] = sys.intern(_from_text(kind)), _start_of(kind, start)
            checksums = map(crc32, map(str.encode, data), map(starts.__getitem__, stored))
            grow = all(map(lt, (at, *seqs), seqs))  # a damaged tree leads elsewhere
            if not (tuple(checksums) == seals and grow and seqs[-1] <= last):
                raise damaged(key.text, seqs[0], f"the {key.place}")
            into.take(seqs, [*map(kinds.__getitem__, stored)], versions, data, *more)
            at = seqs[-1]
    except Exception as error:
        if not (isinstance(error, JournalDamagedError | OTHER_TYPES) or tx.is_damage(error)):
            raise
        if batch > 1:  # read what is before it
            return _read(tx, key, last, at, size - len(into), into, history=history, batch=1)
        if isinstance(error, JournalDamagedError):
            raise
        raise key.damaged(f"what comes after entry {at} cannot be read") from error


def _select(
    tx: Transaction, key: Key, after: int, size: int, *, history: bool, more: bool
) -> Cursor:
    """Select entries with checksums of kind and data; if ``more``, also times and what is retired.

    Args:
        tx: The transaction.
        key: The session's key.
        after: A sequence number.
        size: How many entries at most.
        history: Include retired entries.
        more: Whether all columns are wanted.
    """
    parts = [
        f"SELECT seq, kind, version, data, checksum - version - time - seq - {retired * RETIRED}"
        f"{f', time, {retired}' if more else ''}"
        f" FROM entries WHERE session = ? AND retired = {retired} AND seq > ?"
        for retired in ((0, 1) if history else (0,))
    ]
    sql = f"{' UNION ALL '.join(parts)} ORDER BY seq LIMIT ?"
    return tx.execute(sql, [*[key.id, after] * len(parts), size])


def append(
    tx: Transaction,
    key: Key,
    entries: Sequence[Line],
    expect: int | None,
    lease: Lease | None,
) -> int:
    """Append entries with their data as text; see :meth:`Journal.append`."""
    record = sessions.lock(tx, key)
    _check(key, record, expect, lease)
    if not entries:
        return record.shown.last
    if not record.now:
        record = sessions.claim(tx, key)
        _check(key, record, expect, lease)  # somebody may have written in between
    record = _ready(tx, key, record)
    now = max(record.now, record.counts.updated)
    first = record.counts.last + 1
    added: list[New] = [
        (False, seq, kind, version, now, line)
        for seq, (_, kind, version, _, _, line) in enumerate(entries, first)
    ]
    _write(tx, key, added)
    counts = _with(record, added)
    sessions.save(tx, key, counts, lease)
    return counts.last


def _check(key: Key, record: Record, expect: int | None, lease: Lease | None) -> None:
    holder = record.holder
    if lease is not None and (holder is None or holder.token != lease.token):
        raise lost(lease)
    if lease is None and record.leased is not None:
        raise held_error(record.leased)
    if expect is not None and expect != record.shown.last:
        raise conflict(key.text, expect, record.shown.last)


def exchange(tx: Transaction, going: Collection[Key], coming: Mapping[Key, Sequence[Line]]) -> int:
    """Remove sessions and load others; return how many entries were removed."""
    removed = 0
    for key in sorted(going, key=lambda key: key.text):  # of two at once, one waits for the other
        removed += _remove(tx, key)[1]
    for key, entries in coming.items():
        _load(tx, key, entries)
    return removed


def _load(tx: Transaction, key: Key, entries: Sequence[Line]) -> None:
    """Write the entries of another journal; see :meth:`Journal.load`."""
    record = sessions.claim(tx, key) if entries else sessions.lock(tx, key)
    if found := record.shown.last:
        raise conflict(key.text, 0, found)
    if not entries:
        return
    record = _ready(tx, key, record)
    added: list[New] = [
        (retired, seq, kind, version, record.now if time is None else time, line)
        for seq, kind, version, time, retired, line in entries
    ]
    _write(tx, key, added)
    counts = _with(record, added)
    # A writer that knows a session that was deleted must see that this is another one.
    counts = replace(counts, last=max(record.counts.last + 1, counts.last))
    sessions.save(tx, key, counts, more=True)


def change(tx: Transaction, key: Key, what: Change, seqs: Sequence[int]) -> int:
    """Remove or retire entries; see :meth:`ThreadedJournal._change`."""
    if what == "clear":
        record, removed = _remove(tx, key)
        return 0 if record.has_expired else removed
    counts = sessions.lock(tx, key).shown
    retired = 0  # how many are moved to the history, or, if it is negative, removed from it
    if what == "trim":
        end = min([*seqs, counts.last + 1])
        sql = f"{DELETE} WHERE session = ? AND retired = 1 AND seq < ?"
        live, retired = 0, -tx.execute(sql, [key.id, end]).rowcount if counts.last else 0
    elif what == "retire":
        retired = _change_rows(tx, RETIRE, key, counts, seqs, retired=False)
        live = -retired
    else:
        live = -_change_rows(tx, DELETE, key, counts, seqs, retired=False)
        if counts.retired:
            retired = -_change_rows(tx, DELETE, key, counts, seqs, retired=True)
    if live or retired:
        now = replace(counts, live=counts.live + live, retired=counts.retired + retired)
        sessions.save(tx, key, now)
    return retired if what == "retire" else -live - retired


def _remove(tx: Transaction, key: Key) -> tuple[Record, int]:
    """Remove a session, damaged or not, with its lease; return it, and how many entries it had."""
    try:
        record = sessions.claim(tx, key)
    except JournalDamagedError:
        record = Record()
    removed = _clear(tx, key, record.counts.last)
    sessions.remove(tx, key)
    return record, removed


def purge(tx: Transaction, any_key: Key) -> int:
    """Remove some sessions that have expired, if nobody has their lease; return how many."""
    removed = 0
    rows = [] if any_key.ttl is None else sessions.lock_expired(tx, any_key.ttl, PURGED)
    for row in rows:
        try:
            key, record = sessions.read_row(row, any_key)
        except JournalDamagedError as error:  # delete() removes it
            log.warning("A session may have expired and is not removed: %s", error)
            continue
        _clear(tx, key, record.counts.last)
        sessions.remove(tx, key)
        removed += 1
    return removed


def _ready(tx: Transaction, key: Key, record: Record) -> Record:
    """Return a locked session as its next entries find it: an expired one begins again."""
    if record.has_expired:
        _clear(tx, key, record.counts.last)
        record = replace(record, counts=Counts())
    return record if record.counts.last else sessions.begin(tx, key, record)


def _with(record: Record, added: Sequence[New]) -> Counts:
    """Return what is stored of a session after entries were added."""
    counts, times = record.counts, [entry[4] for entry in added]
    retired = sum(entry[0] for entry in added)
    return replace(
        counts,
        last=added[-1][1],
        live=counts.live + len(added) - retired,
        retired=counts.retired + retired,
        version=max(counts.version, *(entry[3] for entry in added)),
        created=counts.created or min(times),
        updated=max(times),
        written=record.now,
    )


def _write(tx: Transaction, key: Key, entries: Sequence[New]) -> None:
    """Add rows of entries to a locked session."""
    start = checksum(key.text)
    rows = []
    for retired, seq, kind, version, time, data in entries:
        stored = _to_text(kind, key)
        # The numbers are not part of the text: checking a session takes half the time.
        seal = crc32(data.encode(), _start_of(stored, start)) + seq + version + time
        seal += retired * RETIRED
        rows.append((key.id, int(retired), seq, stored, version, time, seal, data))
    tx.add_entries(rows)


def _change_rows(
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


def _clear(tx: Transaction, key: Key, last: int) -> int:
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
