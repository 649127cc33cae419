"""A journal in a SQLite file."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Sequence
from os import PathLike, fspath
from typing import Generic, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal, conflict
from agent_brain.memories.journal.entry import Entry, Row, Rows, from_line, to_line
from agent_brain.memories.journal.sqlite_file import IN_RAM, OpenFiles, connect, explain
from agent_brain.memories.journal.sqlite_scrubbing import do_scrub, note_scrubbing, writing

T = TypeVar("T")
PAGE = 250  # rows that are read at once, so few that they do not make the garbage collector run

_ROWS = (
    "SELECT seq, kind, data FROM entries "
    "WHERE session = (SELECT id FROM sessions WHERE key = ?) AND seq > ? ORDER BY seq"
)


class SQLiteJournal(Journal):
    """A journal in a SQLite file in write-ahead mode; an append is on disk when it returns.

    The file is opened at the first use. Calls run in a worker thread, one at a time, on asyncio
    and trio. Several processes may use a file at once::

        async with SQLiteJournal("brain.db") as journal:
            memory = WindowedMemory(journal=journal, session="alice/42")

    Args:
        path: The file, created if it is missing; its folder is not. ``":memory:"`` is a database in
            RAM.
        busy_timeout: Seconds to wait while another process writes.
        readonly: Never write to the file or create it; for viewers and backups.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        busy_timeout: float = 30.0,
        readonly: bool = False,
    ) -> None:
        self.path = fspath(path)
        self.readonly = readonly
        self._busy_timeout = busy_timeout
        self._files = OpenFiles()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # for several loops; the limiter orders one
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"sqlite_journal_{id(self)}")

    def __repr__(self) -> str:
        return f"SQLiteJournal({self.path!r})"

    async def append(
        self, session: str, entries: Sequence[Entry], *, expect: int | None = None
    ) -> int:
        """See :meth:`Journal.append`."""
        self._check_writable()
        return await self._do(lambda db: _append(db, session, entries, expect))

    async def read(self, session: str, after: int = 0) -> list[Entry]:
        """See :meth:`Journal.read`."""
        return await self._do(
            lambda db: [_entry(row) for row in db.execute(_ROWS, (session, after))]
        )

    async def rows(self, session: str, after: int = 0) -> Rows:
        """See :meth:`Journal.rows`."""
        return await self._do(lambda db: _rows(db, session, after))

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        return await self._do(lambda db: _last(db, session))

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        keys = await self._do(lambda db: db.execute("SELECT key FROM sessions").fetchall())
        return sorted(key for (key,) in keys if key.startswith(prefix))

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`. Scrubbing rewrites the whole file."""
        self._check_writable()
        return await self._do(lambda db: _delete(db, session, seqs, scrub=scrub))

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`; two objects may use one file."""
        if (
            self is other
            or not isinstance(other, SQLiteJournal)
            or IN_RAM in (self.path, other.path)
        ):
            return self is other
        return os.path.realpath(self.path) == os.path.realpath(other.path)

    async def aclose(self) -> None:
        """Close the file. A closed journal cannot be used again."""
        if not self._closed:
            await self._run(self._close)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def on_the_file() -> T:
            db = self._open()
            self._files.check()
            done = work(db)
            self._files.check()
            return done

        return await self._run(on_the_file)

    def _check_writable(self) -> None:
        if self.readonly:
            raise JournalError(f"The journal {self.path!r} was opened with readonly=True")

    async def _run(self, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread; when cancelled, it has either finished or never starts."""
        job = _Job(work, self._lock, self.path)
        try:
            limiter = self._limiter.get()
        except LookupError:
            limiter = CapacityLimiter(1)
            self._limiter.set(limiter)
        try:
            return await to_thread.run_sync(job, limiter=limiter)
        except BaseException:
            job.abandoned = True
            raise

    def _open(self) -> sqlite3.Connection:
        if self._closed:
            raise JournalError(f"The journal {self.path!r} is closed: make a new SQLiteJournal")
        if self._connection is None:
            self._connection = connect(self.path, self._busy_timeout, readonly=self.readonly)
            if self.path != IN_RAM:
                self._files = OpenFiles(self.path)
        return self._connection

    def _close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Job(Generic[T]):
    """Work for the thread.

    A caller that is cancelled abandons it: it does not start any more. If it has started, the next
    job waits for its end, as it holds the lock.
    """

    def __init__(self, work: Callable[[], T], lock: threading.Lock, path: str) -> None:
        self._work = work
        self._lock = lock
        self._path = path
        self.abandoned = False

    def __call__(self) -> T:
        with self._lock:
            if self.abandoned:
                raise JournalError("The call was cancelled before it began")
            try:
                return self._work()
            except (sqlite3.Error, ValueError) as error:
                raise explain(self._path, error) from error


def _rows(db: sqlite3.Connection, session: str, after: int) -> Rows:
    found = Rows(as_written=True)
    cursor = db.execute(_ROWS, (session, after))
    while page := cursor.fetchmany(PAGE):
        found.extend(page)
    return found


def _last(db: sqlite3.Connection, session: str) -> int:
    row = db.execute("SELECT last FROM sessions WHERE key = ?", (session,)).fetchone()
    return 0 if row is None else int(row[0])


def _append(
    db: sqlite3.Connection, session: str, entries: Sequence[Entry], expect: int | None
) -> int:
    lines = [(entry.kind, to_line(entry.data)) for entry in entries]
    with writing(db):
        found = _last(db, session)
        if expect is not None and expect != found:
            raise conflict(session, expect, found)
        if not lines:
            return found
        owner = db.execute(
            "INSERT INTO sessions (key, last) VALUES (?, 0) "
            "ON CONFLICT (key) DO UPDATE SET last = last RETURNING id",
            (session,),
        ).fetchone()[0]
        db.executemany(
            "INSERT INTO entries (session, kind, data) VALUES (?, ?, ?)",
            [(owner, kind, line) for kind, line in lines],
        )
        last = int(db.execute("SELECT last_insert_rowid()").fetchone()[0])
        db.execute("UPDATE sessions SET last = ? WHERE id = ?", (last, owner))
    return last


def _entry(row: Row) -> Entry:
    return Entry(row[1], from_line(row[2]), row[0])


def _delete(
    db: sqlite3.Connection, session: str, seqs: Collection[int] | None, *, scrub: bool
) -> int:
    owner = "(SELECT id FROM sessions WHERE key = ?)"
    with writing(db):
        before = db.total_changes
        if seqs is None:
            db.execute(f"DELETE FROM entries WHERE session = {owner}", (session,))
            removed = db.total_changes - before
            db.execute("DELETE FROM sessions WHERE key = ?", (session,))
        else:
            db.executemany(
                f"DELETE FROM entries WHERE session = {owner} AND seq = ?",
                [(session, seq) for seq in seqs],
            )
            removed = db.total_changes - before
        if scrub and removed:
            note_scrubbing(db)
    if scrub and removed:
        do_scrub(db)
    return removed
