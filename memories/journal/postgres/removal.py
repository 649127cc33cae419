"""Removing entries and sessions of a journal in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.postgres.entries import RETIRED
from agent_brain.memories.journal.postgres.layout import Layout
from agent_brain.memories.journal.postgres.sessions import (
    NOW,
    Key,
    Record,
    changed,
    claim,
    lock,
    save,
)

if TYPE_CHECKING:
    from agent_brain.memories.journal.postgres.connections import Transaction

_COUNT = "SELECT count(*) FILTER (WHERE NOT retired), count(*) FILTER (WHERE retired) FROM gone"


def remove_entries(
    tx: Transaction, layout: Layout, key: Key, seqs: Collection[int], ttl: int | None
) -> int:
    """Remove entries; return how many."""
    record = lock(tx, layout, key).shown(ttl)
    if not record.last:
        return 0
    live, retired = tx.get_one(
        f"WITH gone AS (DELETE FROM {layout.entries} WHERE session = '{key.id}' "
        f"AND seq = ANY(%s::bigint[]) RETURNING retired) {_COUNT}",
        [_known(seqs, record)],
    )
    tx.commit(save(layout, key, changed(record, live=-live, retired=-retired)))
    return int(live + retired)


def retire_entries(
    tx: Transaction, layout: Layout, key: Key, seqs: Collection[int], ttl: int | None
) -> int:
    """Move entries to the history; return how many."""
    record = lock(tx, layout, key).shown(ttl)
    if not record.last:
        return 0
    moved = tx.execute(
        f"UPDATE {layout.entries} SET retired = true, checksum = checksum # {RETIRED} "
        f"WHERE session = '{key.id}' AND NOT retired AND seq = ANY(%s::bigint[])",
        [_known(seqs, record)],
    ).rowcount
    tx.commit(save(layout, key, changed(record, live=-moved, retired=moved)))
    return moved


def trim_history(
    tx: Transaction, layout: Layout, key: Key, before: int | None, ttl: int | None
) -> int:
    """Remove entries of the history; return how many."""
    record = lock(tx, layout, key).shown(ttl)
    if not record.last:
        return 0
    end = record.last + 1 if before is None else min(before, record.last + 1)
    removed = tx.execute(
        f"DELETE FROM {layout.history} WHERE session = '{key.id}' AND seq < %s", [end]
    ).rowcount
    tx.commit(save(layout, key, changed(record, retired=-removed)))
    return removed


def remove_session(tx: Transaction, layout: Layout, key: Key, ttl: int | None) -> int:
    """Remove a session, damaged or not, with its lease; return how many entries others saw."""
    record, removed = drop_session(tx, layout, key)
    tx.commit()
    return 0 if record.has_expired(ttl) else removed


def drop_session(tx: Transaction, layout: Layout, key: Key) -> tuple[Record, int]:
    """Remove a session, damaged or not; return what it was, and how many entries it had."""
    try:
        record = claim(tx, layout, key)
    except JournalDamagedError:
        record = Record()
    removed = clear_session(tx, layout, key, record.last)
    tx.execute(f"DELETE FROM {layout.sessions} WHERE id = '{key.id}'")
    return record, removed


def clear_session(tx: Transaction, layout: Layout, key: Key, last: int) -> int:
    """Remove the entries of a locked session; return how many.

    No session that is created later gets their numbers, or one up to ``last``.
    """
    removed, highest = tx.get_one(
        f"WITH gone AS (DELETE FROM {layout.entries} WHERE session = '{key.id}' RETURNING seq) "
        "SELECT count(*), coalesce(max(seq), 0) FROM gone"
    )
    last = max(last, highest)
    tx.execute(f"UPDATE {layout.layout} SET deleted = {last} WHERE deleted < {last}")
    return int(removed)


def remove_expired(tx: Transaction, layout: Layout, key: Key, ttl: int) -> bool:
    """Remove a session if it has expired and nobody has its lease; return whether it had."""
    record = lock(tx, layout, key)
    if record.leased or not record.has_expired(ttl):
        return False
    clear_session(tx, layout, key, record.last)
    tx.commit(f"DELETE FROM {layout.sessions} WHERE id = '{key.id}'; ")
    return True


def find_expired(tx: Transaction, layout: Layout, place: str, ttl: int, most: int) -> list[Key]:
    """Return sessions that nobody wrote to for ``ttl`` milliseconds, if nobody has their lease."""
    rows = tx.execute(
        f"SELECT key FROM {layout.sessions} WHERE last > 0 AND written <= {NOW} - {ttl} "
        f"AND coalesce(ends, 0) <= {NOW} LIMIT {most}"
    ).fetchall()
    return [Key(bytes(key).decode(errors="replace"), place) for (key,) in rows]


def remove_unused(tx: Transaction, layout: Layout) -> None:
    """Remove sessions that had a lease, which has ended, and never an entry."""
    tx.execute(f"DELETE FROM {layout.sessions} WHERE last = 0 AND coalesce(ends, 0) <= {NOW}")


def _known(seqs: Collection[int], record: Record) -> list[int]:
    return [seq for seq in seqs if 0 < seq <= record.last]
