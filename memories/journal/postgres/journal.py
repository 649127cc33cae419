"""A journal in a PostgreSQL database."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import anyio
from anyio import to_thread

from agent_brain.memories.errors import JournalDamagedError, JournalError, MemoryDefinitionError
from agent_brain.memories.journal.base import PAGE, Journal, SessionRecord
from agent_brain.memories.journal.checks import (
    checked_after,
    checked_entries,
    checked_in_thread,
    checked_loaded,
    checked_seqs,
    checked_session,
    checked_size,
)
from agent_brain.memories.journal.entry import Entry, Rows, from_milliseconds
from agent_brain.memories.journal.lease import Heartbeat, Holder, Lease, Owner
from agent_brain.memories.journal.postgres.calls import Calls
from agent_brain.memories.journal.postgres.entries import (
    check_count,
    collect,
    read_entries,
    read_page,
    to_entry,
)
from agent_brain.memories.journal.postgres.layout import Layout
from agent_brain.memories.journal.postgres.leases import release_lease, renew_leases, take_lease
from agent_brain.memories.journal.postgres.removal import (
    find_expired,
    remove_entries,
    remove_expired,
    remove_session,
    remove_unused,
    retire_entries,
    trim_history,
)
from agent_brain.memories.journal.postgres.sessions import Key, Record, every, find
from agent_brain.memories.journal.postgres.writing import (
    append_entries,
    exchange_sessions,
    load_entries,
)
from agent_brain.memories.journal.server_options import check_timeout, ttl_milliseconds
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.memories.journal.postgres.connections import Transaction

T = TypeVar("T")
log = get_logger(__name__)
PURGE_EVERY = 60.0  # seconds, if sessions last long
PURGED = 100  # sessions that an append removes at most
UNKNOWN = 2**63 - 1  # the last number of a session whose row is damaged
DURABILITIES = {
    "disk": "an append is on the server's disk when it returns",
    "memory": "the server may lose its last second if it dies",
}


class PostgresJournal(Journal):
    """A journal in a PostgreSQL database, for any number of processes and machines.

    It connects at the first use and creates its tables, in a schema of their own. Calls run in
    worker threads, on asyncio and trio; those on different sessions do not wait for each other.
    Needs PostgreSQL 12 or newer, and ``pip install "agent-brain[postgres]"``::

        async with PostgresJournal("postgresql://me@db.example/app") as journal:
            memory = WindowedMemory(journal=journal, session="alice/42")

    A call whose connection breaks is repeated once where that is safe: if nothing was committed,
    and also at the end of a transaction for reading, leases, the removal of single entries, and an
    append with ``expect=``, which is recognised if it was done. Any other, and one that has no
    answer in time, raises a JournalError if it may have been done; a memory finds out by reading.

    What :meth:`delete` scrubs is gone for every client of the database when it returns, and the
    tables were vacuumed if the user owns them (or has ``MAINTAIN``) and no older transaction needs
    the rows. PostgreSQL does not overwrite: the bytes may remain in free space of its files until
    that is used again (``VACUUM FULL`` rewrites them), and in its write-ahead log, the archive of
    that, replicas and backups until those are replaced.

    Args:
        url: The database, such as ``"postgresql://user:password@host:5432/database"``, with any
            parameters of libpq. What is missing comes from the environment (``PGHOST`` …).
        schema: The schema of the tables: ASCII letters, digits and underscores.
        pool_size: How many calls of an event loop may run at once, each in a connection.
        timeout: Seconds to wait for the server: to connect, while another process writes to the
            session, or for an answer.
        ttl: Seconds without a write after which a session is removed; None keeps it.
        durability: ``"disk"``: what was appended is on the server's disk. ``"memory"``: it is in
            the server's memory, which is faster, and what was appended in the last second may be
            lost if the server dies; nothing is ever written in part.
        readonly: Never write; for viewers, backups and replicas.

    Raises:
        MemoryDefinitionError: An argument is wrong.
        JournalError: The package psycopg is not installed.
    """

    has_history = True
    has_leases = True
    has_exchange = True

    def __init__(
        self,
        url: str,
        *,
        schema: str = "agent_brain",
        pool_size: int = 8,
        timeout: float = 30.0,
        ttl: float | timedelta | None = None,
        durability: Literal["disk", "memory"] = "disk",
        readonly: bool = False,
    ) -> None:
        _check_arguments(pool_size, timeout, durability)
        self._ttl = ttl_milliseconds(ttl)
        try:
            from agent_brain.memories.journal.postgres.address import Address
            from agent_brain.memories.journal.postgres.connections import Connections
        except ImportError as error:
            raise JournalError(
                f"PostgresJournal needs the package psycopg ({error}): "
                "pip install 'agent-brain[postgres]'"
            ) from error
        address = Address(url)
        self.readonly = readonly
        self._layout = Layout(schema)
        self._where = f"{address.place}, schema {schema}"
        self._place = f"journal at {self._where}"
        self._connections = Connections(address.params, self._place, pool_size, timeout)
        self._calls = Calls(pool_size, self._place)
        self._patience = timeout
        self._leases: dict[str, Lease] = {}  # those that were got and not given back
        self._closed = False
        self._heartbeat = Heartbeat(self._renew)
        self._durability = durability
        self._purge_due = 0.0
        self._opened = False
        self._opening = threading.Lock()

    def __repr__(self) -> str:
        return f"PostgresJournal({self._where})"

    @staticmethod
    def layout_sql(schema: str = "agent_brain", *, role: str | None = None) -> str:
        """Return the SQL that creates the tables, for a user that may not do it.

        Args:
            schema: The schema of the tables.
            role: A user who is granted what a journal needs.
        """
        return Layout(schema).to_sql(role)

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
        checked = await checked_in_thread(entries, checked_entries)
        checked_seqs([] if expect is None else [expect])

        def append() -> int:
            work = partial(
                append_entries,
                layout=self._layout,
                key=key,
                entries=checked,
                expect=expect,
                lease=lease,
                ttl=self._ttl,
            )
            again = None if expect is None else partial(work, again=True)
            last = self._run(self._durability, work, again)
            self._purge_if_due()
            return last

        return await self._calls.run(append, session)

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """See :meth:`Journal.read`."""
        key = self._key(session)
        checked_after(after)

        def read(tx: Transaction) -> list[Entry]:
            record = find(tx, self._layout, key).shown(self._ttl)
            found = read_entries(tx, self._layout, key, record, after, history=history)
            return [*map(to_entry, found)]

        return await self._do("read", read, session)

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[list[Entry], None]:
        """See :meth:`Journal.pages`. Each page is read when it is asked for."""
        key = self._key(session)
        checked_after(after)
        checked_size(size)
        first, at, count = None, after, 0
        while True:
            record, page, damage = await self._read_page(key, at, size, history=history)
            first = first or record
            if record.created != first.created:
                raise JournalError(
                    f"Session {session!r} in the {self._place} was removed while it was read"
                )
            if page:
                yield page
                at, count = page[-1].seq, count + len(page)
            if len(page) < size:
                break
        if damage is not None:
            raise damage
        if after <= 0 and (record.last, record.live, record.retired) == (
            first.last,
            first.live,
            first.retired,
        ):
            check_count(key, record, count, history=history)

    async def _read_page(
        self, key: Key, after: int, size: int, *, history: bool
    ) -> tuple[Record, list[Entry], JournalDamagedError | None]:
        """Return the session, the next entries up to a damage, and its error."""

        def read(tx: Transaction) -> tuple[Record, list[Entry], JournalDamagedError | None]:
            damage = None
            try:
                record = find(tx, self._layout, key).shown(self._ttl)
            except JournalDamagedError as error:  # its entries have checksums of their own
                record, damage = Record(last=UNKNOWN), error
            found, worse = collect(
                read_page(tx, self._layout, key, record, after, size, history=history)
            )
            return record, found, worse or damage

        return await self._do("read", read, key.text)

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """See :meth:`Journal.rows`."""
        key = self._key(session)
        checked_after(after)

        def read(tx: Transaction) -> Rows:
            record = find(tx, self._layout, key).shown(self._ttl)
            rows = Rows(as_written=True)
            found = read_entries(tx, self._layout, key, record, after, history=history)
            for seq, kind, version, _, line, _ in found:
                rows.seqs.append(seq)
                rows.kinds.append(sys.intern(kind))
                rows.lines.append(line)
                if version != 1:
                    rows.versions[seq] = version
            return rows

        return await self._do("read", read, session)

    async def last(self, session: str) -> int:
        """See :meth:`Journal.last`."""
        key = self._key(session)
        return await self._do(
            "read", lambda tx: find(tx, self._layout, key).shown(self._ttl).last, session
        )

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """See :meth:`Journal.delete`; what it scrubs is said at :class:`PostgresJournal`."""
        some = None if seqs is None else checked_seqs(seqs)

        def delete(tx: Transaction, key: Key) -> int:
            if some is None:
                return remove_session(tx, self._layout, key, self._ttl)
            return remove_entries(tx, self._layout, key, some, self._ttl)

        return await self._remove(session, delete, scrub=scrub, whole=some is None)

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """See :meth:`Journal.retire`."""
        some = checked_seqs(seqs)
        return await self._remove(
            session,
            lambda tx, key: retire_entries(tx, self._layout, key, some, self._ttl),
            scrub=False,
        )

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """See :meth:`Journal.trim`."""
        checked_seqs([] if before is None else [before])
        return await self._remove(
            session,
            lambda tx, key: trim_history(tx, self._layout, key, before, self._ttl),
            scrub=scrub,
        )

    async def load(self, session: str, entries: Sequence[Entry]) -> None:
        """See :meth:`Journal.load`."""
        key = self._key(session, writing=True)
        checked = await checked_in_thread(entries, checked_loaded)
        await self._do(
            self._durability,
            lambda tx: load_entries(tx, self._layout, key, checked, self._ttl),
            session,
        )

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """See :meth:`Journal.exchange`."""
        keys = [self._key(key, writing=True) for key in remove]
        found = {
            self._key(k, writing=True): await checked_in_thread(some, checked_loaded)
            for k, some in add.items()
        }

        def exchange() -> None:
            self._run(
                self._durability,
                lambda tx: exchange_sessions(tx, self._layout, keys, found, self._ttl),
            )
            self._vacuum()

        await self._calls.run(exchange)

    # Sessions

    async def sessions(self, prefix: str = "") -> list[str]:
        """See :meth:`Journal.sessions`."""
        return [record.key for record in await self.records(prefix)]

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """See :meth:`Journal.records`."""
        self._key(prefix)

        def read(tx: Transaction) -> list[SessionRecord]:
            return [
                SessionRecord(
                    key.text,
                    from_milliseconds(record.created),
                    from_milliseconds(record.updated),
                    record.live + record.retired,
                )
                for key, record in every(tx, self._layout, self._place, prefix)
                if not record.has_expired(self._ttl)
            ]

        return await self._do("read", read)

    async def purge(self) -> int:
        """See :meth:`Journal.purge`."""
        self._check_writable()

        def purge() -> int:
            removed = total = self._purge(PURGED)
            while removed == PURGED:
                removed = self._purge(PURGED)
                total += removed
            if total:
                self._vacuum()
            return total

        return await self._calls.run(purge)

    # Leases

    async def release(self, lease: Lease) -> None:
        """See :meth:`Journal.release`."""
        key = self._key(lease.session, writing=True)
        self._heartbeat.remove(lease)
        await self._do(
            "memory", lambda tx: release_lease(tx, self._layout, key, lease), lease.session
        )
        self._leases.pop(lease.token, None)

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Holder | None:
        """See :meth:`Journal._take_lease`."""
        key = self._key(lease.session, writing=True)

        def take() -> Holder | None:
            work = partial(take_lease, layout=self._layout, key=key, lease=lease, over=over)
            holder = self._run("memory", work, work)
            if holder is None:
                self._leases[lease.token] = lease
            return holder

        try:
            holder = await self._calls.run(take, lease.session)
        except JournalError:
            raise
        except BaseException:  # cancelled, and nobody will give it back
            with anyio.CancelScope(shield=True), suppress(JournalError):
                await self.release(lease)
            raise
        if holder is None:
            if not self._closed:
                self._heartbeat.add(lease)
            if self._closed:  # meanwhile, perhaps by another thread: aclose() gives it back
                self._heartbeat.remove(lease)
                raise self._calls.is_closed()
        return holder

    def _renew(self, leases: Collection[Lease]) -> Collection[str]:
        return self._run("memory", lambda tx: renew_leases(tx, self._layout, self._place, leases))

    # Life

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`: whether host, port, database and schema are the same."""
        return isinstance(other, PostgresJournal) and self._where == other._where

    async def aclose(self) -> None:
        """Give back all leases, and close the connections, when the running calls have ended.

        A closed journal cannot be used again.
        """
        if not self._closed:
            self._closed = True
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._close)

    def _close(self) -> None:
        self._calls.close(self._patience)
        self._heartbeat.stop()
        with suppress(JournalError):  # they end by themselves then
            self._release_all()
        self._connections.close()

    def _release_all(self) -> None:
        mine = [lease for lease in self._leases.values() if lease.owner == Owner.here()]
        self._leases.clear()
        for lease in mine:
            key = Key(lease.session, self._place)
            self._connections.run("memory", partial(self._release, key, lease))

    def _release(self, key: Key, lease: Lease, tx: Transaction) -> None:
        release_lease(tx, self._layout, key, lease)

    # Private

    def _key(self, session: str, *, writing: bool = False) -> Key:
        if writing:
            self._check_writable()
        key = Key(checked_session(session), self._place)
        _ = key.id  # refuses what cannot be stored
        return key

    def _check_writable(self) -> None:
        if self.readonly:
            raise JournalError(f"The {self._place} was opened with readonly=True")

    async def _do(
        self, kind: str, work: Callable[[Transaction], T], session: str | None = None
    ) -> T:
        return await self._calls.run(lambda: self._run(kind, work), session)

    def _run(
        self,
        kind: str,
        work: Callable[[Transaction], T],
        again: Callable[[Transaction], T] | None = None,
    ) -> T:
        if not self._opened:
            with self._opening:
                self._open()
        return self._connections.run(kind, work, again)

    def _open(self) -> None:
        """Check the tables, or create them."""
        if self._opened:
            return
        layout, place = self._layout, self._place
        if not self._connections.run("check", lambda tx: layout.is_there(tx, place)):
            if self.readonly:
                raise JournalError(f"The {place} does not exist")
            try:
                self._connections.run("disk", lambda tx: layout.create(tx, place))
            except JournalError as error:
                if getattr(error.__cause__, "sqlstate", None) != "42501":
                    raise
                raise JournalError(
                    f"The {place} does not exist, and this user may not create it. Let one who may "
                    "run this SQL once, which PostgresJournal.layout_sql(role=…) returns:\n\n"
                    f"{layout.to_sql(role='the user of the journal')}"
                ) from error
        self._opened = True
        if not self.readonly:
            self._purge_if_due()

    async def _remove(
        self,
        session: str,
        work: Callable[[Transaction, Key], int],
        *,
        scrub: bool,
        whole: bool = False,
    ) -> int:
        key = self._key(session, writing=True)

        def remove() -> int:
            def done(tx: Transaction) -> int:
                return work(tx, key)

            again = None if whole else done  # numbers are not used again: it may be done twice
            removed = self._run(self._durability, done, again)
            if scrub and (removed or whole):
                self._vacuum()
            return removed

        return await self._calls.run(remove, session)

    def _vacuum(self) -> None:
        """Free the space of removed rows; without the right to, the server does it later."""
        layout = self._layout
        try:
            self._connections.execute(f"VACUUM {layout.live}, {layout.history}, {layout.sessions}")
        except JournalError as error:
            log.warning("What was removed is not vacuumed yet, the server will do it: %s", error)

    def _purge_if_due(self) -> None:
        """Remove some sessions that have expired, at times."""
        if self._ttl is None or time.monotonic() < self._purge_due:
            return
        self._purge_due = time.monotonic() + min(PURGE_EVERY, self._ttl / 1000)
        try:
            self._purge(PURGED)
        except JournalError as error:
            log.warning("Sessions that have expired could not be removed yet: %s", error)

    def _purge(self, most: int) -> int:
        """Remove at most so many sessions that have expired, each by itself; return how many."""
        layout, ttl = self._layout, self._ttl
        self._run("memory", lambda tx: remove_unused(tx, layout))
        if ttl is None:
            return 0
        found = self._run("read", lambda tx: find_expired(tx, layout, self._place, ttl, most))
        return sum(self._purge_session(key, ttl) for key in found)

    def _purge_session(self, key: Key, ttl: int) -> bool:
        try:
            return self._run(
                self._durability, lambda tx: remove_expired(tx, self._layout, key, ttl)
            )
        except JournalDamagedError as error:  # delete() removes it
            log.warning("A session may have expired and is not removed: %s", error)
            return False


def _check_arguments(pool_size: int, timeout: float, durability: str) -> None:
    if durability not in DURABILITIES:
        has = "; ".join(f"{name!r}: {meaning}" for name, meaning in DURABILITIES.items())
        raise MemoryDefinitionError(
            f"durability={durability!r}: a PostgresJournal has {has}. PostgreSQL cannot leave a "
            "commit to the operating system, between the two"
        )
    if type(pool_size) is not int or pool_size < 1:
        raise MemoryDefinitionError(f"pool_size={pool_size!r}: give a whole number from 1")
    check_timeout(timeout)
