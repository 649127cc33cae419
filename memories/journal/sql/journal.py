"""The journal in a SQL database. Base of the two that users name."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import SessionRecord
from agent_brain.memories.journal.entry import Line, Lines, Rows, from_milliseconds
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.journal.sql import entries, sessions
from agent_brain.memories.journal.sql.database import Database, Transaction
from agent_brain.memories.journal.sql.sessions import Key
from agent_brain.memories.journal.threaded import READ, Change, ThreadedJournal

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

    def _key(self, session: str) -> Key:
        key = Key(session, self._place, self._ttl)
        _ = key.id  # refuses what cannot be stored
        return key

    def _open(self) -> None:
        self._database.open()
        if not self.readonly:
            self._purge_if_due()

    # Entries

    def _append(
        self, session: str, lines: Sequence[Line], expect: int | None, lease: Lease | None
    ) -> int:
        key = self._key(session)

        last = self._database.run("write", lambda tx: entries.append(tx, key, lines, expect, lease))
        self._purge_if_due()
        return last

    def _pages(
        self, session: str, after: int, size: int, *, history: bool, whole: bool
    ) -> Iterator[Lines]:
        key, run = self._key(session), self._database.run

        def read(do: entries.Do[Lines]) -> Iterator[Lines]:
            return entries.pages(do, key, Lines, after, size, history=history, whole=whole)

        if whole:
            return iter(run("read", lambda tx: [*read(lambda work: work(tx))]))
        return read(partial(run, "read"))

    def _rows(self, session: str, after: int, *, history: bool) -> Rows:
        """Read the columns that rows are, without a tuple for each entry."""
        key = self._key(session)

        def read(tx: Transaction) -> Rows:
            parts = entries.pages(
                lambda work: work(tx), key, Rows, after, READ, history=history, whole=True
            )
            return Rows.joined(parts)

        return self._database.run("read", read)

    def _last(self, session: str) -> int:
        key = self._key(session)
        return self._database.run("read", lambda tx: sessions.find(tx, key).shown.last)

    def _change(self, session: str, change: Change, seqs: Sequence[int], *, scrub: bool) -> int:
        key = self._key(session)

        def work(tx: Transaction) -> int:
            return entries.change(tx, key, change, seqs)

        if change == "clear":
            return self._remove(work, scrub=scrub, again=False, vacuum=True)
        # Numbers are not used again, so that doing it twice removes nothing else.
        return self._remove(work, scrub=scrub, again=True)

    def _exchange(self, remove: Sequence[str], add: Mapping[str, Sequence[Line]]) -> None:
        going = [self._key(session) for session in remove]
        coming = {self._key(session): lines for session, lines in add.items()}
        self._remove(lambda tx: entries.exchange(tx, going, coming), scrub=True, again=False)

    def _remove(
        self, work: Callable[[Transaction], int], *, scrub: bool, again: bool, vacuum: bool = False
    ) -> int:
        """Do what returns how many entries it has removed, and leave no copy if ``scrub``."""

        def remove(tx: Transaction) -> int:
            removed = work(tx)
            if scrub and removed:
                self._database.note_removal(tx)
            return removed

        removed = self._database.run("write", remove, again=again)
        if scrub:
            self._database.scrub(removed=vacuum or removed > 0)
        return removed

    # Sessions

    def _records(self, prefix: str) -> list[SessionRecord]:
        start = self._key(prefix)

        def read(tx: Transaction) -> list[SessionRecord]:
            return [
                SessionRecord(
                    key.text,
                    from_milliseconds(record.counts.created),
                    from_milliseconds(record.counts.updated),
                    record.counts.live + record.counts.retired,
                    record.counts.last,
                )
                for key, record in sessions.every(tx, start)
                if not record.has_expired
            ]

        return self._database.run("read", read)

    def _purge(self) -> int:
        total = removed = self._purge_some(scrub=True)
        while removed == entries.PURGED:
            removed = self._purge_some(scrub=True)
            total += removed
        if total:
            self._database.scrub(removed=True)
        return total

    def _purge_some(self, *, scrub: bool = False) -> int:
        """Remove some sessions that have expired; return how many."""

        def purge(tx: Transaction) -> int:
            sessions.remove_unused(tx)
            removed = entries.purge(tx, self._key(""))
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
            self._purge_some()
        except JournalError as error:
            log.warning("Sessions that have expired could not be removed yet: %s", error)

    # Leases

    def _take(self, lease: Lease, over: str | None) -> Lease | None:
        key = self._key(lease.session)

        def take(tx: Transaction) -> Lease | None:
            return sessions.take_lease(tx, key, lease, over)

        return self._database.run("lease", take, again=True)

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
