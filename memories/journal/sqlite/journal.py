"""A journal in a SQLite file."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from datetime import timedelta
from os import PathLike, fspath
from typing import Literal, TypeAlias, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.base import PAGE, Journal, SessionRecord
from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.journal.lease import Heartbeat, Holder, Lease
from agent_brain.memories.journal.sqlite import leases
from agent_brain.memories.journal.sqlite.entries import Page
from agent_brain.memories.journal.sqlite.file import IN_RAM, OpenFiles, connect
from agent_brain.memories.journal.sqlite.job import Job
from agent_brain.memories.journal.sqlite.layout import VERSION
from agent_brain.memories.journal.sqlite.layout1 import OldOperations
from agent_brain.memories.journal.sqlite.log import Log
from agent_brain.memories.journal.sqlite.operations import Operations

T = TypeVar("T")
Durability: TypeAlias = Literal["disk", "os", "memory"]
PURGE_EVERY = 60.0  # seconds between two looks for sessions that have outlived their ttl


class SQLiteJournal(Journal):
    """A journal in a SQLite file in write-ahead mode.

    The file is opened at the first use. Calls run in a worker thread, one at a time, on asyncio
    and trio. Several processes of one machine may use a file at once::

        async with SQLiteJournal("brain.db") as journal:
            memory = WindowedMemory(journal=journal, session="alice/42")

    A deletion with ``scrub=True`` rewrites the whole file and empties the ``-wal`` file, so that no
    byte of what was deleted is left in them; if another process reads the file meanwhile, it raises
    an error and is finished by the next such deletion or opening. Copies of the file, snapshots of
    the file system and freed blocks of the disk are out of its reach.

    Args:
        path: The file, created if it is missing; its folder is not. ``":memory:"`` is a database in
            RAM.
        durability: ``"disk"`` (default): what was appended survives a power failure. ``"os"``: it
            survives the end of the process, however it ends; a power failure may take the last
            appends, and what is before them stays whole. ``"memory"`` is for ``":memory:"``, which
            has no other.
        ttl: How long a session is kept after the last append to it, in seconds or as a timedelta;
            None for ever. After that it is as if it were deleted. It is removed when the file is
            opened, at times during appends, and by :meth:`purge`, which also rewrites the file.
        busy_timeout: Seconds to wait while another process writes.
        readonly: Never write to the file or create it; for viewers and backups.
        accept_loss: Open the file although its ``-wal`` file is missing or damaged, without the
            writes that are lost with it. Otherwise that is an error, as the file may be put back.

    Raises:
        MemoryDefinitionError: ``durability`` or ``ttl`` cannot be used.
    """

    has_history = True
    has_leases = True

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        durability: Durability | None = None,
        ttl: float | timedelta | None = None,
        busy_timeout: float = 30.0,
        readonly: bool = False,
        accept_loss: bool = False,
    ) -> None:
        self.path = fspath(path)
        self.readonly = readonly
        self.durability = _durability(self.path, durability)
        self._operations = Operations(self.path, _seconds(ttl))
        self._layout = VERSION
        self._busy_timeout = busy_timeout
        self._accept_loss = accept_loss
        self._files = OpenFiles()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # for several loops; the limiter orders one
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"sqlite_journal_{id(self)}")
        self._leases: sqlite3.Connection | None = None
        self._leases_lock = self._lock if self.path == IN_RAM else threading.Lock()
        self._heartbeat = Heartbeat(self._renew)
        self._purge_at = 0.0
        self._log = Log(None if self.path == IN_RAM else self.path)

    def __repr__(self) -> str:
        return f"SQLiteJournal({self.path!r})"

    # Entries

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """See :meth:`Journal.append`."""

        def write(db: sqlite3.Connection) -> int:
            self._purge_at_times(db)
            return self._operations.append(db, session, entries, expect, lease)

        return await self._write(write)

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""
        page = await self._page(session, after, None, history=history)
        if page.error is not None:
            raise page.error
        return page.entries

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[list[Entry], None]:
        """See :meth:`Journal.pages`; each page is the state of the session when it is read."""
        while True:
            page = await self._page(session, after, size, history=history)
            if page.entries:
                yield page.entries
            if page.error is not None:
                raise page.error
            if len(page.entries) < size:
                break
            after = page.entries[-1].seq

    async def _page(self, session: str, after: int, size: int | None, *, history: bool) -> Page:
        return await self._do(
            lambda db: self._reads(db).page(db, session, after, size, history=history)
        )

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        if history:
            return await super().rows(session, after, history=True)
        return await self._do(lambda db: self._reads(db).rows(db, session, after))

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        return await self._do(lambda db: self._reads(db).last(db, session))

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`. Scrubbing rewrites the whole file."""
        return await self._write(lambda db: self._operations.delete(db, session, seqs, scrub=scrub))

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        return await self._write(lambda db: self._operations.retire(db, session, seqs))

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        return await self._write(lambda db: self._operations.trim(db, session, before, scrub=scrub))

    async def load(self, session: str, entries: Sequence[Entry]) -> None:
        """See :meth:`Journal.load`."""
        await self._write(lambda db: self._operations.load(db, session, entries))

    # Sessions

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        return await self._do(lambda db: self._reads(db).keys(db, prefix))

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        return await self._do(lambda db: self._reads(db).records(db, prefix))

    async def readable_sessions(self) -> list[str]:
        """Return the keys that can be found in a damaged file; for :func:`salvage`."""
        return await self._do(lambda db: self._reads(db).readable_keys(db))

    async def readable_entries(self, session: str) -> tuple[list[Entry], str | None]:
        """Return what can be read of a session, and what cannot; for :func:`salvage`."""
        return await self._do(lambda db: self._reads(db).readable(db, session))

    async def purge(self) -> int:
        """See :meth:`Journal.purge`."""
        return await self._write(lambda db: self._operations.purge(db, scrub=True))

    def _purge_at_times(self, db: sqlite3.Connection) -> None:
        now = time.monotonic()
        if now >= self._purge_at:
            self._purge_at = now + PURGE_EVERY
            self._operations.purge(db, scrub=False)

    # Leases

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        self._heartbeat.remove(lease)
        await self._do_lease(lambda db: leases.release(db, lease))

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Holder | None:
        self._check_writable()
        holder = await self._do_lease(lambda db: leases.take(db, lease, over))
        if holder is None:
            self._heartbeat.add(lease)
        return holder

    async def _do_lease(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._run(lambda: work(self._open_leases()), self._leases_lock)

    def _renew(self, held: Collection[Lease]) -> Collection[str]:
        with self._leases_lock:
            db = self._open_leases()
            self._log.before_write(db)
            return leases.renew(db, held)

    def _open_leases(self) -> sqlite3.Connection:
        """Return the connection for leases; it does not wait for the disk."""
        if self._closed:
            raise self._is_closed()
        if self.path == IN_RAM:
            return self._open()
        if self._leases is None:
            self._leases, _ = connect(
                self.path, self._busy_timeout, synchronous="NORMAL", accept_loss=self._accept_loss
            )
        return self._leases

    # Life

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
            await to_thread.run_sync(self._heartbeat.stop)
            await self._run(self._close)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def on_the_file() -> T:
            db = self._open()
            self._files.check()
            done = work(db)
            self._files.check()
            return done

        return await self._run(on_the_file)

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._check_writable()

        def write(db: sqlite3.Connection) -> T:
            self._log.before_write(db)
            return work(db)

        return await self._do(write)

    def _reads(self, db: sqlite3.Connection) -> Operations | OldOperations:
        """Return the calls that read the file's layout."""
        if self._layout != VERSION:  # another process may have brought it to the present one
            self._layout = db.execute("PRAGMA user_version").fetchone()[0]
        return self._operations if self._layout == VERSION else OldOperations()

    def _check_writable(self) -> None:
        if self.readonly:
            raise JournalError(f"The journal {self.path!r} was opened with readonly=True")

    async def _run(self, work: Callable[[], T], lock: threading.Lock | None = None) -> T:
        """Run ``work`` in a thread; when cancelled, it has either finished or never starts."""
        job = Job(work, lock or self._lock, self.path)
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
            raise self._is_closed()
        if self._connection is None:
            synchronous = "FULL" if self.durability == "disk" else "NORMAL"
            self._connection, self._layout = connect(
                self.path,
                self._busy_timeout,
                readonly=self.readonly,
                synchronous=synchronous,
                accept_loss=self._accept_loss,
            )
            if self.path != IN_RAM:
                self._files = OpenFiles(self.path)
            if not self.readonly:
                self._purge_at_times(self._connection)
        return self._connection

    def _is_closed(self) -> JournalError:
        return JournalError(f"The journal {self.path!r} is closed: make a new SQLiteJournal")

    def _close(self) -> None:
        self._closed = True
        for connection in (self._leases, self._connection):
            if connection is not None:
                connection.close()
        self._leases = self._connection = None


def _durability(path: str, wanted: Durability | None) -> Durability:
    has: tuple[Durability, ...] = ("memory",) if path == IN_RAM else ("disk", "os")
    if wanted is not None and wanted not in has:
        why = (
            "':memory:' ends with the process"
            if path == IN_RAM
            else "a file is on a disk, and what was written survives the end of the process"
        )
        raise MemoryDefinitionError(
            f"SQLiteJournal({path!r}) has no durability={wanted!r}, as {why}: use "
            + " or ".join(map(repr, has))
        )
    return wanted or has[0]


def _seconds(ttl: float | timedelta | None) -> float | None:
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if seconds is not None and not 0 < seconds < math.inf:
        raise MemoryDefinitionError(f"ttl= is a time above 0 in seconds, not {ttl!r}")
    return seconds
