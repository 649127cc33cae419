"""Journals that end as a killed process does."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent_brain.memories import Journal
from agent_brain.memories.journal import Entry


class Killed(BaseException):
    """The process is gone: nothing that it would do now reaches the journal."""


class MortalJournal(Journal):
    """Passes everything on to ``store`` until it dies; a process that is killed writes no more.

    Args:
        store: The journal that stays behind.
        appends: How many appends succeed; the last of them is written, and kills. None: die() does.
    """

    def __init__(self, store: Journal, appends: int | None = None) -> None:
        self.store = store
        self.appends = appends
        self.written = 0
        self.dead = False

    def die(self) -> None:
        """Write nothing from now on."""
        self.dead = True

    async def append(
        self, session: str, entries: Sequence[Entry], *, expect: int | None = None
    ) -> int:
        self._check()
        last = await self.store.append(session, entries, expect=expect)
        self.written += 1
        if self.written == self.appends:
            self.dead = True
            raise Killed
        return last

    async def read(self, session: str, after: int = 0) -> list[Entry]:
        self._check()
        return await self.store.read(session, after)

    async def last(self, session: str) -> int:
        self._check()
        return await self.store.last(session)

    async def sessions(self, prefix: str = "") -> list[str]:
        self._check()
        return await self.store.sessions(prefix)

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        self._check()
        return await self.store.delete(session, seqs, scrub=scrub)

    def _check(self) -> None:
        if self.dead:
            raise Killed
