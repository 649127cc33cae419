"""Opening the SQLite file of a journal."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.sqlite import layout, layout1
from agent_brain.memories.journal.sqlite.errors import explain
from agent_brain.memories.journal.sqlite.log import check_log, log_of, unmark
from agent_brain.memories.journal.sqlite.scrubbing import do_scrub, scrubbing_noted
from agent_brain.memories.journal.sqlite.sessions import put_first
from agent_brain.memories.journal.sqlite.transactions import reading, writing
from agent_brain.tools.secrets import get_logger

log = get_logger(__name__)
IN_RAM = ":memory:"


class _Connection(sqlite3.Connection):
    """Closes with the journal that has it: from Python 3.13 on, SQLite's own warns instead."""

    def __del__(self) -> None:
        with suppress(sqlite3.Error):  # of a file that could not be opened
            self.close()


def connect(
    path: str,
    busy_timeout: float,
    *,
    readonly: bool = False,
    synchronous: str = "FULL",
    accept_loss: bool = False,
) -> tuple[sqlite3.Connection, int]:
    """Open the file; create it if it is missing or empty, and bring it to the present layout.

    Args:
        path: The file's absolute path, or :data:`IN_RAM`.
        busy_timeout: Seconds to wait for other processes.
        readonly: Whether it must not be written to.
        synchronous: SQLite's name of how durable a write is.
        accept_loss: Whether writes in a lost or damaged log may be missing.

    Returns:
        The connection, and the version of the file's layout.

    Raises:
        JournalError: It is not a journal, or one of an unknown version.
    """
    if path != IN_RAM:
        check_log(path, accept_loss=accept_loss)
    name = f"{Path(path).as_uri()}?mode=ro" if readonly else path
    try:
        db = sqlite3.connect(
            name,
            timeout=busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=_Connection,
            uri=readonly,
        )
    except sqlite3.Error as error:
        raise explain(path, error) from error
    try:
        version = _version(db, path)
        if not readonly:
            _prepare(db, busy_timeout, synchronous, version)
            version = layout.VERSION
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.Error | ValueError):  # its message may not be text
            raise explain(path, error) from error
        raise
    return db, version


def connect_beside(path: str, busy_timeout: float) -> sqlite3.Connection:
    """Open a file once more that :func:`connect` has opened; do not wait for the disk on writes."""
    db = sqlite3.connect(
        f"{Path(path).as_uri()}?mode=rw",  # which never creates it
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
        uri=True,
    )
    _set_up(db, "NORMAL")
    return db


def _version(db: sqlite3.Connection, path: str) -> int:
    """Return the version of the file's layout, 0 if it is empty; refuse any other database."""
    with reading(db):  # another process may be creating the tables
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        known = {layout.VERSION: layout.is_whole, layout1.VERSION: layout1.is_whole}
        whole = version in known and known[version](db)
    if not (application or version or tables):
        return 0
    if application != layout.APPLICATION_ID:
        raise JournalError(
            f"{path!r} is a SQLite database of something else, not a journal: choose another file"
        )
    if version > layout.VERSION:
        raise JournalError(
            f"The journal {path!r} has layout version {version}; this library reads versions up to "
            f"{layout.VERSION}. Open it with the library that wrote it, or a newer one"
        )
    if not whole:
        error = sqlite3.DatabaseError("its tables are not those of a journal")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error
    return version


def _prepare(db: sqlite3.Connection, busy_timeout: float, synchronous: str, version: int) -> None:
    _write_ahead(db, busy_timeout)
    _set_up(db, synchronous)
    if version == layout1.VERSION:
        layout1.upgrade(db)
    elif not version:
        with writing(db):
            if not db.execute("SELECT 1 FROM sqlite_master").fetchone():  # or another process did
                layout.create_tables(db)
                put_first(db)
                layout.finish(db)
    unmark(db)
    if scrubbing_noted(db):  # a process was stopped between deleting and rewriting
        try:
            do_scrub(db)
        except sqlite3.OperationalError as error:  # the note stays, and so does the journal
            log.warning("Deleted entries could not be wiped from the file yet: %s", error)


def _set_up(db: sqlite3.Connection, synchronous: str) -> None:
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA wal_autocheckpoint = 0")  # see sqlite_log


def _write_ahead(db: sqlite3.Connection, busy_timeout: float) -> None:
    """Turn on write-ahead logging. SQLite does not wait for other processes here, so this does."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


class OpenFiles:
    """The identity of the files of a connection.

    SQLite continues to write to a file that was deleted or replaced, and all of it would be lost.

    Args:
        path: The database that was just opened; None for one in RAM.
    """

    def __init__(self, path: str | None = None) -> None:
        names: list[Path] = []
        if path is not None:
            names = [Path(path), log_of(path)]
        self._known = {name: found for name in names if (found := _identity(name)) is not None}

    def check(self) -> None:
        """Check that the files are where they were.

        Raises:
            JournalError: One was deleted or replaced.
        """
        for name, known in self._known.items():
            found = _identity(name)
            if found != known:
                what = "deleted or moved away" if found is None else "replaced by another file"
                raise JournalError(
                    f"The journal's file {str(name)!r} was {what} while it was open, so nothing "
                    "can be read or written any more: put it back, or restore it from a backup, "
                    "and open it with a new SQLiteJournal"
                )


def _identity(name: Path) -> tuple[int, int] | None:
    try:
        status = name.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
