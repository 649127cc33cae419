"""Layout 1 of the SQLite file of a journal: reading it, and bringing it to layout 2.

Its entries have neither versions nor times nor checksums, and one sequence of numbers for the file.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace

from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.base import SessionRecord
from agent_brain.memories.journal.entry import Entry, Rows, from_line
from agent_brain.memories.journal.sqlite import entries as stored
from agent_brain.memories.journal.sqlite import layout, sessions
from agent_brain.memories.journal.sqlite.errors import is_damage
from agent_brain.memories.journal.sqlite.sessions import ADVICE, SessionRow
from agent_brain.memories.journal.sqlite.transactions import reading, writing

VERSION = 1
_TABLES = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    last INTEGER NOT NULL
);
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES sessions (id),
    kind TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX entries_of_session ON entries (session, seq);
CREATE TABLE scrubbing (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE sqlite_sequence(name,seq);
"""
_SELECT = (
    "SELECT seq, kind, data FROM entries "
    "WHERE session = (SELECT id FROM sessions WHERE key = ?) AND seq > ? ORDER BY seq"
)


def is_whole(db: sqlite3.Connection) -> bool:
    """Return whether the tables are those of layout 1."""
    found = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    known = {sql.strip() for sql in _TABLES.split(";")}
    return found <= known and len(found) >= 4  # ``scrubbing`` is created when it is needed


@dataclass(frozen=True, slots=True)
class OldOperations:
    """The calls of a journal that only read; see :class:`Operations`."""

    def rows(self, db: sqlite3.Connection, key: str, after: int) -> Rows:
        """See :meth:`Journal.rows`."""
        found = Rows(as_written=True)
        cursor = db.execute(_SELECT, (key, after))
        while page := cursor.fetchmany(stored.PAGE):
            found.extend(page)
        return found

    def page(
        self, db: sqlite3.Connection, key: str, after: int, size: int | None, *, history: bool
    ) -> stored.Page:
        """Return the next entries; there is no history."""
        page = stored.Page([])
        limit = -1 if size is None else size
        try:
            number = db.execute("SELECT id FROM sessions WHERE key = ?", (key,)).fetchone()
            page.session = None if number is None else SessionRow(number[0], key, 0).identity
            with closing(db.execute(f"{_SELECT} LIMIT ?", (key, after, limit))) as found:
                for seq, kind, line in found:
                    page.entries.append(Entry(kind, from_line(line), seq))
        except (sqlite3.Error, ValueError, TypeError) as error:
            if isinstance(error, sqlite3.Error) and not is_damage(error):
                raise
            at = page.entries[-1].seq if page.entries else after
            message = (
                f"Session {key!r} is damaged: what comes after entry {at} cannot be read. {ADVICE}"
            )
            page.error = JournalDamagedError(message, session=key)
        return page

    def last(self, db: sqlite3.Connection, key: str) -> int:
        """See :meth:`Journal.last`."""
        found = db.execute("SELECT last FROM sessions WHERE key = ?", (key,)).fetchone()
        return 0 if found is None else int(found[0])

    def keys(self, db: sqlite3.Connection, prefix: str) -> list[str]:
        """See :meth:`Journal.sessions`."""
        keys = db.execute("SELECT key FROM sessions").fetchall()
        return sorted(key for (key,) in keys if key.startswith(prefix))

    def records(self, db: sqlite3.Connection, prefix: str) -> list[SessionRecord]:
        """See :meth:`Journal.records`; the times are unknown."""
        with reading(db):
            counts = dict(
                db.execute(
                    "SELECT key, (SELECT count(*) FROM entries WHERE session = sessions.id) "
                    "FROM sessions"
                ).fetchall()
            )
        return [
            SessionRecord(key, None, None, count)
            for key, count in sorted(counts.items())
            if key.startswith(prefix)
        ]

    def readable_keys(self, db: sqlite3.Connection) -> list[str]:
        """See :meth:`Operations.readable_keys`."""
        return sorted(
            sessions.readable_texts(db, "sessions NOT INDEXED", "key", "id")
            | sessions.readable_texts(db, "sessions", "key", "key")
        )

    def readable(self, db: sqlite3.Connection, key: str) -> tuple[list[Entry], str | None]:
        """See :meth:`Operations.readable`."""
        page = self.page(db, key, 0, None, history=False)
        return page.entries, None if page.error is None else str(page.error)


def upgrade(db: sqlite3.Connection) -> None:
    """Bring a file of layout 1 to layout 2, all or nothing; numbers are kept.

    Does nothing if another process has done it.
    """
    with writing(db):
        if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            return
        old = db.execute("SELECT id, key, last FROM sessions ORDER BY id").fetchall()
        highest = db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'entries'")
        deleted = highest.fetchone()[0] or 0
        to_scrub = 0
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'scrubbing'").fetchone():
            to_scrub = db.execute("SELECT count(*) FROM scrubbing").fetchone()[0]
            db.execute("DROP TABLE scrubbing")
        layout.create_tables(db)
        total = sum([_copy(db, SessionRow(*row)) for row in old])
        if total != db.execute("SELECT count(*) FROM entries NOT INDEXED").fetchone()[0]:
            raise JournalDamagedError(
                f"The journal is damaged: not every entry belongs to a session. {ADVICE}",
                session="",
            )
        sessions.put_first(db)
        about = sessions.about(db)
        about = replace(about, sessions=len(old), deleted=deleted, to_scrub=to_scrub)
        sessions.put_about(db, about)
        db.execute("DROP TABLE entries")
        db.execute("DROP TABLE sessions")
        layout.finish(db)


def _copy(db: sqlite3.Connection, session: SessionRow) -> int:
    """Copy a session; return the number of its entries."""
    rows: Iterable[tuple[int, str, str]] = db.execute(_SELECT, (session.key, 0))
    entries = [(Entry(kind, None, seq), line, 0) for seq, kind, line in rows]
    tail = stored.insert(db, stored.LIVE, session, entries)
    now = int(time.time() * 1000)
    last = max(session.last, tail)
    session = replace(session, last=last, tail=tail, entries=len(entries), touched=now)
    sessions.put(db, session)
    return len(entries)
