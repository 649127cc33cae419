"""The write-ahead log of a SQLite file: whether ``-wal`` is there, and of this file.

SQLite takes a missing log for an empty one, and writes the log of another file into this one. So a
mark says that there is a log: the file itself has ``open`` = 1 in its row about the journal, and
the log, which counts as long as it is there, has ``open`` = 0. A file that was closed, and a backup
that SQLite made, have 0 as well. The mark is set before the first write, and again whenever the log
is copied into the file.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from agent_brain.memories.errors import JournalDamagedError

WRITES, GROWTH = 250, 4_000_000  # writes, and bytes, before the log is copied into the file
_TRIES = 5  # another process may be closing the file
_ABOUT = "SELECT open, id FROM journal"


def unmark(db: sqlite3.Connection) -> None:
    """Remove a mark that a process left in the log, or that belongs to a log that was lost."""
    if db.execute("SELECT open FROM journal").fetchone()[0]:
        db.execute("UPDATE journal SET open = 0")


def log_of(path: str) -> Path:
    """Return where the log of a file is: beside the file, not beside a link to it."""
    real = Path(path).resolve()
    return real.with_name(real.name + "-wal")


def check_log(path: str, *, accept_loss: bool) -> None:
    """Check the log of a file before it is opened. Changes nothing.

    Args:
        path: The file.
        accept_loss: Whether writes in a lost log may be missing.

    Raises:
        JournalDamagedError: The log is missing, or that of another file.
    """
    for attempt in range(_TRIES):
        stored = _without_log(path)
        if stored is None:  # it is new, or of another layout, or being written to
            return
        is_open, identity = stored
        if _size(log_of(path)):
            if _fits(path, identity):
                return
            raise JournalDamagedError(
                f"The log {str(log_of(path))!r} is damaged, or that of another file than this "
                "journal. Put the log back that belongs to it; if there is none, move this one "
                "away. Nothing was changed",
                session="",
            )
        if not is_open or accept_loss:
            return
        time.sleep(0.02 * attempt)
    raise JournalDamagedError(
        f"The log {str(log_of(path))!r} is missing, and the journal was not closed: its last "
        "writes are in that file. Put it back beside the journal. If it is lost, open the journal "
        "with accept_loss=True, which continues without those writes. Nothing was changed",
        session="",
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _connect(path: str, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro{options}", uri=True)


def _without_log(path: str) -> tuple[int, str] | None:
    """Return the mark and the identity of the journal as they are in the file itself."""
    try:
        with closing(_connect(path, "&immutable=1")) as db:
            found: tuple[int, str] | None = db.execute(_ABOUT).fetchone()
            return found
    except (sqlite3.Error, ValueError):
        return None


def _fits(path: str, identity: str) -> bool:
    """Return whether the log is that of the file."""
    with closing(_connect(path, "")) as db:  # which never writes the log into the file
        try:
            found = db.execute(_ABOUT).fetchone()
        except ValueError:
            return False
        except sqlite3.DatabaseError as error:  # opening the file reports what else is wrong
            return isinstance(error, sqlite3.OperationalError) and "no such" not in str(error)
    return found is not None and found[1] == identity


class Log:
    """Keeps the mark and the log's size.

    Args:
        path: The journal's file; None for one in RAM, which has no log.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else log_of(path)
        self._lock = threading.Lock()  # appends and leases have connections of their own
        self._writes, self._size = WRITES, 0

    def before_write(self, db: sqlite3.Connection) -> None:
        """Mark the file before the first write, and again when the log has grown."""
        if self._path is None:
            return
        with self._lock:
            self._writes += 1
            if self._writes > WRITES or _size(self._path) > self._size + GROWTH:
                self.mark(db)
                self._writes, self._size = 0, _size(self._path)

    def mark(self, db: sqlite3.Connection) -> None:
        """Copy the log into the file, and mark there that the log is not empty."""
        durable = db.execute("PRAGMA synchronous").fetchone()[0]
        db.execute("PRAGMA synchronous = NORMAL")  # a mark needs no wait for the disk of its own
        try:
            db.execute("UPDATE journal SET open = 1")
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
            db.execute("UPDATE journal SET open = 0")
        finally:
            db.execute(f"PRAGMA synchronous = {durable}")
