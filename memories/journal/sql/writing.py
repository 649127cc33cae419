"""What the calls of a journal in a SQL database do in their transactions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.base import conflict, held, lost
from agent_brain.memories.journal.entry import Line
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.journal.sql import entries as stored
from agent_brain.memories.journal.sql import sessions
from agent_brain.memories.journal.sql.database import Transaction
from agent_brain.memories.journal.sql.entries import RETIRED, New
from agent_brain.memories.journal.sql.sessions import Counts, Key, Record
from agent_brain.memories.journal.threaded import Change

log = get_logger(__name__)
PURGED = 100  # sessions at once
RETIRE = f"UPDATE entries SET retired = 1, checksum = checksum + {RETIRED}"
DELETE = "DELETE FROM entries"


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
    stored.write(tx, key, added)
    counts = _with(record, added)
    sessions.save(tx, key, counts, lease)
    return counts.last


def _check(key: Key, record: Record, expect: int | None, lease: Lease | None) -> None:
    holder = record.holder
    if lease is not None and (holder is None or holder.token != lease.token):
        raise lost(lease)
    if lease is None and record.leased is not None:
        raise held(record.leased)
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
    stored.write(tx, key, added)
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
        retired = stored.change(tx, RETIRE, key, counts, seqs, retired=False)
        live = -retired
    else:
        live = -stored.change(tx, DELETE, key, counts, seqs, retired=False)
        if counts.retired:
            retired = -stored.change(tx, DELETE, key, counts, seqs, retired=True)
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
    removed = stored.clear(tx, key, record.counts.last)
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
        stored.clear(tx, key, record.counts.last)
        sessions.remove(tx, key)
        removed += 1
    return removed


def _ready(tx: Transaction, key: Key, record: Record) -> Record:
    """Return a locked session as its next entries find it: an expired one begins again."""
    if record.has_expired:
        stored.clear(tx, key, record.counts.last)
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
