"""The branches of a stored memory in its journal, as sessions below its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, TypeVar, cast

from agent_brain.memories.control import Control
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.store.events import RUN, RunChange, checked, effective, read_change
from agent_brain.memories.store.export import content_of
from agent_brain.memories.store.run_record import RunRecord
from agent_brain.memories.store.session import (
    Session,
    as_rows,
    below,
    branch_key,
    branch_place,
    first_entry,
)

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory

M = TypeVar("M", bound="StoredMemory")


async def branch_at(memory: M, names: Sequence[str], *, resumed: bool | None = None) -> M | None:
    """Return a branch of a memory at a place below its session; None if none can be there.

    Args:
        memory: The memory.
        names: The place.
        resumed: Whether the branch has been begun before; None if that is not known.
    """
    own = memory.store.session
    if own is None or not memory.durable or memory.readonly:
        return None
    await memory.open()
    child = Session(own.journal, branch_key(own.key, *names), history=own.history, parent=own)
    copied = _copy_in(memory, child)
    copied.resumed, copied.lasting = await child.find_branch(begun=resumed), True
    await copied._forked()
    copied.control = memory.control.model_copy(deep=True)  # until it has begun
    await copied.open()
    return copied


async def session_below(memory: M, run: Session, key: str, goal: Message | None) -> M:
    """Return a copy of a memory with a goal under a key, or the one that is there.

    Args:
        memory: The memory.
        run: The session of the run that the copy is for, in whose journal it is.
        key: The key.
        goal: The goal.
    """
    journal = run.journal
    copied = _copy_in(memory, Session(journal, key, history="last", inside=run))
    copied.resumed = await first_entry(journal, key) is not None
    await copied._forked()
    if not copied.resumed:
        if await journal.last(key):  # of a copy that was removed
            await journal.delete(key, scrub=False)
        begun = await memory.fork()
        if goal is not None:
            await begun.set_goal(goal)
        snapshot = await begun.snapshot()
        await copied.open()
        await copied.store.change(lambda: content_of(snapshot, begun.control))
    await copied.open()
    return copied


def _copy_in(memory: M, session: Session) -> M:
    """Return an empty copy of a memory in a session, which only its run writes to."""
    copied = memory._copy(session.journal, "default", None, history=session.history)
    copied._conversation = memory._conversation
    copied.store.session = session
    session.running = True
    return copied


async def has_branches_at(memory: StoredMemory, place: Sequence[str]) -> bool:
    """Return whether the journal has branches of the step at a place."""
    own = memory.store.session
    if own is None or not memory.durable:
        return False
    return bool(await own.journal.sessions(below(branch_key(own.key, *place))))


async def drop_branches(memory: StoredMemory, place: Sequence[str], *, scrub: bool = False) -> None:
    """Remove the branches that are not of the step at a place.

    Args:
        memory: The memory.
        place: The place; empty to remove all.
        scrub: Leave no copy of their data.
    """
    own = memory.store.session
    if own is not None and memory.durable:
        current = below(branch_key(own.key, *place)) if place else None
        for key in await own.journal.sessions(below(own.key)):
            if current is None or not key.startswith(current):
                await own.journal.delete(key, scrub=scrub)


async def interrupted_branches(
    memory: StoredMemory, step_place: Sequence[str]
) -> list[StoredMemory]:
    """Return the branches of a step in the journal, unless the run is in progress."""
    own = memory.store.session
    if own is None or not memory.durable or memory.busy:
        return []
    found: list[StoredMemory] = []
    step = len(step_place)
    for key in await own.journal.sessions(below(branch_key(own.key, *step_place))):
        place = branch_place(own.key, key)
        first = await first_entry(own.journal, key)
        forked = first is not None and first.kind == "forked"
        if forked and len(place) == step + 1:
            branch = await branch_at(memory, place, resumed=True)
            found += [] if branch is None else [branch]
        elif not forked and len(place) in (step + 1, step + 2):
            found.append(await _open_copy(own.journal, key))
    return found


async def _open_copy(journal: Journal, key: str) -> StoredMemory:
    """Return the copy of a memory that is under a key, whatever kind of memory wrote it."""
    from agent_brain.memories.stored import StoredMemory

    memory = StoredMemory(journal=journal)
    memory.store.session = Session(journal, key, history="last")
    memory.store.session.running = True
    await memory.open()
    return memory


async def read_branch_counts(journal: Journal, key: str, control: Control) -> dict[str, Counts]:
    """Return what each branch of the current step of a session has counted, by its name.

    Args:
        journal: The journal.
        key: The key of the session.
        control: Its registers.
    """
    found: dict[str, Counts] = {}
    place = branch_key(key, control.run_id or "", str(control.moves))
    for branch in await journal.sessions(below(place)):
        if len(branch_place(place, branch)) > 1:  # below a branch
            continue
        inner = await _read_control(journal, branch)
        if inner is not None and inner.branch and inner.run_id == control.run_id:
            found[inner.branch] = await _counts_of(journal, branch, inner)
    return found


async def _counts_of(journal: Journal, key: str, control: Control) -> Counts:
    """Return what a branch has counted, with what its own branches have stored since."""
    own = Counts(**control.spent.as_data(), step=control.step)
    inside = await read_branch_counts(journal, key, control)
    known = control.counted
    more = (counts.beyond(known.get(name, Counts())) for name, counts in inside.items())
    return reduce(Counts.plus, more, own)


async def _read_control(journal: Journal, key: str) -> Control | None:
    """Return the registers that a branch has stored; None if it has not begun."""
    record = RunRecord()
    for seq, kind, line in effective(checked(as_rows(await journal.rows(key)))):
        if kind in RUN:
            record.take(cast("RunChange", read_change(seq, kind, line)), seq)
    return Control.model_validate(record.whole()) if record.at else None
