"""A journal in the memory of this process."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from anyio.lowlevel import checkpoint

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import (
    PAGE,
    Journal,
    SessionRecord,
    conflict,
    held_error,
    lost,
)
from agent_brain.memories.journal.checks import (
    as_list,
    check_reading,
    checked_seqs,
    checked_session,
    to_lines,
    to_loaded_lines,
)
from agent_brain.memories.journal.entry import Entry, Line, Lines, Rows, from_milliseconds
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.store.many import ON_LOOP, in_thread_if_many

RETIRED = 4  # the place in a line
_Numbered: TypeAlias = dict[int, Line]  # in order; the garbage collector does not look at lines


@dataclass(slots=True)
class _Session:
    last: int
    entries: _Numbered = field(default_factory=dict)


def _numbered(last: int, entries: Sequence[Entry]) -> _Numbered:
    """Return entries as they are stored behind entry ``last``."""
    now = int(time.time() * 1000)
    lines = enumerate(to_lines(entries), last + 1)
    return {
        seq: (seq, kind, version, now, False, line) for seq, (_, kind, version, _, _, line) in lines
    }


def _to_load(entries: Sequence[Entry]) -> _Numbered:
    now = int(time.time() * 1000)
    found: _Numbered = {}
    for seq, kind, version, at, retired, line in to_loaded_lines(entries):
        found[seq] = (seq, kind, version, now if at is None else at, retired, line)
    return found


class RamJournal(Journal):
    """A journal that ends with the process, for tests and for memories that share a session."""

    persistent = False
    has_history = True
    has_leases = True
    has_exchange = True

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._deleted = 0  # the highest number of a deleted session
        self._closed = False

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """See :meth:`Journal.append`."""
        if expect is not None and type(expect) is not int:
            checked_seqs([expect])
        ready: _Numbered = {}
        ahead = -1
        if type(entries) is list and len(entries) <= ON_LOOP:
            lines: Collection[Line] = to_lines(entries)
        else:  # ready, if nothing else is appended meanwhile
            known = self._find(session)
            ahead = self._deleted if known is None else known.last
            ready = await in_thread_if_many(as_list(entries), partial(_numbered, ahead))
            lines = ready.values()
        known = (type(session) is str and self._sessions.get(session)) or self._find(session)
        found = 0 if known is None else known.last
        holder = (self._held or {}).get(session)
        if lease is not None and lease is not holder and lease != holder:
            raise lost(lease)
        if lease is None and holder is not None:
            raise held_error(holder)
        if expect is not None and expect != found:
            raise conflict(session, expect, found)
        if not lines:
            return found
        into = known or self._sessions.setdefault(session, _Session(self._deleted))
        now, last = int(time.time() * 1000), into.last
        if last == ahead:
            into.entries.update(ready)
            last += len(ready)
        else:
            for _, kind, version, _, _, line in lines:
                last += 1
                into.entries[last] = (last, kind, version, now, False, line)
        into.last = last
        return last

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""
        found = self._after(session, after, history=history)
        return await in_thread_if_many(found, list)

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[Sequence[Entry], None]:
        """See :meth:`Journal.pages`; other tasks run before each page."""
        check_reading(session, after, size)
        found = self._after(session, after, history=history)
        for start in range(0, len(found), size):
            await checkpoint()
            yield found[start : start + size]

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        found = self._after(session, after, history=history)
        return await in_thread_if_many(found, lambda lines: Rows.of_pages([lines]))

    def _after(self, session: str, after: int, *, history: bool) -> Lines:
        known = self._find(session)
        check_reading(session, after)
        found: list[Line] = []
        for line in () if known is None else reversed(known.entries.values()):
            if line[0] <= after:
                break
            if history or not line[RETIRED]:
                found.append(line)
        return Lines(found[::-1])

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        known = self._find(session)
        return 0 if known is None else known.last

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`."""
        known = self._find(session)
        seqs = None if seqs is None else checked_seqs(seqs)
        if seqs is None:
            (self._held or {}).pop(session, None)  # also of a session without entries
        if known is None:
            return 0
        if seqs is None:
            del self._sessions[session]
            self._deleted = max(self._deleted, known.last)
            return len(known.entries)
        return sum(known.entries.pop(seq, None) is not None for seq in seqs)

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        known = self._find(session)
        entries = {} if known is None else known.entries
        known_seqs = [seq for seq in checked_seqs(seqs) if seq in entries]
        going = [seq for seq in known_seqs if not entries[seq][RETIRED]]
        for seq in going:
            entries[seq] = (*entries[seq][:4], True, entries[seq][5])
        return len(going)

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        known = self._find(session)
        checked_seqs([] if before is None else [before])
        entries = {} if known is None else known.entries
        going = [
            seq
            for seq, stored in entries.items()
            if stored[RETIRED] and (before is None or seq < before)
        ]
        return await self.delete(session, going, scrub=scrub)

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`."""
        self._check_open()
        added = {
            checked_session(key): await in_thread_if_many(as_list(entries), _to_load)
            for key, entries in add.items()
        }
        for key in remove:
            checked_session(key)
        for key in added.keys() - {*remove}:
            if found := await self.last(key):
                raise conflict(key, 0, found)
        for key in remove:
            await self.delete(key)
        for key, some in added.items():
            if some:  # a writer that knows a deleted session must see that this is another one
                self._sessions[key] = _Session(max([*some, self._deleted + 1]), some)

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        self._check_open()
        checked_session(prefix)
        return sorted(session for session in self._sessions if session.startswith(prefix))

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        found = []
        for key in await self.sessions(prefix):
            known = self._sessions[key]
            times = [from_milliseconds(line[3] or 0) for line in known.entries.values()]
            first, newest = (min(times), max(times)) if times else (None, None)
            found.append(SessionRecord(key, first, newest, len(times), known.last))
        return found

    async def purge(self) -> int:
        """See :meth:`Journal.purge`."""
        self._check_open()
        return 0

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        self._check_open()
        await super().release(lease)

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Lease | None:
        self._check_open()
        return await super()._take_lease(lease, over=over)

    async def aclose(self) -> None:
        """Drop everything."""
        self._closed = True
        self._sessions.clear()
        self._held = None

    def _find(self, session: str) -> _Session | None:
        """Return a session of this journal, which must be open; None if there is none."""
        if self._closed or not isinstance(session, str):
            self._check_open()
            checked_session(session)
        return self._sessions.get(session)

    def _check_open(self) -> None:
        if self._closed:
            raise JournalError("This RamJournal is closed")
