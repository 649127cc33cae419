"""Rewrites a SQLite file without what was deleted, also after a crash."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction that takes the write lock at once and is rolled back on errors."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some errors, such as that of a full disk, have ended it already
            db.execute("ROLLBACK")
        raise


def note_scrubbing(db: sqlite3.Connection) -> None:
    """Note, in the transaction that deletes, that the file is to be rewritten."""
    db.execute("CREATE TABLE IF NOT EXISTS scrubbing (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    db.execute("INSERT INTO scrubbing DEFAULT VALUES")


def scrubbing_noted(db: sqlite3.Connection) -> int:
    """Return the last note that is still to be acted on, 0 if there is none."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'scrubbing'").fetchone():
        return 0
    return int(db.execute("SELECT coalesce(max(id), 0) FROM scrubbing").fetchone()[0])


def do_scrub(db: sqlite3.Connection) -> None:
    """Rewrite the file without free space, and empty the log.

    ``PRAGMA secure_delete`` alone is not enough: pages that were split keep copies of old rows.
    """
    noted = scrubbing_noted(db)
    deadline = time.monotonic() + db.execute("PRAGMA busy_timeout").fetchone()[0] / 1000
    db.execute("VACUUM")
    # SQLite waits for readers here, but not for another process that is emptying the log.
    while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
        if time.monotonic() > deadline:
            raise sqlite3.OperationalError(
                "the entries are deleted, but the write-ahead log is being read by another process "
                "and could not be emptied; the next deletion, or the next opening of the file, "
                "does it"
            )
        time.sleep(0.005)
    with writing(db):
        db.execute("DELETE FROM scrubbing WHERE id <= ?", (noted,))
