"""Leases in a SQLite file.

A lease lasts until a time of the clock that counts from the boot of the machine: all processes that
use the file have it in common, and nobody sets it. What was written before the boot has ended.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection

from agent_brain.memories.journal.base import held, lost
from agent_brain.memories.journal.lease import Holder, Lease, Owner
from agent_brain.memories.journal.sqlite.transactions import writing


def check(db: sqlite3.Connection, session: str, lease: Lease | None) -> None:
    """Check, in the transaction that writes to a session, that its lease allows it.

    A lease that has ended and that nobody took over is renewed.

    Raises:
        LeaseLostError: ``lease`` is not that of the session.
        LeaseHeldError: There is no ``lease``, and somebody has one that has not ended.
    """
    stored = _stored(db, session)
    if lease is None:
        if stored is not None and stored.seconds > 0:
            raise held(session, stored)
    elif stored is None or stored.token != lease.token:
        raise lost(lease)
    elif stored.seconds <= 0:
        _put(db, lease)


def take(db: sqlite3.Connection, lease: Lease, over: str | None) -> Holder | None:
    """Store a lease, or return who has one that has not ended and is not ``over``."""
    with writing(db):
        stored = _stored(db, lease.session)
        if stored is not None and stored.seconds > 0 and stored.token not in (over, lease.token):
            return stored
        _put(db, lease)
    return None


def renew(db: sqlite3.Connection, leases: Collection[Lease]) -> list[str]:
    """Renew leases; return the tokens of those that are not stored any more."""
    missing = []
    with writing(db):
        for lease in leases:
            until = _now() + lease.seconds
            update = "UPDATE lease SET until = ? WHERE session = ? AND token = ?"
            if not db.execute(update, (until, lease.session, lease.token)).rowcount:
                missing.append(lease.token)
    return missing


def release(db: sqlite3.Connection, leases: Collection[Lease]) -> None:
    """Remove those of the leases that are still stored."""
    with writing(db):
        db.executemany(
            "DELETE FROM lease WHERE session = ? AND token = ?",
            [(lease.session, lease.token) for lease in leases],
        )


def remove(db: sqlite3.Connection, session: str) -> None:
    """Remove whatever lease a session has, in a transaction of the caller."""
    db.execute("DELETE FROM lease WHERE session = ?", (session,))


def remove_ended(db: sqlite3.Connection, session: str) -> None:
    """Remove the lease of a session if it has ended, in a transaction of the caller."""
    stored = _stored(db, session)
    if stored is not None and stored.seconds <= 0:
        remove(db, session)


def _now() -> float:
    """Return the seconds since the boot, or those of the calendar if the boot is unknown."""
    return time.monotonic() if Owner.here().boot else time.time()


def _stored(db: sqlite3.Connection, session: str) -> Holder | None:
    """Return who has a lease; one that has ended has no seconds left."""
    select = "SELECT owner, token, seconds, until FROM lease WHERE session = ?"
    found = db.execute(select, (session,)).fetchone()
    if found is None:
        return None
    text, token, seconds, until = found
    owner = Owner.from_text(text)
    if owner.boot != Owner.here().boot:
        return Holder(owner, token, 0)
    return Holder(owner, token, min(until - _now(), seconds))  # the calendar may be set back


def _put(db: sqlite3.Connection, lease: Lease) -> None:
    db.execute(
        "INSERT OR REPLACE INTO lease (session, token, owner, seconds, until) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            lease.session,
            lease.token,
            lease.owner.to_text(),
            lease.seconds,
            _now() + lease.seconds,
        ),
    )
