"""The rows of sessions in a SQLite file, and the row about all of them."""

from __future__ import annotations

import sqlite3
from dataclasses import astuple, dataclass, fields, replace
from typing import TypeAlias
from zlib import crc32

from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.entry import checksum
from agent_brain.memories.journal.sqlite.errors import is_damage
from agent_brain.memories.journal.sqlite.layout import BITS
from agent_brain.tools.ids import new_id

Identity: TypeAlias = tuple[int, int | None]
ADVICE = (
    "Restore the journal from a backup, or copy what can be read into a new one with "
    "'agent-brain sessions salvage'. Nothing was changed"
)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session.

    Attributes:
        id: Its number in this file.
        key: Its key.
        last: The last number that was given to an entry.
        tail: The highest number in use, 0 if there is none.
        history_tail: The highest number of a retired entry, 0 if there is none.
        entries: How many entries there are, retired ones included.
        version: The highest version that an entry has had.
        created: When the first entry was written, in milliseconds since 1970; None if unknown.
        updated: When the last entry was written; None if unknown.
        touched: When the session was last written to in this file.
    """

    id: int
    key: str
    last: int
    tail: int = 0
    history_tail: int = 0
    entries: int = 0
    version: int = 1
    created: int | None = None
    updated: int | None = None
    touched: int = 0

    @property
    def identity(self) -> Identity:
        """What tells it from a session that was begun later under its key."""
        return self.id, self.created

    @property
    def base(self) -> int:
        """The ``id`` of an entry is this and its number."""
        return self.id << BITS

    @property
    def end(self) -> int:
        """The ``id`` that the entries of the next session begin with."""
        return (self.id + 1) << BITS


@dataclass(frozen=True, slots=True)
class JournalRow:
    """The row about the whole file.

    Attributes:
        id: Tells this file from others.
        open: Whether the ``-wal`` file has writes; see :mod:`sqlite_log`.
        machine: Identifies the running machine that has last written the mark ``open``.
        sessions: How many sessions there are.
        deleted: The highest number of an entry of a session that was deleted.
        to_scrub: How many deletions wanted the file to be rewritten.
        scrubbed: How many of them are done with.
    """

    id: str
    open: int = 0
    machine: str = ""
    sessions: int = 0
    deleted: int = 0
    to_scrub: int = 0
    scrubbed: int = 0


_SESSION = [field.name for field in fields(SessionRow)]
_JOURNAL = [field.name for field in fields(JournalRow)]
_SELECT = f"SELECT {', '.join(_SESSION)}, checksum FROM session "
_SELECT_JOURNAL = f"SELECT {', '.join(_JOURNAL)}, checksum FROM journal"


def _seal(row: SessionRow | JournalRow) -> int:
    return crc32("\0".join(map(str, astuple(row))).encode("utf-8", "surrogatepass"))


def find(db: sqlite3.Connection, key: str) -> SessionRow | None:
    """Return the row of a session, or None.

    Raises:
        JournalDamagedError: It is not what was written.
    """
    found = db.execute(_SELECT + "WHERE key = ?", (key,)).fetchone()
    if found is not None:
        return _checked(found, key)
    others = db.execute("SELECT key FROM session WHERE hash = ?", (checksum(key),))
    if (key,) in others.fetchall():
        raise _damaged(key, "the index of the sessions is damaged")
    return None


def every(db: sqlite3.Connection) -> list[SessionRow]:
    """Return all sessions.

    Raises:
        JournalDamagedError: A row is not what was written, or is missing.
    """
    # An iteration that is left halfway keeps its transaction, after which nothing can be written.
    found = db.execute(_SELECT + "ORDER BY id").fetchall()
    checked = [_checked(row, row[1]) for row in found]
    if len(checked) != about(db).sessions:
        raise _damaged("", "a session is missing")
    return checked


def touched_before(db: sqlite3.Connection, time: int) -> list[SessionRow]:
    """Return the sessions that were last written to at a time, in milliseconds, or before it."""
    found = db.execute(_SELECT + "WHERE touched <= ?", (time,)).fetchall()
    return [_checked(row, row[1]) for row in found]


def readable_keys(db: sqlite3.Connection) -> set[str]:
    """Return the keys that can be found in a damaged file: in the table or in an index."""
    return (
        readable_texts(db, "session NOT INDEXED", "key", "id")
        | readable_texts(db, "session INDEXED BY session_by_key", "key", "key")
        | readable_texts(db, "session INDEXED BY session_by_hash", "key", "hash")
    )


def readable_texts(db: sqlite3.Connection, table: str, column: str, order: str) -> set[str]:
    """Return the texts in a column from both ends of a table up to what cannot be read."""
    found: set[str] = set()
    for direction in ("", " DESC"):
        try:
            for (text,) in db.execute(f"SELECT {column} FROM {table} ORDER BY {order}{direction}"):
                found |= {text} if isinstance(text, str) else set()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
    return found


def readable(db: sqlite3.Connection, key: str) -> SessionRow | None:
    """Return the row of a session; if it is damaged, one that has only its id and its key."""
    try:
        return find(db, key)
    except (JournalDamagedError, sqlite3.Error) as error:
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            raise
    for table, column, value in (
        ("session INDEXED BY session_by_key", "key", key),
        ("session INDEXED BY session_by_hash", "hash", checksum(key)),
        ("session NOT INDEXED", "key", key),
    ):
        try:
            row = db.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
        else:
            if row is not None:
                return SessionRow(row[0], key, 0, tail=-1, history_tail=-1)
    return None


def _checked(found: tuple[object, ...], key: str) -> SessionRow:
    row = SessionRow(*found[:-1])  # type: ignore[arg-type]  # the checksum tells
    if row.key != key or found[-1] != _seal(row):
        raise _damaged(key, "the checksum of its row is wrong")
    return row


def _damaged(key: str, problem: str) -> JournalDamagedError:
    whose = f"Session {key!r}" if key else "The list of the sessions"
    return JournalDamagedError(f"{whose} is damaged: {problem}. {ADVICE}", session=key)


def put(db: sqlite3.Connection, row: SessionRow) -> None:
    """Write the row of a session."""
    names = [*_SESSION, "hash", "checksum"]
    db.execute(
        f"INSERT INTO session ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
        "ON CONFLICT (id) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in names if name not in ("id", "key")),
        (*astuple(row), checksum(row.key), _seal(row)),
    )


def add(db: sqlite3.Connection, key: str, now: int) -> SessionRow:
    """Return the row of a new session, to be written with :func:`put`."""
    journal = about(db)
    put_about(db, replace(journal, sessions=journal.sessions + 1))
    number = db.execute("SELECT coalesce(max(id), 0) + 1 FROM session").fetchone()[0]
    return SessionRow(number, key, journal.deleted, created=now, updated=now, touched=now)


def remove(db: sqlite3.Connection, row: SessionRow) -> None:
    """Remove the row of a session; no later session begins with its numbers."""
    db.execute("DELETE FROM session WHERE id = ?", (row.id,))
    journal = about(db)
    deleted = max(journal.deleted, row.last)
    put_about(db, replace(journal, sessions=journal.sessions - 1, deleted=deleted))


def about(db: sqlite3.Connection) -> JournalRow:
    """Return the row about the whole file.

    Raises:
        JournalDamagedError: It is not what was written.
    """
    found = db.execute(_SELECT_JOURNAL).fetchall()
    row = JournalRow(*found[0][:-1]) if len(found) == 1 else None
    if row is None or found[0][-1] != _seal(row):
        raise _damaged("", "the checksum of the row about them is wrong")
    return row


def put_about(db: sqlite3.Connection, row: JournalRow) -> None:
    """Write the row about the whole file."""
    sets = ", ".join(f"{name} = ?" for name in [*_JOURNAL, "checksum"])
    db.execute(f"UPDATE journal SET {sets}", (*astuple(row), _seal(row)))


def put_first(db: sqlite3.Connection) -> None:
    """Write the row about a new file."""
    row = JournalRow(new_id("journal"))
    places = ", ".join("?" * (len(_JOURNAL) + 1))
    names = ", ".join([*_JOURNAL, "checksum"])
    db.execute(f"INSERT INTO journal ({names}) VALUES ({places})", (*astuple(row), _seal(row)))
