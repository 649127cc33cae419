"""Workers that are alive, and those that have died."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Awaitable, Callable

import anyio

from agent_brain.common.ids import new_id
from agent_brain.errors import WorkerLostError
from agent_brain.memories.errors import JournalConflictError, LeaseHeldError, LeaseLostError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.journal.lease import Lease

PLACE = "agent-brain/workers"
CONFIRM_EVERY = 5.0  # seconds at most


def worker_name() -> str:
    """Return a name for this process that no other has."""
    return new_id(f"{socket.gethostname()[:60]}-{os.getpid()}")


def _key(worker: str) -> str:
    return json.dumps([None, PLACE, worker], ensure_ascii=False)


class Liveness:
    """A worker's sign of life: a lease in the journal.

    It ends with the process, at once for other processes of the machine, else after ``seconds``.

    Args:
        journal: The journal.
        worker: The name of the worker.
        seconds: How long the lease lasts if the process does not renew it.
    """

    def __init__(self, journal: Journal, worker: str, *, seconds: float) -> None:
        self._journal = journal
        self._worker = worker
        self._seconds = seconds
        self._lease: Lease | None = None
        self._last = 0
        self._confirmed = 0.0

    async def begin(self) -> None:
        """Be alive from now on."""
        self._lease = await self._journal.acquire(_key(self._worker), seconds=self._seconds)
        await self.confirm()

    async def confirm(self) -> None:
        """Check that no other worker has taken this one for dead, unless that is known.

        Raises:
            WorkerLostError: One has.
        """
        now = anyio.current_time()
        if now - self._confirmed < min(self._seconds / 3, CONFIRM_EVERY):
            return
        key, before = _key(self._worker), self._last
        try:
            self._last = await self._journal.append(key, [Entry("alive", None)], lease=self._lease)
        except (LeaseLostError, LeaseHeldError, JournalConflictError) as error:
            raise WorkerLostError(
                f"This worker was silent for more than {self._seconds:.0f} s, and others have "
                "taken over its runs. Start it again"
            ) from error
        self._confirmed = now
        if before:
            await self._journal.delete(key, [before], scrub=False)

    async def end(self) -> None:
        """Leave no sign."""
        if self._lease is not None:
            await self._journal.delete(_key(self._worker), scrub=False)
            await self._journal.release(self._lease)

    async def replace_dead(self, worker: str, take_over: Callable[[str], Awaitable[None]]) -> bool:
        """Call ``take_over`` if another worker has died; return whether it has.

        One worker at a time does it.
        """
        key = _key(worker)
        try:
            lease = await self._journal.acquire(key, seconds=self._seconds)
        except LeaseHeldError:
            return False
        try:
            await take_over(worker)
            await self._journal.delete(key, scrub=False)
        finally:
            await self._journal.release(lease)
        return True
