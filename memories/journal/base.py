"""The base class for journals."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import anyio
from anyio.abc import AsyncResource

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import (
    JournalConflictError,
    JournalDamagedError,
    JournalError,
    LeaseHeldError,
    LeaseLostError,
)
from agent_brain.memories.journal.checks import (
    check_reading,
    checked_seconds,
    checked_session,
    to_lines,
)
from agent_brain.memories.journal.entry import Entry, Lines, Rows
from agent_brain.memories.journal.lease import Lease, abandon

log = get_logger(__name__)
LEASE = 30.0  # seconds
PAGE = 500  # entries
ADVICE = (
    "Restore the journal from a backup, or copy what can be read into a new one with "
    "'agent-brain sessions salvage'. Nothing was changed"
)
ASK_EVERY = 0.25  # seconds between attempts to get a lease


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What a journal knows of a session.

    Attributes:
        key: The session's key.
        created: When its first entry was written (aware, UTC); None if unknown.
        updated: When its last entry was written; None if unknown.
        entries: The number of its entries, history included.
        last: The sequence number of its last entry.
    """

    key: str
    created: datetime | None
    updated: datetime | None
    entries: int
    last: int


class Journal(AsyncResource):
    """Base class for journals: append-only entries per session, the source of truth of a memory.

    A journal holds any number of sessions, each identified by an opaque string; no call for one
    session changes or returns entries of another. Several memories may share a journal; its
    creator closes it.

    ``append``, ``read``, ``last``, ``sessions`` and ``delete`` make a journal. The other methods
    have defaults: without history, and with leases that exclude other runners of this object only.

    Attributes:
        persistent: Whether entries outlive the process.
        has_history: Whether :meth:`retire` keeps entries, and reading can include them. Such a
            journal also has :meth:`trim` and :meth:`load`.
        has_leases: Whether :meth:`append` checks the lease that it is given.
        has_exchange: Whether :meth:`exchange` can be used.
    """

    persistent: ClassVar[bool] = True
    has_history: ClassVar[bool] = False
    has_leases: ClassVar[bool] = False
    has_exchange: ClassVar[bool] = False
    _held: dict[str, Lease] | None = None  # by session, for the default of the leases

    # Entries

    @abstractmethod
    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """Append ``entries`` to a session, all or none, with consecutive sequence numbers.

        When the call returns they are as durable as this journal makes them. When it is cancelled,
        they are written either completely or not at all before any later call on the same session.

        Args:
            session: The session's key.
            entries: The entries in order; their ``seq``, ``time`` and ``retired`` are ignored. An
                empty list changes nothing.
            expect: The last sequence number that the writer knows, 0 for a session without entries;
                None writes without a check.
            lease: The writer's lease; None for a writer that is not a runner.

        Returns:
            The last sequence number of the session after the call.

        Raises:
            LeaseLostError: ``lease`` is not that of the session any more; nothing was written.
            LeaseHeldError: There is no ``lease``, and another runner has one that has not ended;
                nothing was written.
            JournalConflictError: The session's last sequence number is not ``expect``; nothing was
                written.
            JournalError: The journal is closed, or its storage cannot be used.
        """

    @abstractmethod
    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        """Return the entries with a sequence number above ``after``, in order.

        Args:
            session: The session's key.
            after: A sequence number.
            history: Include retired entries.

        Raises:
            JournalDamagedError: An entry is not what was written.
        """

    async def pages(
        self, session: str, after: int = 0, *, history: bool = False, size: int = PAGE
    ) -> AsyncGenerator[Sequence[Entry], None]:
        """Yield the entries in pages of at most ``size``.

        Who leaves it early closes it: ``async with aclosing(journal.pages(key)) as pages: …``.

        Raises:
            JournalDamagedError: An entry is not what was written; what is before it was yielded.
            MemoryUseError: ``size`` is not a whole number from 1.
        """
        check_reading(session, after, size)
        entries = await self._read_entries(session, after, history=history)
        for start in range(0, len(entries), size):
            yield entries[start : start + size]

    async def rows(self, session: str, after: int = 0, *, history: bool = False) -> Rows:
        """As :meth:`read`, with the data as JSON text.

        Memories read sessions with it and decode a message when it is used. The default encodes
        what :meth:`read` returns; a journal that stores text overrides it.
        """
        entries = await self._read_entries(session, after, history=history)
        return Rows.of_pages([Lines(to_lines(entries))])

    async def _read_entries(self, session: str, after: int, *, history: bool) -> list[Entry]:
        if history and self.has_history:
            return await self.read(session, after, history=True)
        return await self.read(session, after)

    @abstractmethod
    async def last(self, session: str) -> int:
        """Return the last sequence number of the session; 0 if there is none, or it was deleted.

        Removing entries does not lower it.
        """

    @abstractmethod
    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """Remove entries physically, retired ones too.

        Args:
            session: The session's key.
            seqs: The sequence numbers of the entries; unknown ones are ignored. None removes the
                whole session.
            scrub: Leave no copy of their data behind. False is cheaper and for entries that are
                merely outdated; the next deletion that scrubs removes their copies as well.

        Returns:
            The number of removed entries.
        """

    async def retire(self, session: str, seqs: Collection[int]) -> int:
        """Keep entries that later ones have replaced for the history only.

        The default removes them.

        Args:
            session: The session's key.
            seqs: The sequence numbers of the entries; unknown ones are ignored.

        Returns:
            The number of entries that were retired.
        """
        return await self.delete(session, seqs, scrub=False)

    async def trim(self, session: str, before: int | None = None, *, scrub: bool = False) -> int:
        """Remove retired entries.

        Args:
            session: The session's key.
            before: Only those with a smaller sequence number; None for all.
            scrub: See :meth:`delete`.

        Returns:
            The number of removed entries.
        """
        return 0

    async def load(self, session: str, entries: Sequence[Entry]) -> None:
        """Write the entries of a session that was read from another journal, all or none.

        Args:
            session: The session's key. It must not have entries.
            entries: With their numbers, which must grow, versions, times, and whether each is
                retired.

        Raises:
            JournalConflictError: The session has entries.
            JournalError: This journal cannot do it.
        """
        if not self.has_exchange:
            raise JournalError(
                f"{type(self).__name__} has no load(), which writes the entries of another journal"
            )
        await self.exchange((), {checked_session(session): entries})

    async def exchange(self, remove: Collection[str], add: Mapping[str, Sequence[Entry]]) -> None:
        """Remove whole sessions and load others, all or nothing; a kill leaves one or the other.

        Only a journal with ``has_exchange`` can do it.

        Args:
            remove: The keys of the sessions to remove, with their leases; unknown ones are ignored.
            add: By key, the entries of the sessions to write, as :meth:`load` takes them.

        Raises:
            JournalConflictError: A session to write has entries, and is not removed.
            JournalError: This journal cannot do it.
        """
        raise JournalError(
            f"{type(self).__name__} has no exchange(), which replaces sessions in one step"
        )

    # Sessions

    @abstractmethod
    async def sessions(self, prefix: str = "") -> list[str]:
        """Return the keys of all sessions that start with ``prefix``, sorted."""

    async def records(self, prefix: str = "") -> list[SessionRecord]:
        """Return what is known of the sessions whose keys start with ``prefix``, sorted by key."""
        found = []
        for key in await self.sessions(prefix):
            entries = await self._read_entries(key, 0, history=True)
            first, last = (entries[0].time, entries[-1].time) if entries else (None, None)
            found.append(SessionRecord(key, first, last, len(entries), await self.last(key)))
        return found

    async def lasts(self, prefix: str = "") -> dict[str, int]:
        """Return :meth:`last` of all sessions whose keys start with ``prefix``, sorted by key."""
        return {key: await self.last(key) for key in await self.sessions(prefix)}

    async def purge(self) -> int:
        """Remove sessions that have outlived the journal's ``ttl``; return how many.

        They are not returned by any method before that either. Does nothing by default.
        """
        return 0

    # Leases

    async def acquire(self, session: str, *, seconds: float = LEASE, wait: float = 0) -> Lease:
        """Get the lease of a session; it is renewed until it is released.

        The lease of a process that is known to be dead is taken over at once, and so is one that
        this process could not give back; any other when it has ended.

        Args:
            session: The session's key.
            seconds: How long the lease lasts if this process stops renewing it.
            wait: How long to wait for a lease that another runner has, in seconds.

        Raises:
            LeaseHeldError: Another runner has it.
            MemoryUseError: ``seconds`` is less than 0.001, or ``wait`` less than 0.
        """
        checked_session(session)
        checked_seconds("seconds", seconds, least=0.001)
        checked_seconds("wait", wait, least=0, most=math.inf)
        lease = Lease.new(session, seconds)
        try:
            await self._wait_for_lease(lease, wait)
        except BaseException as error:
            if not isinstance(error, LeaseHeldError):  # it may have been stored
                abandon(lease)
                with anyio.move_on_after(CLEANUP_SECONDS, shield=True), suppress(JournalError):
                    await self.release(lease)
            raise
        return lease

    async def _wait_for_lease(self, lease: Lease, wait: float) -> None:
        deadline = anyio.current_time() + wait
        while (holder := await self._take_lease(lease)) is not None:
            if holder.is_gone:
                holder = await self._take_lease(lease, over=holder.token)
                if holder is None:
                    break
            left = deadline - anyio.current_time()
            if left <= 0:
                raise held_error(holder)
            await anyio.sleep(min(left, ASK_EVERY, max(holder.seconds, 0.01)))

    async def release(self, lease: Lease) -> None:
        """Give a lease back. Does nothing if it was taken over."""
        leases = self._held or {}
        known = leases.get(lease.session)
        if known is lease or known == lease:
            del leases[lease.session]

    async def _give_back(self, lease: Lease) -> None:
        """Release a lease; if that fails, this process takes it over when it needs it again."""
        try:
            await self.release(lease)
        except BaseException as error:
            abandon(lease)
            if not isinstance(error, JournalError):
                raise
            log.warning("The lease of %s could not be released: %s", name_of(lease.session), error)

    async def _take_lease(self, lease: Lease, *, over: str | None = None) -> Lease | None:
        """Store a lease; return who has one that has not ended instead, if anyone has.

        Args:
            lease: The lease, which is to be renewed until :meth:`release`.
            over: The token of a lease that may be replaced although it has not ended.
        """
        held = self._held = self._held or {}
        holder = held.setdefault(lease.session, lease)
        return None if holder is lease else holder

    # Life

    def same_as(self, other: Journal) -> bool:
        """Return whether both store the same sessions. Default: whether they are one object."""
        return self is other

    async def aclose(self) -> None:
        """Release what the journal opened. Idempotent. Does nothing by default."""


def name_of(session: str) -> str:
    """Return the key of a session as people know it."""
    try:
        tenant, name, *branch = json.loads(session)
    except (ValueError, TypeError, RecursionError):
        return f"session {session!r}"
    whose = "" if tenant is None else f" of {tenant!r}"
    inside = f", branch {'/'.join(map(str, branch[2:]))!r}" if branch else ""
    return f"session {name!r}{whose}{inside}"


def conflict(session: str, expected: int, found: int) -> JournalConflictError:
    """Return the error of an append whose ``expect`` is outdated."""
    stands = (
        f"{name_of(session)} is at entry {found}, and this writer knows it up to {expected}: "
        "another writer has written to it"
        if found
        else f"{name_of(session)} has no entries, and this writer knows it up to {expected}: it "
        "was deleted, or has expired"
    )
    return JournalConflictError(
        f"{stands}. Nothing was written; read it again first",
        session=session,
        expected=expected,
        found=found,
    )


def damaged(session: str, seq: int, journal: str) -> JournalDamagedError:
    """Return the error of an entry whose checksum is wrong."""
    return JournalDamagedError(
        f"Entry {seq} of {name_of(session)} in {journal} is damaged: its checksum is wrong. "
        f"{ADVICE}",
        session=session,
        seq=seq,
    )


def damaged_session(session: str, journal: str, problem: str) -> JournalDamagedError:
    """Return the error of a session that is not what was written."""
    name = name_of(session).removeprefix("session ")
    return JournalDamagedError(
        f"Session {name} in {journal} is damaged: {problem}. {ADVICE}", session=session
    )


def held_error(holder: Lease) -> LeaseHeldError:
    """Return the error of a writer while another runner has the lease."""
    return LeaseHeldError(
        f"{name_of(holder.session)} is in use by {holder.owner}, whose lease lasts another "
        f"{holder.seconds:.0f} s and is renewed while it runs. Nothing was written: wait for its "
        "end, read the session with readonly=True, or use another session",
        session=holder.session,
        owner=str(holder.owner),
        seconds=holder.seconds,
    )


def lost(lease: Lease) -> LeaseLostError:
    """Return the error of a runner whose lease was taken over."""
    return LeaseLostError(
        f"This runner does not have the lease of {name_of(lease.session)} any more: it was not "
        f"renewed for {lease.seconds:.0f} s and another runner has taken it over, the session was "
        "deleted, or the server of the journal has lost it in a crash. Nothing was written",
        session=lease.session,
    )
