"""Appending to sessions of a journal in PostgreSQL, and loading them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_brain.memories.journal.base import conflict, held, lost
from agent_brain.memories.journal.entry import Entry, to_line, to_milliseconds
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.journal.postgres.entries import Stored, read_page, write_entries
from agent_brain.memories.journal.postgres.layout import Layout
from agent_brain.memories.journal.postgres.removal import clear_session, drop_session
from agent_brain.memories.journal.postgres.sessions import Key, Record, begin, claim, lock, save

if TYPE_CHECKING:
    from agent_brain.memories.journal.postgres.connections import Transaction


def append_entries(
    tx: Transaction,
    layout: Layout,
    key: Key,
    entries: Sequence[Entry],
    expect: int | None,
    lease: Lease | None,
    ttl: int | None,
    *,
    again: bool = False,
) -> int:
    """Append entries; see :meth:`Journal.append`. If it is done ``again``, they may be there."""
    lines = [to_line(entry.data) for entry in entries]
    record = lock(tx, layout, key)
    if again and record.last != expect and _ends_with(tx, layout, key, record, entries, lines):
        return record.last
    _check(key, record.shown(ttl), expect, lease)
    if not entries:
        return record.shown(ttl).last
    if not record.now:
        record = claim(tx, layout, key)
        _check(key, record.shown(ttl), expect, lease)  # of somebody who came in between
    record = _start(tx, layout, key, record, ttl)
    now = max(record.now, record.updated)
    stored: list[Stored] = [
        (record.last + at, entry.kind, entry.version, now, line, False)
        for at, (entry, line) in enumerate(zip(entries, lines, strict=True), 1)
    ]
    write_entries(tx, layout, key, stored)
    record = _with(record, stored)
    tx.commit(save(layout, key, record, None if lease is None else lease.seconds))
    return record.last


def _ends_with(
    tx: Transaction,
    layout: Layout,
    key: Key,
    record: Record,
    entries: Sequence[Entry],
    lines: Sequence[str],
) -> bool:
    """Return whether the last entries of a session are these."""
    wanted = [(e.kind, e.version, line) for e, line in zip(entries, lines, strict=True)]
    after = record.last - len(entries)
    found = read_page(tx, layout, key, record, after, len(entries), history=False)
    return [(kind, version, line) for _, kind, version, _, line, _ in found] == wanted


def load_entries(
    tx: Transaction,
    layout: Layout,
    key: Key,
    entries: Sequence[Entry],
    ttl: int | None,
) -> None:
    """Write the entries of another journal; see :meth:`Journal.load`."""
    if saved := _load(tx, layout, key, entries, ttl):
        tx.commit(saved)


def exchange_sessions(
    tx: Transaction,
    layout: Layout,
    remove: Collection[Key],
    add: Mapping[Key, Sequence[Entry]],
    ttl: int | None,
) -> None:
    """Remove sessions and load others; see :meth:`Journal.exchange`."""
    for key in sorted(remove, key=lambda key: key.text):  # of two at once, one waits for the other
        drop_session(tx, layout, key)
    for key, entries in add.items():
        if saved := _load(tx, layout, key, entries, ttl):
            tx.execute(saved)


def _load(
    tx: Transaction, layout: Layout, key: Key, entries: Sequence[Entry], ttl: int | None
) -> str:
    """Write the entries of another journal; return the SQL that stores the session's row."""
    lines = [to_line(entry.data) for entry in entries]
    record = claim(tx, layout, key) if entries else lock(tx, layout, key)
    if found := record.shown(ttl).last:
        raise conflict(key.text, 0, found)
    if not entries:
        return ""
    record = _start(tx, layout, key, record, ttl)
    stored: list[Stored] = [
        (e.seq, e.kind, e.version, _time(e, record), line, e.retired)
        for e, line in zip(entries, lines, strict=True)
    ]
    write_entries(tx, layout, key, stored)
    loaded = _with(record, stored)
    # A writer that knows a session that was deleted must see that this is another one.
    return save(layout, key, replace(loaded, last=max(record.last + 1, loaded.last)))


def _check(key: Key, record: Record, expect: int | None, lease: Lease | None) -> None:
    holder = record.holder
    if lease is not None and (holder is None or holder.token != lease.token):
        raise lost(lease)
    if lease is None and record.leased is not None:
        raise held(key.text, record.leased)
    if expect is not None and expect != record.last:
        raise conflict(key.text, expect, record.last)


def _start(tx: Transaction, layout: Layout, key: Key, record: Record, ttl: int | None) -> Record:
    """Return a locked session as its next entries find it: one that has expired starts anew."""
    if record.has_expired(ttl):
        clear_session(tx, layout, key, record.last)
        record = record.shown(ttl)
    if not record.last:
        record = replace(record, last=begin(tx, layout, key))
    return record


def _with(record: Record, entries: Sequence[Stored]) -> Record:
    """Return a session after entries were added."""
    retired = sum(entry[5] for entry in entries)
    return replace(
        record,
        last=entries[-1][0],
        live=record.live + len(entries) - retired,
        retired=record.retired + retired,
        created=record.created or entries[0][3],
        updated=entries[-1][3],
        written=record.now,
    )


def _time(entry: Entry, record: Record) -> int:
    return record.now if entry.time is None else to_milliseconds(entry.time)
