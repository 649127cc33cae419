"""One session of a journal, as one memory writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import JsonValue

from agent_brain.memories.errors import JournalConflictError, SessionConflictError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, to_line
from agent_brain.memories.store.lock import Turns

PRUNE_AT = 128  # outdated entries that may gather before they are removed


def session_key(session: str, tenant: str | None = None) -> str:
    """The key under which a journal knows a tenant's session; no two pairs share one."""
    return json.dumps([tenant, session], ensure_ascii=False)


def read_session_key(key: str) -> tuple[str, str | None]:
    """The session and the tenant that :func:`session_key` made ``key`` of."""
    tenant, session = json.loads(key)
    return session, tenant


class Session:
    """Where one memory stands in its session: what it has read, and what it may write.

    Attributes:
        key: The session's key in the journal.
        lock: Held while something is written, so that the writes of one memory keep their order.
        last: The last sequence number that this memory knows.
        doubt: What an interrupted append tried to write, while nobody knows whether it did.
        landed: Whether the interrupted append was found in the journal when it was last read.
        control_at: Sequence number of the entry that has the control, 0 if there is none.
        control: The control of that entry.
        safe_at: What a rollback returns to: the sequence number of the last checkpoint.
    """

    def __init__(self, journal: Journal, session: str, tenant: str | None) -> None:
        self.journal = journal
        self.key = session_key(session, tenant)
        self.lock = Turns()
        self.last = 0
        self.doubt: list[Entry] | None = None
        self.landed = False
        self.control_at = 0
        self.control: JsonValue = None
        self.safe_at = 0
        self._outdated: list[int] = []

    async def append(self, entries: list[Entry]) -> int:
        """Write ``entries``; returns the sequence number of the first of them.

        Raises:
            SessionConflictError: Someone else has written to the session.
        """
        try:
            last = await self.journal.append(self.key, entries, expect=self.last)
        except JournalConflictError as error:
            raise self.overtaken(error.found) from error
        except BaseException:
            self.doubt = entries
            raise
        self.last = last
        return last - len(entries) + 1

    async def append_control(self, data: JsonValue) -> None:
        """Write where the run stands, unless the last entry says so."""
        if data == self.control and self.last == self.safe_at:
            return
        self.note_control(data, await self.append([Entry("control", data)]))
        await self._prune()

    def note_control(self, data: JsonValue, seq: int, since: int | None = None) -> None:
        """The entry ``seq`` says where the run stands; a rollback returns to ``since``."""
        if self.control_at:
            self.outdate([self.control_at])
        self.control_at, self.control = seq, data
        self.safe_at = seq if since is None else since

    def forget_control(self) -> None:
        """Start reading from the beginning: no control entry has been seen yet."""
        self.control_at, self.control, self.safe_at = 0, None, 0

    def outdate(self, seqs: Iterable[int]) -> None:
        """Note entries that nobody needs any more; they are removed sooner or later."""
        self._outdated.extend(seqs)

    async def remove(self, seqs: Iterable[int]) -> None:
        """Remove entries physically, and leave no copy of their data."""
        await self.journal.delete(self.key, list(seqs))

    async def read(self) -> list[Entry]:
        """All entries of the session; from now on this memory knows it up to the last of them.

        Raises:
            SessionConflictError: An append was interrupted, and someone else has written since.
        """
        last = await self.journal.last(self.key)
        entries = [e for e in await self.journal.read(self.key) if e.seq <= last]
        self.landed = False
        if self.doubt is not None:
            self._settle_doubt(entries, last)
        self.last = last
        self._outdated = []
        return entries

    def _settle_doubt(self, entries: list[Entry], last: int) -> None:
        """Everything new must be what the interrupted append tried to write.

        Some of it may be gone again: a memory that was opened meanwhile finishes a deletion.
        """
        attempt, self.doubt = self.doubt or [], None
        first = last - len(attempt) + 1
        tried = {first + at: (e.kind, to_line(e.data)) for at, e in enumerate(attempt)}
        new = [entry for entry in entries if entry.seq > self.last]
        if any(tried.get(entry.seq) != (entry.kind, to_line(entry.data)) for entry in new):
            raise self.overtaken(last)
        self.landed = bool(new) or (last > self.last and attempt[0].kind == "forget")

    def overtaken(self, found: int) -> SessionConflictError:
        """The error of a memory that someone else was faster than."""
        return SessionConflictError(
            f"Session {self.key} was written to by another memory, in this process or another one: "
            f"it stands at entry {found}, and this memory knows it up to {self.last}. Nothing was "
            "written. Call reopen() on this memory to read what the other one wrote, then try "
            "again; or give each writer a session of its own",
            session=self.key,
            expected=self.last,
            found=found,
        )

    async def _prune(self) -> None:
        if len(self._outdated) >= PRUNE_AT:
            seqs, self._outdated = self._outdated, []
            await self.journal.delete(self.key, seqs, scrub=False)
