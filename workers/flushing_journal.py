"""A journal that stores the events of a step before the step itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_brain.memories.errors import LeaseLostError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.journal.lease import Lease


@Journal.register
class FlushingJournal:
    """Another journal, which is used for everything.

    Attributes:
        closed: Whether it stores nothing any more, as if the process had ended.

    Args:
        inner: The other journal. Its creator closes it.
        flush: Called before an entry that completes a step is stored.
        lease: How long leases last, in seconds.
    """

    def __init__(
        self, inner: Journal, flush: Callable[[], Awaitable[None]], *, lease: float
    ) -> None:
        self._lease = lease
        self.closed = False
        self._inner = inner
        self._flush = flush

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append(self, session: str, entries: Sequence[Entry], **options: Any) -> int:
        """See :meth:`Journal.append`."""
        if any(entry.kind == "step" for entry in entries):
            await self._flush()
        if self.closed:  # perhaps as another flush, for which this one waited, has failed
            raise LeaseLostError("Another worker continues the run", session=session)
        return await self._inner.append(session, entries, **options)

    async def acquire(self, session: str, *, wait: float = 0) -> Lease:
        """See :meth:`Journal.acquire`."""
        return await self._inner.acquire(session, seconds=self._lease, wait=wait)

    async def aclose(self) -> None:
        """Do nothing: who made the other journal closes it."""

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`."""
        return self._inner.same_as(getattr(other, "_inner", other))
