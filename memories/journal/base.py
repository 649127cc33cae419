"""The base class for journals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import ClassVar, Self

from agent_brain.memories.errors import JournalConflictError
from agent_brain.memories.journal.entry import Entry, Row, to_line


class Journal(ABC):
    """Base class for journals: append-only entries per session, the source of truth of a memory.

    A journal holds any number of sessions, each identified by an opaque string; no call for one
    session changes or returns entries of another. Several memories may share a journal; its
    creator closes it.

    Attributes:
        persistent: Whether entries outlive the process.
    """

    persistent: ClassVar[bool] = True

    @abstractmethod
    async def append(
        self, session: str, entries: Sequence[Entry], *, expect: int | None = None
    ) -> int:
        """Append ``entries`` to a session, all or none, with consecutive sequence numbers.

        When the call returns they are as durable as this journal makes them. When it is cancelled,
        they are written either completely or not at all before any later call on the same session.

        Args:
            session: The session's key.
            entries: The entries in order; their ``seq`` is ignored. An empty list changes nothing.
            expect: The last sequence number that the writer knows, 0 for a session without entries;
                None writes without a check.

        Returns:
            The last sequence number of the session after the call.

        Raises:
            JournalConflictError: The session's last sequence number is not ``expect``; nothing was
                written.
            JournalError: The journal is closed, or its storage cannot be used.
        """

    @abstractmethod
    async def read(self, session: str, after: int = 0) -> list[Entry]:
        """Return the entries with a sequence number above ``after``, in order."""

    async def rows(self, session: str, after: int = 0) -> Sequence[Row]:
        """As :meth:`read`, with the data as JSON text.

        Memories read sessions with it and decode a message when it is used. The default encodes
        what :meth:`read` returns; a journal that stores text overrides it.
        """
        entries = await self.read(session, after)
        return [(entry.seq, entry.kind, to_line(entry.data)) for entry in entries]

    @abstractmethod
    async def last(self, session: str) -> int:
        """Return the last sequence number of the session, 0 if none; deletions do not lower it."""

    @abstractmethod
    async def sessions(self, prefix: str = "") -> list[str]:
        """Return the keys of all sessions that start with ``prefix``, sorted."""

    @abstractmethod
    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """Remove entries physically.

        Args:
            session: The session's key.
            seqs: The sequence numbers of the entries; unknown ones are ignored. None removes the
                whole session.
            scrub: Leave no copy of their data behind. False is cheaper and for entries that are
                merely outdated; the next deletion that scrubs removes their copies as well.

        Returns:
            The number of removed entries.
        """

    def same_as(self, other: Journal) -> bool:
        """Return whether both store the same sessions. Default: whether they are one object."""
        return self is other

    async def aclose(self) -> None:
        """Release what the journal opened. Idempotent. Does nothing by default."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def conflict(session: str, expected: int, found: int) -> JournalConflictError:
    """Return the error of an append whose ``expect`` is outdated."""
    return JournalConflictError(
        f"Session {session!r} stands at entry {found}, and this writer knows it only up to "
        f"{expected}: another writer has written to it. Nothing was written; read it again first",
        session=session,
        expected=expected,
        found=found,
    )
