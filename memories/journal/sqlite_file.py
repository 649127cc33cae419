"""The SQLite file of a journal: its layout, how it is opened, and what its errors mean."""

from __future__ import annotations

import json
import sqlite3
import time

from agent_brain.memories.errors import JournalError

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


def connect(path: str, busy_timeout: float) -> sqlite3.Connection:
    """Open the file, and make it if it is missing or empty.

    Raises:
        JournalError: It is no journal, or one of a version that this library does not know.
    """
    try:
        db = sqlite3.connect(
            path, timeout=busy_timeout, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise explain(path, error) from error
    try:
        _prepare(db, path, busy_timeout)
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.Error):
            raise explain(path, error) from error
        raise
    return db


def _prepare(db: sqlite3.Connection, path: str, busy_timeout: float) -> None:
    db.execute("BEGIN")  # what is read is of one moment, while another process may lay it out
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
    _write_ahead(db, busy_timeout)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")
    if application != APPLICATION_ID:
        db.executescript(_LAYOUT)


def _write_ahead(db: sqlite3.Connection, busy_timeout: float) -> None:
    """Turn write-ahead logging on. SQLite does not wait for others here, so this does."""
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


def explain(path: str, error: Exception) -> JournalError:
    """What an error of SQLite means for whoever uses the journal."""
    said = str(error)
    if isinstance(error, UnicodeEncodeError):
        return JournalError(f"A session's key or an entry's kind cannot be encoded: {said}")
    if isinstance(error, json.JSONDecodeError):
        return JournalError(f"The journal {path!r} has an entry that is not JSON ({said})")
    if "not a database" in said or "malformed" in said or "disk I/O" in said:
        return JournalError(
            f"The journal {path!r} is damaged or not a SQLite file ({said}): restore it from a "
            "backup, or move it away to start anew"
        )
    if "unable to open" in said:
        return JournalError(
            f"The journal {path!r} cannot be opened ({said}): check that its folder exists and may "
            "be written to"
        )
    if "locked" in said or "busy" in said:
        return JournalError(
            f"The journal {path!r} stayed locked by another process ({said}): try again, or raise "
            "busy_timeout="
        )
    return JournalError(f"The journal {path!r} cannot be used: {said}")
