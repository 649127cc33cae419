"""A journal that dies at one of its writes, over a store that outlives it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from agent_brain.memories import Entry, Journal
from agent_brain.memories.journal.lease import Lease

T = TypeVar("T")


class Killed(BaseException):
    """The process is dead; not to be caught."""


class MortalJournal(Journal):
    """Passes everything but leases on to ``store`` until it dies; then every call fails.

    Args:
        store: What is on the disk.
        dies_at: The number of the write (an append or a deletion) that it dies at, from 1; None:
            only :meth:`die` ends it.
        after: It dies when that write is done, otherwise before it has begun.
        error: What is raised. One that is no kill is raised once, and the journal lives on.
    """

    has_history = True

    def __init__(
        self,
        store: Journal,
        dies_at: int | None = None,
        *,
        after: bool = False,
        error: type[BaseException] = Killed,
    ) -> None:
        self.store = store
        self.dies_at = dies_at
        self.after = after
        self.error = error
        self.writes = 0
        self.appends = 0
        self.dead = False

    def die(self) -> None:
        """Write nothing from now on."""
        self.dead = True

    def _die(self) -> None:
        self.dead = self.error is Killed
        raise self.error("killed")

    def _check(self) -> None:
        if self.dead:
            raise Killed("dead")

    async def _write(self, work: Callable[[], Awaitable[T]]) -> T:
        self._check()
        self.writes += 1
        due = self.writes == self.dies_at
        if due and not self.after:
            self._die()
        done = await work()
        if due:
            self._die()
        return done

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        self.appends += bool(entries)
        return await self._write(lambda: self.store.append(session, entries, expect=expect))

    async def load(self, session: str, entries: Sequence[Entry]) -> None:
        await self._write(lambda: self.store.load(session, entries))

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        await self._write(lambda: self.store.exchange(remove, add))

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        self._check()
        return await self.store.read(session, after, history=history)

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        return await self._write(lambda: self.store.retire(session, seqs))

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        return await self._write(lambda: self.store.trim(session, before, scrub=scrub))

    async def last(self, session: str) -> int:
        self._check()
        return await self.store.last(session)

    async def sessions(self, prefix: str = "") -> list[str]:
        self._check()
        return await self.store.sessions(prefix)

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        return await self._write(lambda: self.store.delete(session, seqs, scrub=scrub))
