"""The SQLite file of a journal: its layout, opening it, and its errors."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.sqlite_scrubbing import do_scrub, scrubbing_noted
from agent_brain.tools.secrets import get_logger

log = get_logger(__name__)
IN_RAM = ":memory:"
APPLICATION_ID = 0x41425250  # says in the file's header that it is a journal of Agent Brain
VERSION = 1

_LAYOUT = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    last INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id),
    kind TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_of_session ON entries (session, seq);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""


_DAMAGED = (
    "is damaged or not a SQLite file ({said}): restore it from a backup, or move it away to start "
    "with an empty one"
)
_LOCKED = "stayed locked by another process ({said}): try again, or raise busy_timeout="
_MEANINGS = {
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened ({said}): check that it and its folder exist and may be written to"
    ),
    sqlite3.SQLITE_READONLY: (
        "may not be written to ({said}): check the permissions of the file and its folder and how "
        "the file system is mounted, or open it with readonly=True"
    ),
    sqlite3.SQLITE_PERM: "may not be opened ({said}): check the permissions of the file",
    sqlite3.SQLITE_FULL: (
        "has no room ({said}): free space on its file system. Nothing of this call was written, "
        "and what was written before is whole"
    ),
    sqlite3.SQLITE_IOERR: (
        "could not be read or written by the operating system ({said}): check the file system, its "
        "free space and its limits, then try again. Leave the file and its -wal file where they "
        "are: what was written before is in them"
    ),
}


def connect(path: str, busy_timeout: float, *, readonly: bool = False) -> sqlite3.Connection:
    """Open the file; create it if it is missing or empty.

    Raises:
        JournalError: It is not a journal, or one of an unknown version.
    """
    name = f"{Path(path).absolute().as_uri()}?mode=ro" if readonly else path
    try:
        db = sqlite3.connect(
            name, timeout=busy_timeout, isolation_level=None, check_same_thread=False, uri=readonly
        )
    except sqlite3.Error as error:
        raise explain(path, error) from error
    try:
        known = _is_journal(db, path)
        if not readonly:
            _prepare(db, busy_timeout, known=known)
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.Error):
            raise explain(path, error) from error
        raise
    return db


def _is_journal(db: sqlite3.Connection, path: str) -> bool:
    """Return whether the file has the layout of a journal; refuse any other database."""
    db.execute("BEGIN")  # a consistent view, as another process may be creating the tables
    application = db.execute("PRAGMA application_id").fetchone()[0]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    db.execute("COMMIT")
    if application != APPLICATION_ID and (tables or application or version):
        raise JournalError(
            f"{path!r} is a SQLite database of something else, not a journal: choose another file"
        )
    if application == APPLICATION_ID and version != VERSION:
        raise JournalError(
            f"The journal {path!r} has layout version {version}; this library reads version "
            f"{VERSION}. Open it with the library that wrote it, or a newer one"
        )
    return bool(application == APPLICATION_ID)


def _prepare(db: sqlite3.Connection, busy_timeout: float, *, known: bool) -> None:
    _write_ahead(db, busy_timeout)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")
    if not known:
        db.executescript(_LAYOUT)
    elif scrubbing_noted(db):  # a process was stopped between deleting and rewriting
        try:
            do_scrub(db)
        except sqlite3.OperationalError as error:  # the note stays, and so does the journal
            log.warning("Deleted entries could not be wiped from the file yet: %s", error)


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
            real = Path(path).resolve()  # SQLite keeps the log beside the file, not beside a link
            names = [Path(path).absolute(), real.with_name(real.name + "-wal")]
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


def explain(path: str, error: Exception) -> JournalError:
    """Return the error of a journal for an error of SQLite."""
    said = str(error)
    if isinstance(error, UnicodeEncodeError):
        return JournalError(f"A session's key or an entry's kind cannot be encoded: {said}")
    if isinstance(error, json.JSONDecodeError):
        return JournalError(f"The journal {path!r} has an entry that is not JSON ({said})")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the high bits have the details
    if isinstance(error, UnicodeDecodeError) or said.startswith("Could not decode to UTF-8"):
        code, said = sqlite3.SQLITE_CORRUPT, "a text in it is not UTF-8"  # without quoting it
    meaning = _MEANINGS.get(code, "cannot be used ({said})")
    return JournalError(f"The journal {path!r} {meaning.format(said=said)}")
