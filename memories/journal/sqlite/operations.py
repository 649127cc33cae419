"""What a journal does with an open SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import SessionRecord, conflict
from agent_brain.memories.journal.entry import Entry, Rows, from_milliseconds, to_line
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.journal.sqlite import entries as stored
from agent_brain.memories.journal.sqlite import leases, sessions
from agent_brain.memories.journal.sqlite.layout import MOST
from agent_brain.memories.journal.sqlite.scrubbing import (
    do_scrub,
    note_scrubbing,
    scrubbing_noted,
)
from agent_brain.memories.journal.sqlite.sessions import SessionRow
from agent_brain.memories.journal.sqlite.transactions import reading, writing


@dataclass(frozen=True, slots=True)
class Operations:
    """The calls of a journal; each is one transaction.

    Attributes:
        path: The file, for errors.
        ttl: How long a session is kept after the last append to it, in seconds; None for ever.
    """

    path: str
    ttl: float | None = None

    # Entries

    def append(
        self,
        db: sqlite3.Connection,
        key: str,
        entries: Sequence[Entry],
        expect: int | None,
        lease: Lease | None,
    ) -> int:
        """See :meth:`Journal.append`."""
        lines = [(entry, to_line(entry.data)) for entry in entries]
        with writing(db):
            leases.check(db, key, lease)
            session = sessions.find(db, key)
            ended = session is not None and self._has_ended(session)
            found = 0 if session is None or ended else session.last
            if expect is not None and expect != found:
                raise conflict(key, expect, found)
            if not lines:
                return found
            if session is not None and ended:
                _expire(db, session)
            now = _now()
            if session is None or ended:
                session = sessions.add(db, key, now)
            session = stored.add(db, session, lines, now)
            sessions.put(db, session)
        return session.last

    def rows(self, db: sqlite3.Connection, key: str, after: int) -> Rows:
        """See :meth:`Journal.rows`, without the history."""
        with reading(db):
            session = self._find(db, key)
            if session is None:
                return Rows(as_written=True)
            return stored.live_rows(db, session, after, repr(self.path))

    def page(
        self, db: sqlite3.Connection, key: str, after: int, size: int | None, *, history: bool
    ) -> stored.Page:
        """Return the next entries, and what is wrong with those after them."""
        with reading(db):
            session = self._find(db, key)
            if session is None:
                return stored.Page([])
            name = repr(self.path)
            return stored.read_page(db, session, after, name, history=history, size=size)

    def last(self, db: sqlite3.Connection, key: str) -> int:
        """See :meth:`Journal.last`."""
        with reading(db):
            session = self._find(db, key)
        return 0 if session is None else session.last

    def delete(
        self, db: sqlite3.Connection, key: str, seqs: Collection[int] | None, *, scrub: bool
    ) -> int:
        """See :meth:`Journal.delete`."""
        removed = 0
        with writing(db):
            session = self._find(db, key)
            if session is not None and seqs is None:
                removed = session.entries
                _remove(db, session)
                leases.remove(db, key)
            elif session is not None and seqs is not None:
                removed = self._remove_entries(db, session, seqs)
            if scrub and removed:
                note_scrubbing(db)
        if scrub and (removed or scrubbing_noted(db)):
            do_scrub(db)
        return removed

    def _remove_entries(
        self, db: sqlite3.Connection, session: SessionRow, seqs: Collection[int]
    ) -> int:
        left = stored.remove(db, session, seqs)
        if left != session:
            sessions.put(db, left)
        return session.entries - left.entries

    def retire(self, db: sqlite3.Connection, key: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        with writing(db):
            session = self._find(db, key)
            if session is None:
                return 0
            changed, count = stored.retire(db, session, seqs)
            if changed != session:
                sessions.put(db, changed)
        return count

    def trim(self, db: sqlite3.Connection, key: str, before: int | None, *, scrub: bool) -> int:
        """See :meth:`Journal.trim`."""
        with reading(db):
            session = self._find(db, key)
            going = [] if session is None else stored.retired(db, session, before)
        return self.delete(db, key, going, scrub=scrub)

    def load(self, db: sqlite3.Connection, key: str, entries: Sequence[Entry]) -> None:
        """See :meth:`Journal.load`."""
        with writing(db):
            self._load(db, key, entries)

    def _load(self, db: sqlite3.Connection, key: str, entries: Sequence[Entry]) -> None:
        if entries and entries[-1].seq > MOST:
            raise JournalError(f"A session in SQLite has entries up to number {MOST}")
        session = sessions.find(db, key)
        if session is not None and not self._has_ended(session):
            raise conflict(key, 0, session.last)
        if not entries:
            return
        if session is not None:
            _expire(db, session)
        added = sessions.add(db, key, _now())
        sessions.put(db, stored.add_as_they_were(db, added, entries))

    def exchange(
        self, db: sqlite3.Connection, remove: Collection[str], add: Mapping[str, Sequence[Entry]]
    ) -> None:
        """See :meth:`Journal.exchange`."""
        removed = 0
        with writing(db):
            for key in remove:
                session = sessions.find(db, key)
                if session is not None:
                    removed += session.entries
                    _remove(db, session)
                leases.remove(db, key)
            for key, entries in add.items():
                self._load(db, key, entries)
            if removed:
                note_scrubbing(db)
        if removed:
            do_scrub(db)

    # Sessions

    def keys(self, db: sqlite3.Connection, prefix: str) -> list[str]:
        """See :meth:`Journal.sessions`."""
        return [session.key for session in self._all(db, prefix)]

    def records(self, db: sqlite3.Connection, prefix: str) -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        return [
            SessionRecord(
                session.key,
                None if session.created is None else from_milliseconds(session.created),
                None if session.updated is None else from_milliseconds(session.updated),
                session.entries,
            )
            for session in self._all(db, prefix)
        ]

    def _all(self, db: sqlite3.Connection, prefix: str) -> list[SessionRow]:
        with reading(db):
            found = [
                session
                for session in sessions.every(db)
                if session.key.startswith(prefix) and not self._has_ended(session)
            ]
        return sorted(found, key=lambda session: session.key)

    # What is damaged

    def readable_keys(self, db: sqlite3.Connection) -> list[str]:
        """Return the keys that can be found in a damaged file, sorted."""
        with reading(db):
            return sorted(sessions.readable_keys(db))

    def readable(self, db: sqlite3.Connection, key: str) -> tuple[list[Entry], str | None]:
        """Return the entries of a session before a damage, and what is wrong.

        If the damage is in the history, entries in use are returned up to their own damage.
        """
        name = repr(self.path)
        with reading(db):
            session = sessions.readable(db, key)
            if session is None:
                return [], "It is not in the table of the sessions"
            row_is_damaged = session.tail < 0
            if row_is_damaged:
                session = stored.with_tails(db, session)
            page = stored.read_page(db, session, 0, name, history=True)
            last = page.entries[-1].seq if page.entries else 0
            if page.error is not None:
                page.entries += stored.read_page(db, session, last, name, history=False).entries
                return page.entries, str(page.error)
        if row_is_damaged:
            return page.entries, f"Its row is damaged: what came after entry {last} is unknown"
        return page.entries, None

    def purge(self, db: sqlite3.Connection, *, scrub: bool) -> int:
        """See :meth:`Journal.purge`."""
        going = [*self._ended(db)]
        if not going:
            return 0
        with writing(db):
            for session in (going := [*self._ended(db)]):
                _expire(db, session)
            if scrub and going:
                note_scrubbing(db)
        if scrub and going:
            do_scrub(db)
        return len(going)

    def _ended(self, db: sqlite3.Connection) -> Iterator[SessionRow]:
        if self.ttl is not None:
            upto = _now() - int(self.ttl * 1000)
            yield from sessions.touched_before(db, upto)

    def _find(self, db: sqlite3.Connection, key: str) -> SessionRow | None:
        session = sessions.find(db, key)
        return None if session is None or self._has_ended(session) else session

    def _has_ended(self, session: SessionRow) -> bool:
        return self.ttl is not None and session.touched <= _now() - int(self.ttl * 1000)


def _remove(db: sqlite3.Connection, session: SessionRow) -> None:
    stored.remove_all(db, session)
    sessions.remove(db, session)


def _expire(db: sqlite3.Connection, session: SessionRow) -> None:
    """Remove a session that has outlived its ttl; whoever is running it keeps the lease."""
    _remove(db, session)
    leases.remove_ended(db, session.key)


def _now() -> int:
    return int(time.time() * 1000)
