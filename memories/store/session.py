"""One session of a journal, as one memory reads and writes it.

When something is written: outside a run, when ``update()`` and the like return. In a run, what a
state does is held (:meth:`Session.hold`) and appended in one write with what comes next and cannot
wait: the beginning of tool calls, a result while others still run, the end of the step or of the
run. The log and the views have it at once. ``here`` (``memories/runs/work.py``) says that a
state is at work; tools, hooks and other tasks of the program write at once, and so do shared
sessions. An engine holds back the events of leaving and entering a state until the step is written.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, TypeAlias, cast

from agent_brain.common.errors import FinalError
from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import (
    JournalConflictError,
    JournalError,
    LeaseHeldError,
    SessionConflictError,
)
from agent_brain.memories.journal.base import PAGE, Journal
from agent_brain.memories.journal.entry import Entry, Row, Rows, to_line
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.message import Message
from agent_brain.memories.store.events import RECORDED_CALL, RUN, checked, entry
from agent_brain.memories.store.lock import Lock
from agent_brain.memories.store.run_record import RunRecord
from agent_brain.memories.trace.chunks import TraceLog
from agent_brain.tools.context import call_here

log = get_logger(__name__)
History: TypeAlias = int | Literal["all", "last"]
USER_SESSION = "(user)"  # has what is known about the tenant; it is not a conversation
LONG = "long"  # what a snapshot and the name of a session call a long-term memory
PRUNE_AT = 128  # outdated entries that may gather before they are removed


def session_key(session: str, tenant: str | None = None) -> str:
    """Return the key of a tenant's session in a journal; no two pairs have the same key."""
    return json.dumps([tenant, session], ensure_ascii=False)


def read_session_key(key: str) -> tuple[str, str | None]:
    """Return the session and the tenant of a key that :func:`session_key` returned."""
    tenant, session, *_ = json.loads(key)
    return session, tenant


def listed_key(session: str, tenant: str | None = None) -> str:
    """Return the key of what a server lists of a session; those of memories are lists."""
    return json.dumps({"session": [tenant, session]}, ensure_ascii=False)


def listed_prefix(tenant: str | None) -> str:
    """Return what the keys of all that a server lists of a tenant's sessions begin with."""
    return listed_key("", tenant)[: -len('""]}')]


def branches_key(chat: str, tenant: str | None = None) -> str:
    """Return the key of the branches of a chat on a server."""
    return json.dumps({"branches": [tenant, chat]}, ensure_ascii=False)


def branches_prefix(tenant: str | None) -> str:
    """Return what the keys of the branches of all chats of a tenant begin with."""
    return branches_key("", tenant)[: -len('""]}')]


def responses_key(session: str) -> str:
    """Return the key of what is kept of the responses of a session, by the key of the session.

    It has the calls that were approved in copies, and where responses were cut.
    """
    return json.dumps({"approved": session}, ensure_ascii=False)


def long_term_session(session: str) -> str:
    """Return the name of the session with the long-term memory of a layered memory by name."""
    return json.dumps([session, LONG])


def branch_key(key: str, *names: str) -> str:
    """Return the key of a branch of a session; it is below that of the session."""
    return json.dumps([*json.loads(key), *names], ensure_ascii=False)


def branch_place(key: str, branch: str) -> list[str]:
    """Return the names of a branch of a session, as :func:`branch_key` was given them."""
    names: list[str] = json.loads(branch)[len(json.loads(key)) :]
    return names


def names_in(key: str) -> list[Any]:
    """Return what a key consists of; nothing if it is not one of a memory."""
    try:
        names = json.loads(key)
    except (ValueError, TypeError, RecursionError):
        return []
    return names if isinstance(names, list) else []


def is_session_key(key: str) -> bool:
    """Return whether a memory may have written the key, of a session or of a branch of one."""
    return len(names_in(key)) > 1


def is_branch(key: str) -> bool:
    """Return whether a key is that of a branch of a session."""
    return len(json.loads(key)) > len(("tenant", "session"))


async def delete_key(journal: Journal, key: str) -> int:
    """Remove a session from a journal, with its branches; return how many entries it had."""
    for branch in await journal.sessions(below(key)):
        await journal.delete(branch)
    return await journal.delete(key)


def below(key: str) -> str:
    """Return what the keys of all branches of a session begin with, and no other key."""
    return key[:-1] + ", "


async def entries_of(
    journal: Journal, key: str, after: int = 0, *, size: int = PAGE
) -> AsyncGenerator[Entry, None]:
    """Yield the entries of a session after a sequence number, with its history, page by page.

    Who leaves it early closes it.
    """
    pages = journal.pages(key, after, history=journal.has_history, size=size)
    async with aclosing(pages):
        async for page in pages:
            for made in page:
                yield made


async def first_entry(journal: Journal, key: str) -> Entry | None:
    """Return the first entry of a session; None if it has none."""
    async with aclosing(journal.pages(key, size=1)) as pages:
        return next(iter(await anext(pages, [])), None)


@dataclass(slots=True)
class Reading:
    """What one memory knows of the entries of its session, from the first one on.

    Attributes:
        resumes_at: While they are read, the number of the last one about what has left the views.
        in_progress: Whether they are being read.
        marked_at: The number of the entry that says what has left.
        values_at: The numbers of the entries with values, by name.
        evicted: What left the views meanwhile, with places.
        removed: The IDs of what was removed meanwhile.
    """

    resumes_at: int = 0
    in_progress: bool = False
    marked_at: int = 0
    values_at: dict[str, int] = field(default_factory=dict)
    evicted: list[tuple[int, Message]] = field(default_factory=list)
    removed: dict[str, None] = field(default_factory=dict)

    def take(self) -> tuple[list[tuple[int, Message]], dict[str, None]]:
        """Return what left the views and what was removed while the entries were read; once."""
        taken = self.evicted, self.removed
        self.evicted, self.removed = [], {}
        return taken


@dataclass(eq=False, slots=True)
class Session:
    """A session as one memory knows it: what it has read, and what it may write.

    Attributes:
        journal: The journal.
        key: The session's key in the journal.
        shared: Whether other memories append at the same time.
        history: How many steps are kept.
        lease: The lease of the run that uses the memory.
        running: Whether the memory's run, and no other program, writes to the session.
        lock: Held while something is written, so that the writes of one memory keep their order.
        last: The last sequence number that this memory knows, of what is held too.
        held: Entries of the current step, which are written with the next ones that cannot wait.
        doubt: The entries of an interrupted append, until it is known whether they were written.
        append_found: Whether the last reading found the interrupted append in the journal.
        run: What the session has of the state of a run.
        traced: What it has of recorded calls.
        failure: The error of the store that has ended the run; the run writes nothing more then, in
            no branch and no nested run.
        inside: The session of the run, where it is a copy that a run inside a step uses.
        main: The session of the run that this one is a part of.
        parent: The session that this one is a branch of, if it is one. It begins with the entries
            of that session, and only what is written to it is in the journal under its key.
        offset: The last sequence number of the parent's entries that a branch begins with; its own
            entries are numbered from there.
        owns_journal: Whether the journal is closed with the memory.
        lease_wait: How long a run waits for the lease, in seconds.
        stale: Whether the session is to be read before anything else.
        adopts_control: Whether the memory takes the control from the session when it is read next.
        if_append_found: Called if an interrupted append turns out to have been written.
        marker: The name of the value with the place up to which messages were handed over.
        reading: What is known of the entries since they were read from the first one.
    """

    journal: Journal
    key: str
    shared: bool = False
    history: History = "last"
    owns_journal: bool = False
    lease_wait: float = 0
    parent: Session | None = None
    inside: InitVar[Session | None] = None
    main: Session = field(init=False)
    failure: FinalError | None = None
    offset: int = field(init=False)
    last: int = field(init=False)
    running: bool = field(init=False)
    lease: Lease | None = None
    lock: Lock = field(default_factory=Lock)
    held: list[Entry] = field(default_factory=list)
    doubt: Sequence[Entry] | None = None
    append_found: bool = False
    if_append_found: Callable[[], None] | None = None
    run: RunRecord = field(default_factory=RunRecord)
    traced: TraceLog = field(default_factory=TraceLog)
    stale: bool = True
    adopts_control: bool = True
    marker: str | None = None
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self, inside: Session | None) -> None:
        around = self.parent or inside
        self.main = self if around is None else around.main
        self.offset = self.last = 0 if self.parent is None else self.parent.last
        self.running = self.parent is not None

    async def append(self, entries: Sequence[Entry]) -> int:
        """Write ``entries``; return the sequence number of the first one.

        Raises:
            SessionConflictError: Another memory has written to the session.
            JournalError: The session is to be read first, as an append was interrupted; or the
                store has failed before in this run.
        """
        if self.main.failure is not None:
            raise self.main.failure
        if self.doubt is not None:
            raise self._interrupted()
        held, self.held = self.held, []
        self.last -= len(held)
        before = () if self.parent is None and self.running else self._before(entries)
        ahead = [*held, *before]
        written = [*ahead, *entries] if ahead else entries
        append, expect = self.journal.append, self.last - self.offset
        try:
            if not self.journal.has_leases:
                last = await append(self.key, written, expect=expect)
            else:
                try:
                    last = await append(self.key, written, expect=expect, lease=self.lease)
                except LeaseHeldError:  # the lease of a process that has ended may be in the way
                    last = await self._append_with_lease(written, expect)
        except JournalConflictError as error:
            if held:  # the memory has them, and the session has not
                self.doubt = []
            raise self.conflict(error.found) from error
        except BaseException as error:
            if not self.shared:
                self._doubt(written, held, error)
            raise
        self.last = self.offset + last
        if (call := call_here()) is not None:
            self.run.note_writer(call.action.id, self.last, len(entries))
        return self.last - len(entries) + 1

    async def _append_with_lease(self, entries: Sequence[Entry], expect: int) -> int:
        lease = await self.journal.acquire(self.key)
        try:
            return await self.journal.append(self.key, entries, expect=expect, lease=lease)
        finally:
            await self.journal._give_back(lease)

    def _doubt(self, written: Sequence[Entry], held: list[Entry], error: BaseException) -> None:
        """Note that it is not known whether ``written``, what was held included, is written."""
        self.doubt = written
        if not isinstance(error, JournalError):  # the step may continue, and has what was held
            self.held = held
            self.last += len(held)
        elif self.running and self.main.running:  # it ends the run that writes here
            self.main.failure = error

    def _interrupted(self) -> JournalError:
        """Return the error of a writer that has waited for one that was interrupted."""
        return JournalError(
            f"Session {self.key}: a write before this one was interrupted, and it is not known "
            "whether it was done. Nothing of this one was written: do it again"
        )

    def hold(self, entries: Sequence[Entry]) -> int:
        """Number ``entries``, to be written with what is written next; return the first number.

        Raises:
            JournalError: The session is to be read first, as an append was interrupted.
        """
        if self.doubt is not None:
            raise self._interrupted()
        before = () if self.parent is None and self.running else self._before(entries)
        held = [*before, *entries]
        self.held += held
        self.last += len(held)
        if (call := call_here()) is not None:
            self.run.note_writer(call.action.id, self.last, len(entries))
        return self.last - len(entries) + 1

    def drop_held(self) -> None:
        """Forget what is held."""
        self.last -= len(self.held)
        self.held = []

    async def flush(self) -> None:
        """Write what is held."""
        if self.held:
            async with self.lock:
                await self.append([])

    def _before(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Yield what is to be written ahead of ``entries``."""
        if not entries:
            return
        if self.parent is not None and self.last == self.offset:
            yield entry("forked", {"upto": self.offset})
        if not self.running and not self.shared and self.run.is_running:
            yield entry("beside", len(entries))

    async def acquire(self, wait: float) -> None:
        """Get the lease of the session.

        Raises:
            LeaseHeldError: Another runner has it, and does not release it in time.
        """
        async with self.lock:  # nothing is written here meanwhile without the lease
            self.lease = await self.journal.acquire(self.key, wait=wait)
            self.running = True

    async def is_outdated(self) -> bool:
        """Return whether another memory has written to the session since it was read."""
        return self.offset + await self.journal.last(self.key) != self.last - len(self.held)

    async def release(self) -> None:
        """Give the lease back, if there is one; if that fails, it ends by itself."""
        try:
            if self.held and self.failure is None and self.doubt is None:
                await self.flush()
        finally:
            lease, self.lease = self.lease, None
            self.running, self.failure = False, None
            if lease is not None:
                await self.journal._give_back(lease)

    async def set_aside(self, seqs: Iterable[int]) -> None:
        """Retire entries that a rollback undoes: branches of the step may begin with them."""
        if self.journal.has_history:
            await self.journal.retire(self.key, self._own(seqs))
        else:
            await self.journal.delete(self.key, self._own(seqs), scrub=False)

    async def remove(self, seqs: Iterable[int]) -> None:
        """Remove entries physically and leave no copy of their data."""
        await self.journal.delete(self.key, self._own(seqs))

    def _own(self, seqs: Iterable[int]) -> list[int]:
        """Return the numbers that the journal has for entries of this session."""
        if self.parent is None:
            return [*seqs]
        return [seq - self.offset for seq in seqs if seq > self.offset]

    async def drop_history(self) -> None:
        """Remove the history; a removal that leaves no copies follows, except if it is shared."""
        if self.traced.live:
            await self.journal.delete(self.key, self._own(self.traced.live), scrub=False)
        self.traced.clear()
        if self.journal.has_history:
            await self.journal.trim(self.key, scrub=self.shared)

    async def read(self) -> Rows:
        """Return all entries of the session, what is held too; take the last one as known.

        Raises:
            SessionConflictError: An append was interrupted, and another memory has written since.
        """
        held = self.held
        if held:
            self.drop_held()
        last = self.offset + await self.journal.last(self.key)
        rows = await self.written() if last else Rows()
        if rows.seqs[-1:] > [last]:
            rows = rows[: bisect_right(rows.seqs, last)]
        self.append_found = False
        if self.doubt is not None:
            self._settle_doubt(rows, last)
        if held and last == self.last:  # it was not written
            self.held, numbered = held, enumerate(held, last + 1)
            rows = Rows([*rows, *((seq, e.kind, to_line(e.data)) for seq, e in numbered)])
            rows = rows.without(["forked"])
        self.last = last + len(self.held)
        self.run.reset()
        return rows

    async def rows(self, after: int = 0, *, history: bool = False) -> Rows:
        """Return the entries after a sequence number, in their current form."""
        await self.flush()
        return await self.written(after, history=history)

    async def written(self, after: int = 0, *, history: bool = False) -> Rows:
        """Return the entries that are in the journal, as :meth:`rows`; for who has the lock."""
        first = max(after - self.offset, 0)
        if history and self.journal.has_history:
            found = as_rows(await self.journal.rows(self.key, first, history=True))
        else:
            found = as_rows(await self.journal.rows(self.key, first))
        found = self.traced.take_out(checked(found)) if not history else checked(found)
        found = found.without([RECORDED_CALL])
        if self.parent is None:
            return found
        own = found.without(["forked"]).moved(self.offset)
        if after >= self.offset:
            return own
        before = (await self.parent.rows(after, history=True)).without(RUN)
        whole = before[: bisect_right(before.seqs, self.offset)]
        whole.extend(own)
        return whole

    async def find_branch(self, *, begun: bool | None = None) -> bool:
        """Find out whether this branch has entries, and which of its parent's it begins with.

        Args:
            begun: Whether the branch had begun, if that is known: if not, its entries are removed.
        """
        first = await first_entry(self.journal, self.key)
        if first is not None and begun is not False:
            self.offset = cast("dict[str, Any]", first.data)["upto"]
            return True
        if await self.journal.last(self.key):
            await self.journal.delete(self.key, scrub=False)
        return begun or False

    async def read_new(self) -> Rows | None:
        """Return the entries that were written since the last reading.

        None if some of them are gone again, or the session was removed: then it is to be read.
        """
        last = await self.journal.last(self.key)
        if last == self.last:
            return Rows()
        rows = as_rows(await self.journal.rows(self.key, max(self.last - 1, 0)))
        if self.last:  # if the last one that is known is gone, this may be another session
            rows = rows[1:] if rows.seqs[:1] == [self.last] else Rows()
        last = max([last, *rows.seqs[-1:]])
        complete = len(rows) == last - self.last
        self.last = last
        return checked(rows) if complete else None

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
        forgot = bool(attempt) and attempt[0].kind.startswith("forget")
        self.append_found = bool(new) or (last > self.last and forgot)

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

    async def prune(self) -> None:
        """Retire outdated entries, and remove those that are older than the history."""
        run, kept = self.run, self.history if isinstance(self.history, int) else 0
        seqs, run.outdated = self._own([*run.outdated, *self.traced.live]), []
        del run.steps[: -kept - 1]
        self.traced.live.clear()
        if self.history != "all" or not self.journal.has_history:
            self.traced.lose()  # so that what is older can be removed
        if self.history == "last":
            await self.journal.delete(self.key, seqs, scrub=False)
            return
        await self.journal.retire(self.key, seqs)
        if self.history != "all" and len(run.steps) > self.history:
            before = self.traced.whole_from(run.steps[0])
            if before is not None:
                await self.journal.trim(self.key, before - self.offset)


def as_rows(found: Sequence[Row]) -> Rows:
    """Return rows as columns; a journal of a user's own may return a list."""
    return found if isinstance(found, Rows) else Rows(found)
