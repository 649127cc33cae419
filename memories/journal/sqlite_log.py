"""The write-ahead log of a SQLite file: whether ``-wal`` is there, whole, and of this file.

SQLite takes a missing log for an empty one, ignores what comes after a damaged place in it, and
writes the log of another file into this one. So a mark says that there is a log: the file itself
has ``open`` = 1 in its row about the journal, and the log, which counts as long as it is there, has
``open`` = 0. A file that was closed, and a backup that SQLite made, have 0 as well. The mark is set
before the first write, and again whenever the log is copied into the file.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.lease import Owner
from agent_brain.memories.journal.sqlite_log_pages import ignored_pages
from agent_brain.memories.journal.sqlite_sessions import JournalRow, about, put_about
from agent_brain.memories.journal.sqlite_transactions import reading, writing
from agent_brain.tools.secrets import get_logger

log = get_logger(__name__)
WRITES, GROWTH = 250, 4_000_000  # writes, and bytes, before the log is copied into the file
_TRIES = 5  # another process may be closing the file


def mark(db: sqlite3.Connection) -> None:
    """Copy the log into the file, and mark there that the log is not empty."""
    durable = db.execute("PRAGMA synchronous").fetchone()[0]
    db.execute("PRAGMA synchronous = NORMAL")  # a mark needs no wait for the disk of its own
    try:
        _set(db, open_=1)
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        _set(db, open_=0)
    finally:
        db.execute(f"PRAGMA synchronous = {durable}")


def unmark(db: sqlite3.Connection) -> None:
    """Remove a mark that a process left in the log, or that belongs to a log that was lost."""
    if about(db).open:
        _set(db, open_=0)


def _set(db: sqlite3.Connection, *, open_: int) -> None:
    with writing(db):
        put_about(db, replace(about(db), open=open_, machine=Owner.here().machine))


def log_of(path: str) -> Path:
    """Return where the log of a file is: beside the file, not beside a link to it."""
    real = Path(path).resolve()
    return real.with_name(real.name + "-wal")


def check_log(path: str, *, accept_loss: bool) -> None:
    """Check the log of a file before it is opened. Changes nothing.

    Args:
        path: The file.
        accept_loss: Whether writes in a lost or damaged log may be missing.

    Raises:
        JournalDamagedError: The log is missing, damaged, or that of another file.
    """
    for attempt in range(_TRIES):
        stored = _without_log(path)
        if stored is None:  # it is new, or of another layout, or being written to
            return
        if _size(log_of(path)):
            _check_content(path, stored, accept_loss=accept_loss)
            return
        if not stored.open or accept_loss:
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


def _without_log(path: str) -> JournalRow | None:
    """Return the row about the journal as it is in the file itself."""
    uri = f"{Path(path).resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as db:
            return about(db)
    except (sqlite3.Error, JournalDamagedError, ValueError):
        return None


def _check_content(path: str, stored: JournalRow, *, accept_loss: bool) -> None:
    name = str(log_of(path))
    uri = f"{Path(path).resolve().as_uri()}?mode=ro"  # which never writes the log into the file
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
        try:
            with reading(db):
                fits = about(db).id == stored.id
                ignored = ignored_pages(log_of(path)) if fits else 0
        except (JournalDamagedError, ValueError):
            fits, ignored = False, 0
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "no such" not in str(error):
                return  # opening the file reports it
            fits, ignored = False, 0
    if not fits:
        raise JournalDamagedError(
            f"The log {name!r} is damaged, or that of another file than this journal. Put the log "
            "back that belongs to it; if there is none, move this one away. Nothing was changed",
            session="",
        )
    if not ignored or accept_loss:
        return
    if stored.machine and stored.machine == Owner.here().machine:
        raise JournalDamagedError(
            f"The log {name!r} is damaged: {ignored} pages in it, which were written, cannot be "
            "read. Restore the journal and its log from a backup, or open the journal with "
            "accept_loss=True, which continues without what the last of them have. Nothing was "
            "changed",
            session="",
        )
    log.warning(
        "The log %s ends in %d pages that cannot be read, as after a power failure", name, ignored
    )


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
                mark(db)
                self._writes, self._size = 0, _size(self._path)
