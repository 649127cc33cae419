"""What journals whose calls run in threads share: arguments, calls, leases and closing."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import PAGE, Journal, SessionRecord
from agent_brain.memories.journal.checks import (
    as_list,
    check_reading,
    checked_seqs,
    checked_session,
    to_lines,
    to_loaded_lines,
)
from agent_brain.memories.journal.entry import Entry, Line, Lines, Rows
from agent_brain.memories.journal.lease import Heartbeat, Lease, Owner

T = TypeVar("T")
READ = 1000  # entries that read() and rows() get from the store at once
CONTENT = itemgetter(1, 2, 5)  # of a line, without what the store adds
Change: TypeAlias = Literal["clear", "delete", "retire", "trim"]


class LostError(JournalError):
    """The connection to the store broke.

    Attributes:
        in_doubt: Whether the call may have been done.
    """

    def __init__(self, message: str, *, in_doubt: bool) -> None:
        super().__init__(message)
        self.in_doubt = in_doubt


@dataclass
class _Loop:
    """What orders the calls of one event loop."""

    limiter: CapacityLimiter
    turns: WeakValueDictionary[str, anyio.Lock] = field(default_factory=WeakValueDictionary)


class ThreadedJournal(Journal):
    """Base class for journals whose calls run in worker threads, on asyncio and trio.

    A call that is cancelled has either finished or never starts, before the next call on the same
    session does anything.

    Args:
        place: The journal, for people.
        at_once: How many calls of an event loop may run at once.
        patience: How long :meth:`aclose` waits for calls that run, in seconds.
        readonly: Never write.
    """

    has_history = True
    has_leases = True
    has_exchange = True

    def __init__(self, place: str, *, at_once: int, patience: float, readonly: bool) -> None:
        self.readonly = readonly
        self._place = place
        self._at_once = at_once
        self._patience = patience
        self._loop: RunVar[_Loop] = RunVar(f"journal_calls_{id(self)}")
        self._running: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._count = 0  # of the calls that run
        self._counting = threading.Condition()
        self._leases: dict[str, Lease] = {}  # those that were got and not given back
        self._heartbeat = Heartbeat(self._renew)
        self._opened = self._closed = False
        self._opening = threading.Lock()

    # For subclasses; all of these are called in threads

    @abstractmethod
    def _open(self) -> None:
        """Connect and check the store. Called once, before anything else."""

    @abstractmethod
    def _append(
        self, session: str, lines: Sequence[Line], expect: int | None, lease: Lease | None
    ) -> int:
        """See :meth:`Journal.append`."""

    @abstractmethod
    def _pages(
        self, session: str, after: int, size: int, *, history: bool, whole: bool
    ) -> Iterator[Lines]:
        """Yield the entries in pages that are not empty; raise the error of a damage after them.

        Args:
            session: The session's key.
            after: See :meth:`Journal.read`.
            size: The most entries of a page.
            history: See :meth:`Journal.read`.
            whole: Read one state of the session, if the store can.
        """

    def _rows(self, session: str, after: int, *, history: bool) -> Rows:
        """See :meth:`Journal.rows`."""
        pages = self._pages(session, after, READ, history=history, whole=True)
        return Rows.of_pages(pages)

    @abstractmethod
    def _last(self, session: str) -> int:
        """See :meth:`Journal.last`."""

    @abstractmethod
    def _change(self, session: str, change: Change, seqs: Sequence[int], *, scrub: bool) -> int:
        """Remove or retire entries; return how many.

        Args:
            session: The session's key.
            change: What to do: ``"clear"`` removes the session, ``"trim"`` retired entries.
            seqs: The numbers of the entries; those to trim are smaller than the only one, if any.
            scrub: See :meth:`Journal.delete`.
        """

    @abstractmethod
    def _exchange(self, remove: Sequence[str], add: Mapping[str, Sequence[Line]]) -> None:
        """See :meth:`Journal.exchange`."""

    @abstractmethod
    def _records(self, prefix: str) -> list[SessionRecord]:
        """See :meth:`Journal.records`."""

    def _names(self, prefix: str) -> list[str]:
        """See :meth:`Journal.sessions`."""
        return [record.key for record in self._records(prefix)]

    @abstractmethod
    def _purge(self) -> int:
        """See :meth:`Journal.purge`."""

    @abstractmethod
    def _take(self, lease: Lease, over: str | None) -> Lease | None:
        """See :meth:`Journal._take_lease`."""

    @abstractmethod
    def _give(self, lease: Lease) -> None:
        """Remove a lease, unless it was taken over."""

    @abstractmethod
    def _renew(self, leases: Collection[Lease]) -> Collection[str]:
        """Renew leases; return the tokens of those that were lost."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close all connections, when what runs in them has ended."""

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
        self._check_writable(session)
        given = as_list(entries)
        checked_seqs([] if expect is None else [expect])

        def append() -> int:
            lines = to_lines(given)
            try:
                return self._append(session, lines, expect, lease)
            except LostError as error:
                if expect is None or not error.in_doubt:
                    raise
            pages = self._pages(session, expect, READ, history=False, whole=True)
            stored = [line for page in pages for line in page.lines]
            if stored and [*map(CONTENT, stored)] == [*map(CONTENT, lines)]:
                return stored[-1][0]
            return self._append(session, lines, expect, lease)

        return await self._call(append, session)

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""

        def read() -> list[Entry]:
            pages = self._pages(session, after, READ, history=history, whole=True)
            return [entry for page in pages for entry in page]

        check_reading(session, after)
        return await self._call(read, session)

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        check_reading(session, after)
        return await self._call(lambda: self._rows(session, after, history=history), session)

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[Sequence[Entry], None]:
        """See :meth:`Journal.pages`; each page is the state of the session when it is read.

        Raises:
            JournalDamagedError: See :meth:`Journal.pages`.
            JournalError: The session was removed between two pages.
        """
        check_reading(session, after, size)
        pages = self._pages(session, after, size, history=history, whole=False)
        while page := await self._call(lambda: next(pages, None), session):
            yield page

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        checked_session(session)
        return await self._call(lambda: self._last(session), session)

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`; the class says what scrubbing does."""
        change: Change = "clear" if seqs is None else "delete"
        return await self._do(session, change, seqs or (), scrub=scrub)

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        return await self._do(session, "retire", seqs, scrub=False)

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        return await self._do(session, "trim", () if before is None else (before,), scrub=scrub)

    async def _do(self, session: str, change: Change, seqs: Collection[int], *, scrub: bool) -> int:
        self._check_writable(session)
        numbers = checked_seqs(seqs)
        return await self._call(
            lambda: self._change(session, change, numbers, scrub=scrub), session
        )

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`."""
        self._check_writable(*remove, *add)
        going, coming = [*remove], {key: as_list(some) for key, some in add.items()}

        def exchange() -> None:
            self._exchange(going, {key: to_loaded_lines(some) for key, some in coming.items()})

        await self._call(exchange, next(iter(add), None))

    # Sessions

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        checked_session(prefix)
        return await self._call(lambda: self._names(prefix))

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        checked_session(prefix)
        return await self._call(lambda: self._records(prefix))

    async def lasts(self, prefix: str = "") -> dict[str, int]:
        """See :meth:`Journal.lasts`."""
        return {record.key: record.last for record in await self.records(prefix)}

    async def purge(self) -> int:
        """See :meth:`Journal.purge`."""
        self._check_writable()
        return await self._call(self._purge)

    # Leases

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        self._check_writable()
        self._heartbeat.remove(lease)
        await self._call(lambda: self._give(lease), lease.session)
        self._leases.pop(lease.token, None)

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Lease | None:
        self._check_writable(lease.session)

        def take() -> Lease | None:
            holder = self._take(lease, over)
            if holder is None:
                self._leases[lease.token] = lease
            return holder

        try:
            holder = await self._call(take, lease.session)
        except JournalError:
            raise
        except BaseException:  # cancelled, and nobody will give it back
            with anyio.CancelScope(shield=True), suppress(JournalError):
                await self.release(lease)
            raise
        if holder is None:
            if not self._closed:
                self._heartbeat.add(lease)
            if self._closed:  # meanwhile, perhaps by another thread: aclose() gives it back
                self._heartbeat.remove(lease)
                raise self._is_closed()
        return holder

    # Calls

    def _check_writable(self, *sessions: str) -> None:
        """Check that sessions may be written to."""
        if self.readonly:
            raise JournalError(f"The {self._place} was opened with readonly=True")
        for session in sessions:
            checked_session(session)

    async def _call(self, work: Callable[[], T], session: str | None = None) -> T:
        """Run ``work`` in a thread, after other calls on the same session."""
        loop = self._loop.get(None)
        if loop is None:
            self._loop.set(loop := _Loop(CapacityLimiter(self._at_once)))
        if session is None:
            return await to_thread.run_sync(self._run_work, work, limiter=loop.limiter)
        # A task that asyncio cancels does not wait for its thread, and there may be other loops.
        with self._counting:
            running = self._running.setdefault(session, threading.Lock())
        abandoned = False

        def run() -> T:
            with running:
                if abandoned:
                    raise JournalError("The call was cancelled before it began")
                return self._run_work(work)

        async with loop.turns.setdefault(session, anyio.Lock()):
            try:
                return await to_thread.run_sync(run, limiter=loop.limiter)
            except BaseException:
                abandoned = True
                raise

    def _run_work(self, work: Callable[[], T]) -> T:
        with self._counting:
            if self._closed:
                raise self._is_closed()
            self._count += 1
        try:
            with self._opening:
                if not self._opened:
                    self._open()
                    self._opened = True
            return work()
        finally:
            with self._counting:
                self._count -= 1
                self._counting.notify_all()

    # Life

    def _is_closed(self) -> JournalError:
        """Return the error of a call that comes too late."""
        return JournalError(f"The {self._place} is closed: make a new {type(self).__name__}")

    async def aclose(self) -> None:
        """Give back all leases, and close the connections, when the running calls have ended.

        A closed journal cannot be used again.
        """
        if not self._closed:
            self._closed = True
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._close)

    def _close(self) -> None:
        with self._counting:
            self._counting.wait_for(lambda: not self._count, self._patience)
        self._heartbeat.stop()
        here = Owner.here()  # a forked process does not have those of the other one
        mine = [lease for lease in self._leases.values() if lease.owner == here]
        self._leases.clear()
        with suppress(JournalError):  # they end by themselves then
            self._give_all(mine)
        self._disconnect()

    def _give_all(self, leases: Collection[Lease]) -> None:
        for lease in leases:
            self._give(lease)
