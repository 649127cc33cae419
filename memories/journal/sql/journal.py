"""The journal in a SQL database. Base of the two that users name."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import PAGE, SessionRecord
from agent_brain.memories.journal.checks import (
    as_list,
    checked_after,
    checked_seqs,
    checked_session,
    checked_size,
    to_lines,
    to_loaded_lines,
)
from agent_brain.memories.journal.entry import Entry, Lines, Rows, from_milliseconds
from agent_brain.memories.journal.lease import Holder, Lease
from agent_brain.memories.journal.sql import entries as stored
from agent_brain.memories.journal.sql import sessions, writing
from agent_brain.memories.journal.sql.database import Database, Kind, Transaction
from agent_brain.memories.journal.sql.sessions import Counts, Key
from agent_brain.memories.journal.threaded import ThreadedJournal

T = TypeVar("T")
log = get_logger(__name__)
PURGE_EVERY = 60.0  # seconds, if sessions last long


class SQLJournal(ThreadedJournal):
    """Base class for journals in a SQL database.

    Args:
        database: The database.
        at_once: How many calls of an event loop may run at once.
        patience: How long :meth:`aclose` waits for calls that run, in seconds.
        ttl: How long a session is kept after the last append to it, in milliseconds.
        readonly: Never write.
    """

    def __init__(
        self,
        database: Database,
        *,
        at_once: int,
        patience: float,
        ttl: int | None,
        readonly: bool,
    ) -> None:
        super().__init__(database.place, at_once=at_once, patience=patience, readonly=readonly)
        self._database = database
        self._ttl = ttl
        self._purge_due = 0.0

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
        key = self._key(session, writing=True)
        given = as_list(entries)
        checked_seqs([] if expect is None else [expect])

        def append() -> int:
            lines = to_lines(given)

            def work(tx: Transaction, *, again: bool = False) -> int:
                return writing.append(tx, key, lines, expect, lease, again=again)

            again = None if expect is None else partial(work, again=True)
            last = self._database.run("write", work, again)
            self._purge_if_due()
            return last

        return await self._call(append, session)

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""
        key = self._key(session)
        checked_after(after)

        def read(tx: Transaction) -> list[Entry]:
            return stored.read(tx, key, sessions.find(tx, key).shown, after, history=history)

        return await self._do("read", read, session)

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[Sequence[Entry], None]:
        """See :meth:`Journal.pages`; each page is the state of the session when it is read.

        Raises:
            JournalDamagedError: See :meth:`Journal.pages`.
            JournalError: The session was removed between two pages.
        """
        key = self._key(session)
        checked_after(after)
        checked_size(size)
        first, at, found = None, after, 0
        while True:
            counts, page, damage = await self._read_page(key, at, size, history=history)
            first = first or counts
            if (counts.base, counts.created) != (first.base, first.created):
                raise JournalError(
                    f"Session {session!r} in the {self._place} was removed while it was read"
                )
            if page:
                yield page
                at, found = page[-1].seq, found + len(page)
            if damage is not None and len(page) < size:
                raise damage
            if len(page) < size:
                break
        if after <= 0 and counts == first:
            stored.check_count(key, counts, found, history=history)

    async def _read_page(
        self, key: Key, after: int, size: int, *, history: bool
    ) -> tuple[Counts, Lines, JournalDamagedError | None]:
        """Return the session, the next entries up to a damage, and its error."""

        def read(tx: Transaction) -> tuple[Counts, Lines, JournalDamagedError | None]:
            try:
                counts = sessions.find(tx, key).shown
            except Exception as error:  # its entries have checksums of their own
                if not isinstance(error, JournalDamagedError) and not tx.is_damage(error):
                    raise
                counts = Counts(last=stored.UNKNOWN)
            found, damage = stored.read_page(tx, key, counts, after, size, history=history)
            if damage is None and counts.last == stored.UNKNOWN:
                last = found[-1].seq if found else after
                damage = key.damaged(
                    f"its row is damaged or missing: what came after entry {last} is unknown"
                )
            return counts, found, damage

        return await self._do("read", read, key.text)

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        if history:
            return await super().rows(session, after, history=True)
        key = self._key(session)
        checked_after(after)

        def read(tx: Transaction) -> Rows:
            return stored.read_rows(tx, key, sessions.find(tx, key).shown, after)

        return await self._do("read", read, session)

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        key = self._key(session)
        return await self._do("read", lambda tx: sessions.find(tx, key).shown.last, session)

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`; the class says what scrubbing does."""
        if seqs is None:
            return await self._remove(session, writing.remove_session, scrub=scrub, whole=True)
        work = partial(writing.remove_entries, seqs=checked_seqs(seqs))
        return await self._remove(session, work, scrub=scrub)

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        work = partial(writing.retire_entries, seqs=checked_seqs(seqs))
        return await self._remove(session, work, scrub=False)

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        checked_seqs([] if before is None else [before])
        work = partial(writing.trim_history, before=before)
        return await self._remove(session, work, scrub=scrub)

    async def _remove(
        self,
        session: str,
        work: Callable[[Transaction, Key], int],
        *,
        scrub: bool,
        whole: bool = False,
    ) -> int:
        key = self._key(session, writing=True)

        def removing(tx: Transaction) -> int:
            removed = work(tx, key)
            if scrub and removed:
                self._database.note_removal(tx)
            return removed

        def remove() -> int:
            # Numbers are not used again, so that doing it twice removes nothing else.
            removed = self._database.run("write", removing, None if whole else removing)
            if scrub:
                self._database.scrub(removed=bool(removed or whole))
            return removed

        return await self._call(remove, session)

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`."""
        going = [self._key(key, writing=True) for key in remove]
        coming = {self._key(key, writing=True): as_list(some) for key, some in add.items()}

        def exchange() -> None:
            lines = {key: to_loaded_lines(some) for key, some in coming.items()}

            def work(tx: Transaction) -> int:
                removed = writing.exchange(tx, going, lines)
                if removed:
                    self._database.note_removal(tx)
                return removed

            removed = self._database.run("write", work)
            self._database.scrub(removed=bool(removed))

        await self._call(exchange, next(iter(add), None))

    # Sessions

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        return [record.key for record in await self.records(prefix)]

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        start = self._key(prefix)

        def read(tx: Transaction) -> list[SessionRecord]:
            return [
                _about(key, record.counts)
                for key, record in sessions.every(tx, start)
                if not record.has_expired
            ]

        return await self._do("read", read)

    async def purge(self) -> int:
        """See :meth:`Journal.purge`."""
        self._check_writable()

        def purge() -> int:
            removed = total = self._purge(scrub=True)
            while removed == writing.PURGED:
                removed = self._purge(scrub=True)
                total += removed
            if total:
                self._database.scrub(removed=True)
            return total

        return await self._call(purge)

    def _purge(self, *, scrub: bool = False) -> int:
        """Remove some sessions that have expired; return how many."""

        def purge(tx: Transaction) -> int:
            sessions.remove_unused(tx)
            removed = writing.purge(tx, self._key(""))
            if removed and scrub:
                self._database.note_removal(tx)
            return removed

        return self._database.run("write", purge)

    def _purge_if_due(self) -> None:
        """Remove some sessions that have expired, at times."""
        if self._ttl is None or time.monotonic() < self._purge_due:
            return
        self._purge_due = time.monotonic() + min(PURGE_EVERY, self._ttl / 1000)
        try:
            self._purge()
        except JournalError as error:
            log.warning("Sessions that have expired could not be removed yet: %s", error)

    # For the base class

    def _open(self) -> None:
        self._database.open()
        if not self.readonly:
            self._purge_if_due()

    def _take(self, lease: Lease, over: str | None) -> Holder | None:
        key = self._key(lease.session)

        def take(tx: Transaction) -> Holder | None:
            return sessions.take_lease(tx, key, lease, over)

        return self._database.run("lease", take, take)

    def _give(self, lease: Lease) -> None:
        key = self._key(lease.session)
        self._database.run("lease", lambda tx: sessions.release_lease(tx, key, lease))

    def _give_all(self, leases: Collection[Lease]) -> None:
        if leases:
            self._database.hurry()
        super()._give_all(leases)

    def _renew(self, leases: Collection[Lease]) -> Collection[str]:
        return self._database.run(
            "lease", lambda tx: sessions.renew_leases(tx, self._place, leases)
        )

    def _disconnect(self) -> None:
        self._database.close()

    # Private

    def _key(self, session: str, *, writing: bool = False) -> Key:
        if writing:
            self._check_writable()
        key = Key(checked_session(session), self._place, self._ttl)
        _ = key.id  # refuses what cannot be stored
        return key

    async def _do(
        self, kind: Kind, work: Callable[[Transaction], T], session: str | None = None
    ) -> T:
        return await self._call(lambda: self._database.run(kind, work), session)


def _about(key: Key, counts: Counts) -> SessionRecord:
    created, updated = from_milliseconds(counts.created), from_milliseconds(counts.updated)
    return SessionRecord(key.text, created, updated, counts.live + counts.retired, counts.last)
