"""What journals whose calls run in threads share: the calls, leases and closing."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TypeVar

import anyio
from anyio import to_thread

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.calls import Calls
from agent_brain.memories.journal.checks import checked_session
from agent_brain.memories.journal.lease import Heartbeat, Holder, Lease, Owner

T = TypeVar("T")


class ThreadedJournal(Journal):
    """Base class for journals whose calls run in worker threads, on asyncio and trio.

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
        self._calls = Calls(at_once, f"{place} is closed: make a new {type(self).__name__}")
        self._patience = patience
        self._leases: dict[str, Lease] = {}  # those that were got and not given back
        self._heartbeat = Heartbeat(self._renew)
        self._opened = self._closed = False
        self._opening = threading.Lock()

    # For subclasses; all of these are called in threads

    @abstractmethod
    def _open(self) -> None:
        """Connect and check the store. Called once, before anything else."""

    @abstractmethod
    def _take(self, lease: Lease, over: str | None) -> Holder | None:
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

    # Calls

    async def _call(self, work: Callable[[], T], session: str | None = None) -> T:
        """Run ``work`` in a thread, after other calls on the same session."""

        def run() -> T:
            self._ensure_open()
            return work()

        return await self._calls.run(run, session)

    def _ensure_open(self) -> None:
        if not self._opened:
            with self._opening:
                if not self._opened:
                    self._open()
                    self._opened = True

    def _check_writable(self) -> None:
        if self.readonly:
            raise JournalError(f"The {self._place} was opened with readonly=True")

    async def lasts(self, prefix: str = "") -> dict[str, int]:
        """See :meth:`Journal.lasts`."""
        return {record.key: record.last for record in await self.records(prefix)}

    # Leases

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        self._check_writable()
        self._heartbeat.remove(lease)
        await self._call(lambda: self._give(lease), lease.session)
        self._leases.pop(lease.token, None)

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Holder | None:
        self._check_writable()
        checked_session(lease.session)

        def take() -> Holder | None:
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
                raise self._calls.is_closed()
        return holder

    # Life

    async def aclose(self) -> None:
        """Give back all leases, and close the connections, when the running calls have ended.

        A closed journal cannot be used again.
        """
        if not self._closed:
            self._closed = True
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._close)

    def _close(self) -> None:
        self._calls.close(self._patience)
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
