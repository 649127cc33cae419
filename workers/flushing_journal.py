"""A journal that stores the events of a step before the step itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence

from agent_brain.memories.errors import LeaseLostError
from agent_brain.memories.journal.base import LEASE, PAGE, Journal, SessionRecord
from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.journal.lease import Lease


class FlushingJournal(Journal):
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
        self.persistent = inner.persistent  # type: ignore[misc]
        self.has_history = inner.has_history  # type: ignore[misc]
        self.has_leases = inner.has_leases  # type: ignore[misc]
        self.has_exchange = inner.has_exchange  # type: ignore[misc]

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """See :meth:`Journal.append`."""
        if any(entry.kind == "step" for entry in entries):
            await self._flush()
        if self.closed:  # perhaps as another flush, for which this one waited, has failed
            raise LeaseLostError("Another worker continues the run", session=session)
        return await self._inner.append(session, entries, expect=expect, lease=lease)

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""
        return await self._inner.read(session, after, history=history)

    def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[list[Entry], None]:
        """See :meth:`Journal.pages`."""
        return self._inner.pages(session, after, history=history, size=size)

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        return await self._inner.rows(session, after, history=history)

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        return await self._inner.last(session)

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`."""
        return await self._inner.delete(session, seqs, scrub=scrub)

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        return await self._inner.retire(session, seqs)

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        return await self._inner.trim(session, before, scrub=scrub)

    async def load(self, session: str, entries: Sequence[Entry]) -> None:
        """See :meth:`Journal.load`."""
        await self._inner.load(session, entries)

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`."""
        await self._inner.exchange(remove, add)

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        return await self._inner.sessions(prefix)

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        return await self._inner.records(prefix)

    async def lasts(self, prefix: str = "") -> dict[str, int]:
        """See :meth:`Journal.lasts`."""
        return await self._inner.lasts(prefix)

    async def purge(self) -> int:
        """See :meth:`Journal.purge`."""
        return await self._inner.purge()

    async def acquire(self, session: str, *, seconds: float = LEASE, wait: float = 0) -> Lease:
        """See :meth:`Journal.acquire`."""
        return await self._inner.acquire(session, seconds=self._lease, wait=wait)

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        await self._inner.release(lease)

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`."""
        return self._inner.same_as(other._inner if isinstance(other, FlushingJournal) else other)
