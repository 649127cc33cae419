"""Copies of stored memories: as they are, or as they were at a step. Private."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio

from agent_brain.memories.branches.journaled import has_branches_at
from agent_brain.memories.branches.kept import kept_branches
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.sessions.copies import (
    read_branches,
    read_calls_after,
    read_entries,
    replace_session,
    write_copy,
)
from agent_brain.memories.sessions.history import CopiedJournal, SavedStep, copied_journal, no_step
from agent_brain.memories.store.options import JournalLike
from agent_brain.memories.store.session import Session, below, branch_key, read_session_key
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.trace.call_history import copy_calls

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory
    from agent_brain.memories.stored import StoredMemory

M = TypeVar("M", bound="StoredMemory")


async def fork_of(
    memory: M,
    snapshot: Snapshot,
    journal: JournalLike | None = None,
    session: str = "default",
    tenant: str | None = None,
    *,
    replace: bool = False,
    place: Sequence[str] | None = None,
    keeper: Memory | None = None,
) -> M:
    """Return a copy of a memory that holds a snapshot, with the branches of the step at a place.

    The place is by default the current one of the memory. A durable copy gets the branches that
    ``keeper`` keeps in RAM. For the rest see :meth:`StoredMemory.fork`.
    """
    own = memory.store.session
    branching = False
    if own is not None and not own.running:
        branching = await has_branches_at(memory, memory.step_place if place is None else place)
    if branching and journal is None:
        journal = CopiedJournal()
    copied = memory._copy(journal, session, tenant)
    try:
        await _check_place(own, copied.store.session, replace=replace)
        await copied._forked()
        if own is not None and branching:
            await _take_entries(copied, own, replace=replace)
            copied.control = snapshot.control.model_copy(deep=True)
        elif await _comes_whole(copied, keeper, replace=replace):
            made = await fork_of(memory, snapshot, CopiedJournal(), session, tenant)
            if keeper is not None:
                await keeper.copy_branches(made)
            assert made.store.session is not None
            await _take_entries(copied, made.store.session, replace=replace)
        else:
            await copied.restore(snapshot)
            await copy_calls(memory.store, copied.store)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await copied.store.aclose()
        raise
    return copied


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


async def _take_entries(copied: StoredMemory, source: Session, *, replace: bool) -> None:
    """Make a memory a copy of a session, entry by entry: its branches refer to its entries."""
    own = copied.store.session
    assert own is not None
    entries = await read_entries(source.journal, source.key)
    branches = await read_branches(source.journal, source.key)
    write = replace_session if replace else write_copy
    await write(own.journal, own.key, entries, branches)
    await copied.open()


async def _comes_whole(copied: StoredMemory, keeper: Memory | None, *, replace: bool) -> bool:
    """Return whether a copy must be written with its branches, in one step.

    It is so if it has some, or if the session that it replaces has, which it must not take for its
    own.
    """
    own = copied.store.session
    if own is None or not copied.durable:
        return False
    if keeper is not None and not keeper.busy and kept_branches(keeper):
        return True
    return replace and own.journal.has_exchange and bool(await own.journal.sessions(below(own.key)))


async def as_of(memory: M, step: int | SavedStep) -> M:
    """Return a memory as it was at a step; see :meth:`StoredMemory.as_of`."""
    number = step.number if isinstance(step, SavedStep) else step
    steps, own = await memory.steps(), memory.store.session
    if own is None or number not in [saved.number for saved in steps]:
        raise no_step(memory.session, number, steps)
    copied = await copy_entries(memory, lambda entry: entry.seq <= number)
    if await has_branches_at(memory, copied.step_place):
        calls = {e.seq for e in await read_calls_after(own.journal, own.key, number)}
        copied = await copy_entries(memory, lambda e: e.seq <= number or e.seq in calls)
        await copy_branches(memory, copied, copied.step_place)
    return copied


async def copy_entries(memory: M, counts: Callable[[Entry], bool]) -> M:
    """Return a copy of a memory in RAM with the entries of its session that ``counts`` accepts."""
    own = memory.store.session
    if own is None:
        return await memory.fork()
    journal = await copied_journal(own.journal, own.key, counts)
    copied = memory._copy(journal, *read_session_key(own.key))
    await copied._forked()
    await copied.open()
    return copied


async def copy_branches(source: StoredMemory, target: StoredMemory, place: Sequence[str]) -> None:
    """Copy the branches of the step at a place, if they are still there."""
    own, other = source.store.session, target.store.session
    if own is not None and other is not None:
        branches = await read_branches(own.journal, own.key, *place)
        for names, entries in branches.items():
            await other.journal.load(branch_key(other.key, *names), entries)
