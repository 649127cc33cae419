"""A journal in the memory of this process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal, conflict
from agent_brain.memories.journal.entry import Entry, Row, from_line, to_line


class RamJournal(Journal):
    """A journal that ends with the process, for tests and for memories that share a session."""

    persistent = False

    def __init__(self) -> None:
        self._entries: dict[str, dict[int, tuple[str, str]]] = {}
        self._last: dict[str, int] = {}
        self._count = count(1)
        self._closed = False

    async def append(
        self, session: str, entries: Sequence[Entry], *, expect: int | None = None
    ) -> int:
        """See :meth:`Journal.append`."""
        self._check_open()
        found = self._last.get(session, 0)
        if expect is not None and expect != found:
            raise conflict(session, expect, found)
        lines = [(entry.kind, to_line(entry.data)) for entry in entries]
        for line in lines:
            found = next(self._count)
            self._entries.setdefault(session, {})[found] = line
            self._last[session] = found
        return found

    async def read(self, session: str, after: int = 0) -> list[Entry]:
        """See :meth:`Journal.read`."""
        rows = await self.rows(session, after)
        return [Entry(kind, from_line(line), seq) for seq, kind, line in rows]

    async def rows(self, session: str, after: int = 0) -> list[Row]:
        """See :meth:`Journal.rows`."""
        self._check_open()
        found = []
        for seq, (kind, line) in reversed(self._entries.get(session, {}).items()):
            if seq <= after:
                break
            found.append((seq, kind, line))
        return found[::-1]

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        self._check_open()
        return self._last.get(session, 0)

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        self._check_open()
        return sorted(session for session in self._last if session.startswith(prefix))

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`."""
        self._check_open()
        if seqs is None:
            self._last.pop(session, None)
            return len(self._entries.pop(session, {}))
        entries = self._entries.get(session, {})
        return sum(entries.pop(seq, None) is not None for seq in seqs)

    async def aclose(self) -> None:
        """Drop everything."""
        self._closed = True
        self._entries.clear()
        self._last.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise JournalError("This RamJournal is closed")
