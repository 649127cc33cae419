"""Copies of a memory: forks, as of a step, branches, and memories of runs inside a step.

A memory consists of stored memories and of what is over them: wrappers, a window over a long-term
memory. Each class here says how a stored memory is copied for one purpose. Each kind of memory says
once, in ``_copied``, what it is over such copies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, TypeVar

import anyio

from agent_brain.memories.branches.journaled import branch_at, has_branches_at, session_below
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.runs.run_memory import is_replaced
from agent_brain.memories.sessions.copies import SessionCopy, copy_at
from agent_brain.memories.sessions.timeline import CopiedJournal, SavedStep, no_step
from agent_brain.memories.store.options import JournalLike
from agent_brain.memories.store.session import (
    Session,
    below,
    branch_key,
    entries_of,
    read_session_key,
)
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.trace.call_history import copy_calls

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory
    from agent_brain.memories.message import Message
    from agent_brain.memories.stored import StoredMemory

M = TypeVar("M", bound="StoredMemory")


class NotStorableError(Exception):
    """A memory cannot be written to a journal; its copy is in RAM then."""


class Copying(ABC):
    """How the memories that a memory consists of are copied, once."""

    @abstractmethod
    async def stored(self, memory: M, whole: Memory | None = None) -> M:
        """Return the copy of a stored memory with the state of the run.

        Args:
            memory: The memory.
            whole: A memory over it whose snapshot says more than its own.
        """

    async def long_term(self, memory: M) -> M:
        """Return the copy of a long-term memory; the one with the run was copied before."""
        return await self.stored(memory)

    async def other(self, memory: Memory) -> Memory:
        """Return the copy of a memory that is not stored."""
        return await memory.fork()


async def copy_of(memory: Memory, copying: Copying) -> Memory:
    """Return a copy of a memory that another one is over; its class may have a ``fork``."""
    kind = type(memory)
    if isinstance(copying, Fork | Branch) and is_replaced(kind, "fork", kind.fork, "_copied"):
        return await memory.fork()
    return await memory._copied(copying)


async def fork_of(memory: Memory, fork: Fork) -> Memory:
    """Return a fork of a memory, with the branches that its run waits in."""
    copied = await memory._copied(fork)
    if not copied.durable:
        await memory.copy_branches(copied)
    return copied


@dataclass
class Fork(Copying):
    """An independent copy with all that a memory holds; see :meth:`StoredMemory.fork`.

    Attributes:
        journal: Where it is stored; None keeps it in RAM.
        session: Its session.
        tenant: Whose.
        replace: Replace what the session holds.
        keeper: The memory whose branches in RAM are written with a copy that a journal has.
    """

    journal: JournalLike | None = None
    session: str = "default"
    tenant: str | None = None
    _: KW_ONLY
    replace: bool = False
    keeper: Memory | None = None
    _step: tuple[str, str] = "", ""

    async def stored(self, memory: M, whole: Memory | None = None) -> M:
        """See :meth:`Copying.stored`."""
        snapshot = await (_held(memory) if whole is None else whole.snapshot())
        self._step = memory.step_place
        return await self._fork(memory, snapshot)

    async def long_term(self, memory: M) -> M:
        """See :meth:`Copying.long_term`."""
        return await self._fork(memory, await _held(memory))

    async def _fork(self, memory: M, snapshot: Snapshot) -> M:
        own = memory.store.session
        journal, session, tenant = self.journal, self.session, self.tenant
        branching = (
            own is not None and not own.running and await has_branches_at(memory, self._step)
        )
        if branching and journal is None:
            journal = CopiedJournal()
        copied = memory._copy(journal, session, tenant)
        try:
            await _check_place(own, copied.store.session, replace=self.replace)
            await copied._forked()
            if own is not None and branching:
                await self._write(await copy_at(own.journal, own.key), copied)
                copied.control = snapshot.control.model_copy(deep=True)
            elif await self._comes_whole(copied):
                in_ram = memory._copy(CopiedJournal(), session, tenant)
                await in_ram._forked()
                await in_ram.restore(snapshot)
                await copy_calls(memory.store, in_ram.store)
                if self.keeper is not None:
                    await self.keeper.copy_branches(in_ram)
                made = in_ram.store.session
                assert made is not None
                await self._write(await copy_at(made.journal, made.key), copied)
            else:
                await copied.restore(snapshot)
                await copy_calls(memory.store, copied.store)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await copied.store.aclose()
            raise
        return copied

    async def _write(self, copy: SessionCopy, copied: StoredMemory) -> None:
        """Make a memory a copy of a session, entry by entry: its branches refer to its entries."""
        own = copied.store.session
        assert own is not None
        await copy.write(own.journal, own.key, replace=self.replace)
        await copied.open()

    async def _comes_whole(self, copied: StoredMemory) -> bool:
        """Return whether a copy must be written with its branches, in one step.

        It is so if it has some, or if the session that it replaces has, which it must not take for
        its own.
        """
        own, keeper = copied.store.session, self.keeper
        if own is None or not copied.durable:
            return False
        if keeper is not None and not keeper.busy and keeper._kept_branches():
            return True
        exchanges = self.replace and own.journal.has_exchange
        return exchanges and bool(await own.journal.sessions(below(own.key)))


async def _held(memory: StoredMemory) -> Snapshot:
    """Return a snapshot; its messages are not decoded if nothing needs them."""
    return await (memory.snapshot() if memory.store.measuring else memory.snapshot_held())


async def _check_place(source: Session | None, place: Session | None, *, replace: bool) -> None:
    """Refuse to copy a session to a place if that would destroy something.

    Raises:
        MemoryUseError: The place has entries and ``replace`` is False, or it is the session itself.
    """
    if place is None:
        return
    if source is not None and source.key == place.key and place.journal.same_as(source.journal):
        raise MemoryUseError(
            f"fork() cannot write into the session of the memory itself, {place.key}: choose "
            "another one with session= or tenant="
        )
    if not replace and (rows := await place.rows()):
        raise MemoryUseError(
            f"fork() would replace what session {place.key} holds ({len(rows)} entries): "
            "choose another session=, or pass replace=True"
        )


class AsOf(Copying):
    """A copy in RAM as of a step; see :meth:`StoredMemory.as_of`.

    Args:
        step: The step, or its number.
    """

    def __init__(self, step: int | SavedStep) -> None:
        self._number = step.number if isinstance(step, SavedStep) else step

    async def stored(self, memory: M, whole: Memory | None = None) -> M:
        """See :meth:`Copying.stored`.

        Raises:
            MemoryUseError: The journal does not have the step.
        """
        steps, own = await memory.steps(), memory.store.session
        step = next((saved for saved in steps if saved.number == self._number), None)
        if own is None or step is None:
            raise no_step(memory.session, self._number, steps)
        copied = await _in_ram(memory, own, await copy_at(own.journal, own.key, step.number))
        self._time, self._step = step.time, copied.step_place
        return copied

    async def long_term(self, memory: M) -> M:
        """Return it as it was when the step was written, with the branches of the step."""
        own, time = memory.store.session, self._time
        if own is None:
            return await memory.fork()
        last = 0
        async for made in entries_of(own.journal, own.key):
            if time is None or made.time is None or made.time <= time:
                last = made.seq
        return await _in_ram(memory, own, await copy_at(own.journal, own.key, last, self._step))

    async def other(self, memory: Memory) -> Memory:
        """Refuse it.

        Raises:
            MemoryUseError: Always.
        """
        raise MemoryUseError(
            f"as_of() is passed on to a {type(memory).__name__}, which does not have it: only "
            "memories over a journal keep steps"
        )


async def _in_ram(memory: M, source: Session, copy: SessionCopy) -> M:
    """Return a copy of a memory over a copy of its session."""
    journal = CopiedJournal()
    await copy.write(journal, source.key)
    copied = memory._copy(journal, *read_session_key(source.key))
    await copied._forked()
    await copied.open()
    return copied


class Branch(Copying):
    """A branch of the current step: a session below that of the memory, or a fork in RAM.

    Args:
        name: The name of the branch.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    async def stored(self, memory: M, whole: Memory | None = None) -> M:
        """See :meth:`Copying.stored`."""
        self._place: Sequence[str] = (*memory.step_place, self._name)
        branch = await branch_at(memory, self._place)
        if branch is None:
            branch = await (memory.fork() if whole is None else Fork().stored(memory, whole))
        self._resumed = branch.resumed
        return branch

    async def long_term(self, memory: M) -> M:
        """See :meth:`Copying.long_term`."""
        branch = await branch_at(memory, self._place, resumed=self._resumed)
        return branch or await memory.fork()


class Nested(Copying):
    """A copy with a goal in the journal of a run, below its session; or the one that is there.

    Args:
        run: The session of the run.
        name: The name of the copy in the step.
        place: The place of the step.
        goal: The goal; None keeps that of the memory.
    """

    def __init__(self, run: Session, place: Sequence[str], name: str, goal: Message | None) -> None:
        self._run = run
        self._key = branch_key(run.key, *place, name)
        self._long = branch_key(run.key, *place, "", name)  # no branch of the copy is there
        self._goal = goal

    async def stored(self, memory: M, whole: Memory | None = None) -> M:
        """See :meth:`Copying.stored`."""
        return await session_below(memory, self._run, self._key, self._goal)

    async def long_term(self, memory: M) -> M:
        """See :meth:`Copying.long_term`."""
        return await session_below(memory, self._run, self._long, None)

    async def other(self, memory: Memory) -> Memory:
        """Refuse it.

        Raises:
            NotStorableError: Always.
        """
        raise NotStorableError


class Empty(Copying):
    """A memory of the same kind, with the same tools and options, that holds nothing."""

    async def stored(self, memory: M, whole: Memory | None = None) -> M:
        """See :meth:`Copying.stored`."""
        made = memory._copy(None, "default", None)
        await made._forked()
        return made

    async def other(self, memory: Memory) -> Memory:
        """Return a memory of all messages: what a memory of one's own would copy is unknown."""
        from agent_brain.memories.messages import MessagesMemory

        return MessagesMemory(memory.available_tools.values())


async def emptied(memory: Memory) -> Memory:
    """Return a memory in RAM like another one that holds nothing; see :class:`Empty`."""
    return await memory._copied(Empty())
