"""Rewrites a SQLite file without what was deleted, also after a crash."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace

from agent_brain.memories.journal.sqlite.log import mark
from agent_brain.memories.journal.sqlite.sessions import about, put_about
from agent_brain.memories.journal.sqlite.transactions import writing


def note_scrubbing(db: sqlite3.Connection) -> None:
    """Note, in the transaction that deletes, that the file is to be rewritten."""
    row = about(db)
    put_about(db, replace(row, to_scrub=row.to_scrub + 1))


def scrubbing_noted(db: sqlite3.Connection) -> bool:
    """Return whether the file is still to be rewritten."""
    row = about(db)
    return row.to_scrub > row.scrubbed


def do_scrub(db: sqlite3.Connection) -> None:
    """Rewrite the file without free space, and empty the log.

    ``PRAGMA secure_delete`` alone is not enough: pages that were split keep copies of old rows.
    """
    noted = about(db).to_scrub
    deadline = time.monotonic() + db.execute("PRAGMA busy_timeout").fetchone()[0] / 1000
    try:
        db.execute("VACUUM")
    except sqlite3.OperationalError as error:
        raise sqlite3.OperationalError(
            "the entries are deleted, but the file could not be rewritten without their bytes "
            f"({error}), which takes as much space as it has; the next deletion, or the next "
            "opening of the file, does it"
        ) from error
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
        row = about(db)
        put_about(db, replace(row, scrubbed=max(row.scrubbed, noted)))
    mark(db)
