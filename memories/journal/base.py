"""What every journal is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import ClassVar, Self

from agent_brain.memories.errors import JournalConflictError
from agent_brain.memories.journal.entry import Entry


class Journal(ABC):
    """Append-only entries per session: the source of truth under a memory.

    One journal holds any number of sessions; each is known by an opaque string, and no call for
    one session touches or shows another. A journal may be shared by many memories; who made it
    closes it.

    Attributes:
        persistent: Entries outlive the process.
    """

    persistent: ClassVar[bool] = True

    @abstractmethod
    async def append(
        self, session: str, entries: Sequence[Entry], *, expect: int | None = None
    ) -> int:
        """Add ``entries`` to the end of a session: all of them, or none.

        They get consecutive sequence numbers. When the call returns they are as durable as this
        journal makes anything. When it is cancelled, they are written either completely or not at
        all before any later call on the same session looks.

        Args:
            session: The session's key.
            entries: What to add, in order; their ``seq`` is ignored. None of them changes nothing.
            expect: The last sequence number that the writer knows, 0 for a session without entries;
                None writes in any case.

        Returns:
            The last sequence number of the session after the call.

        Raises:
            JournalConflictError: The session's last number is not ``expect``; nothing was written.
            JournalError: The journal is closed, or its storage cannot be used.
        """

    @abstractmethod
    async def read(self, session: str, after: int = 0) -> list[Entry]:
        """The entries with a sequence number above ``after``, in order."""

    @abstractmethod
    async def last(self, session: str) -> int:
        """The last sequence number the session was given, 0 if none; deletions do not lower it."""

    @abstractmethod
    async def sessions(self, prefix: str = "") -> list[str]:
        """The keys of all sessions that begin with ``prefix``, sorted."""

    @abstractmethod
    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        """Remove entries physically.

        Args:
            session: The session's key.
            seqs: Which entries; unknown numbers are passed over. None removes the whole session.
            scrub: Make sure that no copy of their data stays behind. False is for entries that are
                merely outdated: cheaper, and the next deletion that scrubs removes what it left.

        Returns:
            How many entries were removed.
        """

    def same_as(self, other: Journal) -> bool:
        """Whether both keep the same sessions. Default: they are one object."""
        return self is other

    async def aclose(self) -> None:
        """Give back what the journal opened; twice is fine. Default: nothing."""

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
    """The error of an append that came too late."""
    return JournalConflictError(
        f"Session {session!r} stands at entry {found}, and this writer knows it only up to "
        f"{expected}: someone else has written to it. Nothing was written; read it again first",
        session=session,
        expected=expected,
        found=found,
    )
