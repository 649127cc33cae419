"""The tables of a journal in a SQLite file: layout 2.

* ``journal`` has one row about the whole file.
* ``session`` has a row for each session. It is found by its key, and by the hash of its key, so
  that a damaged index is noticed and does not make a session disappear.
* ``entry`` has the entries in use, and ``history`` the retired ones. The ``id`` is the number of
  the session and, in its low :data:`BITS` bits, that of the entry: a session's entries are one
  range of the table and are read in order.
* ``lease`` has the leases.

A process of an older version that has the file open finds views under the names of its tables; they
refer to a table whose name says what to do.
"""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x41425250  # says in the file's header that it is a journal of Agent Brain
VERSION = 2
BITS = 32
MOST = 2**BITS - 1  # the highest number of an entry

_ENTRY = """ (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    time INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    data TEXT NOT NULL
)"""
_NEWER = '"layout 2, of a newer version of agent-brain: restart this process with that version"'
_TABLES = (
    """CREATE TABLE journal (
    id TEXT NOT NULL,
    open INTEGER NOT NULL,
    machine TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    to_scrub INTEGER NOT NULL,
    scrubbed INTEGER NOT NULL,
    checksum INTEGER NOT NULL
)""",
    """CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    hash INTEGER NOT NULL,
    last INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    history_tail INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created INTEGER,
    updated INTEGER,
    touched INTEGER NOT NULL,
    checksum INTEGER NOT NULL
)""",
    "CREATE UNIQUE INDEX session_by_key ON session (key)",
    "CREATE INDEX session_by_hash ON session (hash)",
    f"CREATE TABLE entry{_ENTRY}",
    f"CREATE TABLE history{_ENTRY}",
    """CREATE TABLE lease (
    session TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    owner TEXT NOT NULL,
    seconds REAL NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID""",
)
_VIEWS = (
    f"CREATE VIEW sessions AS SELECT id, key, last FROM {_NEWER}",
    f"CREATE VIEW entries AS SELECT seq, session, kind, data FROM {_NEWER}",
)


def create_tables(db: sqlite3.Connection) -> None:
    """Create the tables, in a transaction of the caller."""
    for statement in _TABLES:
        db.execute(statement)


def finish(db: sqlite3.Connection) -> None:
    """Create the views and mark the file as a journal of this layout."""
    for statement in _VIEWS:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def is_whole(db: sqlite3.Connection) -> bool:
    """Return whether the tables are those of this layout."""
    found = db.execute(
        "SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name != ?", ("sqlite_sequence",)
    )
    return sorted(str(sql) for (sql,) in found) == sorted([*_TABLES, *_VIEWS])
