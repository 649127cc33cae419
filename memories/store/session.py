"""One session of a journal, as one memory reads and writes it."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from agent_brain.memories.errors import (
    JournalConflictError,
    JournalError,
    LeaseHeldError,
    SessionConflictError,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, Row, Rows, to_line
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.store.kinds import current
from agent_brain.memories.store.lock import Lock
from agent_brain.memories.store.run_record import RunRecord
from agent_brain.tools.secrets import get_logger

log = get_logger(__name__)
History: TypeAlias = int | Literal["all", "last"]
PRUNE_AT = 128  # outdated entries that may gather before they are removed


def session_key(session: str, tenant: str | None = None) -> str:
    """Return the key of a tenant's session in a journal; no two pairs have the same key."""
    return json.dumps([tenant, session], ensure_ascii=False)


def read_session_key(key: str) -> tuple[str, str | None]:
    """Return the session and the tenant of a key that :func:`session_key` returned."""
    tenant, session = json.loads(key)
    return session, tenant


class Session:
    """A session as one memory knows it: what it has read, and what it may write.

    Attributes:
        key: The session's key in the journal.
        shared: Whether other memories append at the same time.
        history: How many steps are kept.
        lease: The lease of the run that uses the memory.
        lock: Held while something is written, so that the writes of one memory keep their order.
        last: The last sequence number that this memory knows.
        doubt: The entries of an interrupted append, until it is known whether they were written.
        landed: Whether the last reading found the interrupted append in the journal.
        run: What the session has of the state of a run.
    """

    def __init__(
        self,
        journal: Journal,
        session: str,
        tenant: str | None,
        *,
        shared: bool = False,
        history: History = "last",
    ) -> None:
        self.journal = journal
        self.key = session_key(session, tenant)
        self.shared = shared
        self.history = history
        self.lease: Lease | None = None
        self.lock = Lock()
        self.last = 0
        self.doubt: list[Entry] | None = None
        self.landed = False
        self.run = RunRecord()
        self._outdated: list[int] = []
        kept = history if isinstance(history, int) else 0
        self._steps: deque[int] = deque(maxlen=kept + 1)  # the last ones of this memory

    async def append(self, entries: list[Entry]) -> int:
        """Write ``entries``; return the sequence number of the first one.

        Raises:
            SessionConflictError: Another memory has written to the session.
        """
        try:
            last = await self._write(entries)
        except JournalConflictError as error:
            raise self.conflict(error.found) from error
        except BaseException:
            if not self.shared:
                self.doubt = entries
            raise
        self.last = last
        return last - len(entries) + 1

    async def _write(self, entries: list[Entry]) -> int:
        if not self.journal.has_leases:
            return await self.journal.append(self.key, entries, expect=self.last)
        try:
            lease = self.lease
            return await self.journal.append(self.key, entries, expect=self.last, lease=lease)
        except LeaseHeldError:  # the lease of a process that has ended may be in the way
            lease = await self.journal.acquire(self.key)
            try:
                return await self.journal.append(self.key, entries, expect=self.last, lease=lease)
            finally:
                await self.journal.release(lease)

    async def acquire(self, wait: float) -> None:
        """Get the lease of the session.

        Raises:
            LeaseHeldError: Another runner has it, and does not release it in time.
        """
        self.lease = await self.journal.acquire(self.key, wait=wait)

    async def release(self) -> None:
        """Give the lease back, if there is one; if that fails, it ends by itself."""
        lease, self.lease = self.lease, None
        if lease is not None:
            try:
                await self.journal.release(lease)
            except JournalError as error:
                log.warning("The lease of session %s could not be released: %s", self.key, error)

    def note_step(self, seq: int) -> None:
        """Note that an entry is a step, for :meth:`prune`."""
        self._steps.append(seq)

    def outdate(self, seqs: Iterable[int]) -> None:
        """Note entries that are outdated, to be removed later."""
        self._outdated.extend(seqs)

    async def remove(self, seqs: Iterable[int]) -> None:
        """Remove entries physically and leave no copy of their data."""
        await self.journal.delete(self.key, list(seqs))

    async def drop_history(self) -> None:
        """Remove the history; a removal that leaves no copies follows, except if it is shared."""
        if self.journal.has_history:
            await self.journal.trim(self.key, scrub=self.shared)

    async def read(self) -> Rows:
        """Return all entries of the session, and take the last one as known.

        Raises:
            SessionConflictError: An append was interrupted, and another memory has written since.
        """
        last = await self.journal.last(self.key)
        rows = _as_rows(await self.journal.rows(self.key))
        if rows and rows.seqs[-1] > last:
            rows = rows[: bisect_right(rows.seqs, last)]
        self.landed = False
        if self.doubt is not None:
            self._settle_doubt(rows, last)
        self.last = last
        self._outdated = []
        self.run.reset()
        return current(rows)

    async def rows(self, after: int = 0, *, history: bool = False) -> Rows:
        """Return the entries after a sequence number, in their current form."""
        if history and self.journal.has_history:
            return current(await self.journal.rows(self.key, after, history=True))
        return current(_as_rows(await self.journal.rows(self.key, after)))

    async def read_new(self) -> Rows | None:
        """Return the entries that were written since the last reading.

        None if some of them are gone again: what they removed is seen by reading the session.
        """
        last = await self.journal.last(self.key)
        if last <= self.last:
            return Rows()
        rows = _as_rows(await self.journal.rows(self.key, self.last))
        last = max([last, *rows.seqs[-1:]])
        complete = len(rows) == last - self.last
        self.last = last
        return current(rows) if complete else None

    def _settle_doubt(self, rows: Rows, last: int) -> None:
        """Check that everything new is what the interrupted append tried to write.

        Some of it may be missing: another memory that opened the session finishes a deletion.
        """
        attempt, self.doubt = self.doubt or [], None
        first = last - len(attempt) + 1
        tried = {first + at: (e.kind, to_line(e.data)) for at, e in enumerate(attempt)}
        new = [row for row in rows if row[0] > self.last]
        if any(tried.get(seq) != (kind, line) for seq, kind, line in new):
            raise self.conflict(last)
        self.landed = bool(new) or (last > self.last and attempt[0].kind == "forget")

    def conflict(self, found: int) -> SessionConflictError:
        """Return the error of a memory that does not know the last entry of the session."""
        return SessionConflictError(
            f"Session {self.key} was written to by another memory, in this process or another one: "
            f"it is at entry {found}, and this memory knows it up to {self.last}. Nothing was "
            "written. Call reopen() on this memory to read what the other one wrote and try again; "
            "give each writer a session of its own; or open it with shared=True in all of them",
            session=self.key,
            expected=self.last,
            found=found,
        )

    @property
    def prunable(self) -> bool:
        """Whether there are many outdated entries."""
        return len(self._outdated) >= PRUNE_AT

    async def prune(self) -> None:
        """Retire outdated entries, and remove those that are older than the history."""
        seqs, self._outdated = self._outdated, []
        if self.history == "last":
            await self.journal.delete(self.key, seqs, scrub=False)
            return
        await self.journal.retire(self.key, seqs)
        if self.history != "all" and len(self._steps) > self.history:
            await self.journal.trim(self.key, self._steps[0])


def _as_rows(found: Sequence[Row]) -> Rows:
    """Return rows as columns; a journal of a user's own may return a list."""
    return found if isinstance(found, Rows) else Rows(found)
