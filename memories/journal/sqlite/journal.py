"""A journal in a SQLite file."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from agent_brain.memories.errors import JournalError, MemoryDefinitionError, MemoryUseError
from agent_brain.memories.journal.base import PAGE, Journal, SessionRecord
from agent_brain.memories.journal.checks import (
    checked_after,
    checked_entries,
    checked_in_thread,
    checked_loaded,
    checked_seconds,
    checked_seqs,
    checked_session,
    checked_size,
)
from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.journal.lease import Heartbeat, Holder, Lease, Owner
from agent_brain.memories.journal.sqlite import leases
from agent_brain.memories.journal.sqlite.entries import Page
from agent_brain.memories.journal.sqlite.file import IN_RAM, OpenFiles, connect, connect_beside
from agent_brain.memories.journal.sqlite.job import Job
from agent_brain.memories.journal.sqlite.layout import VERSION
from agent_brain.memories.journal.sqlite.layout1 import OldOperations
from agent_brain.memories.journal.sqlite.log import Log
from agent_brain.memories.journal.sqlite.operations import Operations
from agent_brain.tools.secrets import get_logger

log = get_logger(__name__)
T = TypeVar("T")
Durability: TypeAlias = Literal["disk", "os", "memory"]
MOST_BUSY, MOST_TTL = 10.0**6, 10.0**10  # seconds
RELEASE_WITHIN = 1000  # milliseconds to wait for other processes when closing
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
        path: The file, created if it is missing; its folder is not. A relative path starts at the
            folder that the process is in now. ``":memory:"`` is a database in RAM.
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
        MemoryDefinitionError: The path, a time or ``durability`` cannot be used.
    """

    has_history = True
    has_leases = True
    has_exchange = True

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
        self.path = _path(path)
        if self.path == IN_RAM and (readonly or accept_loss):
            raise MemoryDefinitionError(
                "readonly= and accept_loss= are for files: ':memory:' is new"
            )
        self.readonly = readonly
        self.durability = _durability(self.path, durability)
        self._operations = Operations(self.path, _ttl(ttl))
        self._layout = VERSION
        self._busy_timeout = _seconds("busy_timeout", busy_timeout, least=0, most=MOST_BUSY)
        self._accept_loss = accept_loss
        self._files = OpenFiles()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._lock = threading.Lock()  # for several loops; the limiter orders one
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"sqlite_journal_{id(self)}")
        self._leases: sqlite3.Connection | None = None
        self._leases_lock = self._lock if self.path == IN_RAM else threading.Lock()
        self._taken: dict[str, Lease] = {}  # by token, until they are released
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
        key, found = checked_session(session), await checked_in_thread(entries, checked_entries)
        checked_seqs([] if expect is None else [expect])

        def write(db: sqlite3.Connection) -> int:
            last = self._operations.append(db, key, found, expect, lease)
            self._purge_at_times(db)
            return last

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
        """See :meth:`Journal.pages`; each page is the state of the session when it is read.

        Raises:
            JournalDamagedError: See :meth:`Journal.pages`.
            JournalError: The session was removed between two pages.
        """
        checked_size(size)
        first: Page | None = None
        while True:
            page = await self._page(session, after, size, history=history)
            first = first or page
            if page.session != first.session:
                raise JournalError(
                    f"Session {session!r} in {self.path!r} was removed while it was read"
                )
            if page.entries:
                yield page.entries
            if page.error is not None:
                raise page.error
            if len(page.entries) < size:
                break
            after = page.entries[-1].seq

    async def _page(self, session: str, after: int, size: int | None, *, history: bool) -> Page:
        key, start = checked_session(session), checked_after(after)
        return await self._do(
            lambda db: self._reads(db).page(db, key, start, size, history=history)
        )

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        if history:
            return await super().rows(session, after, history=True)
        key, start = checked_session(session), checked_after(after)
        return await self._do(lambda db: self._reads(db).rows(db, key, start))

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        key = checked_session(session)
        return await self._do(lambda db: self._reads(db).last(db, key))

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`. Scrubbing rewrites the whole file."""
        key, going = checked_session(session), None if seqs is None else checked_seqs(seqs)
        return await self._write(lambda db: self._operations.delete(db, key, going, scrub=scrub))

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        key, going = checked_session(session), checked_seqs(seqs)
        return await self._write(lambda db: self._operations.retire(db, key, going))

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        key = checked_session(session)
        checked_seqs([] if before is None else [before])
        return await self._write(lambda db: self._operations.trim(db, key, before, scrub=scrub))

    async def load(self, session: str, entries: Sequence[Entry]) -> None:
        """See :meth:`Journal.load`."""
        key, found = checked_session(session), await checked_in_thread(entries, checked_loaded)
        await self._write(lambda db: self._operations.load(db, key, found))

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`."""
        keys = [checked_session(key) for key in remove]
        found = {
            checked_session(key): await checked_in_thread(entries, checked_loaded)
            for key, entries in add.items()
        }
        await self._write(lambda db: self._operations.exchange(db, keys, found))

    # Sessions

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        start = checked_session(prefix)
        return await self._do(lambda db: self._reads(db).keys(db, start))

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        start = checked_session(prefix)
        return await self._do(lambda db: self._reads(db).records(db, start))

    async def readable_sessions(self) -> list[str]:
        """Return the keys that can be found in a damaged file; for ``salvage()``."""
        return await self._do(lambda db: self._reads(db).readable_keys(db))

    async def readable_entries(self, session: str) -> tuple[list[Entry], str | None]:
        """Return what can be read of a session, and what cannot; for ``salvage()``."""
        key = checked_session(session)
        return await self._do(lambda db: self._reads(db).readable(db, key))

    async def purge(self) -> int:
        """See :meth:`Journal.purge`."""
        return await self._write(lambda db: self._operations.purge(db, scrub=True))

    def _purge_at_times(self, db: sqlite3.Connection) -> None:
        now = time.monotonic()
        if now >= self._purge_at:
            self._purge_at = now + PURGE_EVERY
            try:
                self._operations.purge(db, scrub=False)
            except (sqlite3.Error, JournalError) as error:  # the next time, or purge(), does it
                log.warning("Sessions that outlived their ttl were not removed: %s", error)

    # Leases

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        self._heartbeat.remove(lease)
        self._taken.pop(lease.token, None)
        await self._do_lease(lambda db: leases.release(db, [lease]))

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Holder | None:
        checked_session(lease.session)

        def take(db: sqlite3.Connection) -> Holder | None:
            holder = leases.take(db, lease, over)
            if holder is None:
                self._taken[lease.token] = lease
            return holder

        holder = await self._do_lease(take)
        if holder is None:
            self._heartbeat.add(lease)
        return holder

    async def _do_lease(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._check_writable()
        if self._connection is None:
            await self._run(self._open)
        return await self._run(lambda: self._on_leases(work), self._leases_lock)

    def _renew(self, held: Collection[Lease]) -> Collection[str]:
        def renew(db: sqlite3.Connection) -> Collection[str]:
            self._log.before_write(db)
            return leases.renew(db, held)

        with self._leases_lock:
            return self._on_leases(renew)

    def _on_leases(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do work on the connection for leases, which uses the files that :meth:`_open` opened."""
        if self._closed:
            raise self._is_closed()
        if self.path == IN_RAM:
            return work(self._open())
        self._files.check()
        if self._leases is None:
            self._leases = connect_beside(self.path, self._busy_timeout)
        done = work(self._leases)
        self._files.check()
        return done

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
        """Release the leases and close the file. A closed journal cannot be used again."""
        if not self._closed:
            await to_thread.run_sync(self._heartbeat.stop)
            await self._run(self._release_all, self._leases_lock)
            await self._run(self._close)

    def _release_all(self) -> None:
        """Release the leases that are left, if it can be done soon; others end by themselves."""
        here = Owner.here()  # a forked process does not have those of the other one
        left = [lease for lease in self._taken.values() if lease.owner == here]
        self._taken.clear()
        if self._leases is None or not left:
            return
        with suppress(sqlite3.Error):
            self._leases.execute(f"PRAGMA busy_timeout = {RELEASE_WITHIN}")
            leases.release(self._leases, left)

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


def _path(path: object) -> str:
    """Return the absolute path, which stays the same when the process changes its folder."""
    text = fspath(path) if isinstance(path, str | PathLike) else path
    if not isinstance(text, str) or not text or "\0" in text:
        raise MemoryDefinitionError(
            f"SQLiteJournal takes the path of a file, or {IN_RAM!r}, not {path!r}"
        )
    return text if text == IN_RAM else str(Path(text).absolute())


def _ttl(ttl: float | timedelta | None) -> float | None:
    if ttl is None:
        return None
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    return _seconds("ttl", seconds, least=0.001, most=MOST_TTL)


def _seconds(what: str, seconds: float, *, least: float, most: float) -> float:
    try:
        return checked_seconds(what, seconds, least=least, most=most)
    except MemoryUseError as error:
        raise MemoryDefinitionError(f"SQLiteJournal: {error}") from None
