"""Forgets in a memory and in the branches of its run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from agent_brain.memories.branches import journaled
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.entry import Rows
from agent_brain.memories.message import Message
from agent_brain.memories.store import removal
from agent_brain.memories.store.erasure import Erasure, forget_in_control
from agent_brain.memories.store.events import MESSAGES, Forgetting, effective
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.filters import Choice, ForgetOptions, Names, forgettable, rest_of
from agent_brain.memories.store.log import decode
from agent_brain.memories.store.many import in_thread_if_many

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory
    from agent_brain.memories.control import Control
    from agent_brain.memories.layered import LayeredMemory
    from agent_brain.memories.stored import StoredMemory


@dataclass(frozen=True, slots=True)
class Inside:
    """What is to be forgotten in the branches of a memory.

    Attributes:
        branches: The branches; those inside of them are their own.
        ids: The IDs of the messages in all of them.
        ends_run: Whether one of them loses a call or a question that it waits with, or its state
            quotes what goes, or it is a copy of another memory and loses anything: the run cannot
            continue without it, and must not begin again.
    """

    branches: tuple[Memory, ...] = ()
    ids: frozenset[str] = frozenset()
    ends_run: bool = False


async def forget(memory: StoredMemory, choice: Choice) -> int:
    """Forget in a memory and in its branches; return how many messages.

    If it is interrupted, the next use of the memory finishes it.
    """
    session = memory.store.session
    rows = Rows() if session is None else await session.rows()
    counting = await in_thread_if_many(rows, effective)
    choice = choice.with_rest(removal.unfinished_forgetting(counting))
    noted = removal.ids_noted(counting)
    held = await removal.everything(memory)
    inside = await look_inside(memory, choice, held)
    quoting = await in_thread_if_many(rows, partial(removal.rows_with, choice.parts))
    as_written = (decode(line, seq) for seq, kind, line in quoting if kind in MESSAGES)
    found = {message.id for message in as_written if choice.fits(message)}
    fits = choice.fits
    chosen = replace(choice, fits=lambda m: m.id in found or fits(m))
    going, gone = await removal.choose(held, chosen)
    new = [i for i in going if i not in noted]

    async def forget_inside() -> None:
        await forget_in(memory, inside, choice)

    return await removal.erase(
        memory,
        new,
        replace(gone, ends_run=inside.ends_run),
        choice.ids,
        held,
        quoting=quoting,
        unfinished=not {"forget", "forgetting"}.isdisjoint(counting.kinds) and not memory.shared,
        inside=inside.ids,
        then=forget_inside,
    ) + len(inside.ids)


async def finish(memory: StoredMemory, unfinished: Forgetting) -> None:
    """Finish what was interrupted; if the journal fails, the next opening does it."""
    try:
        await forget(memory, rest_of(unfinished))
    except JournalError as error:
        removal.log.warning(removal.NOT_YET, error)


async def look_inside(
    memory: Memory,
    choice: Choice,
    held: Mapping[str, Message] | None = None,
    *,
    kept_only: bool = False,
) -> Inside:
    """Return what a choice means for the branches of a memory, unless its run is in progress.

    Args:
        memory: The memory.
        choice: What is to be forgotten.
        held: The messages of the memory itself, which a branch may begin with.
        kept_only: Only the branches that it keeps in RAM.
    """
    if memory.busy:
        return Inside()
    branches: list[Memory] = [b for b in memory._kept_branches().values() if hasattr(b, "forget")]
    for stored in () if kept_only else stored_in(memory):
        branches += await journaled.interrupted_branches(stored, memory.step_place)
    ids, ends = set[str](), False
    for branch in branches:
        own = dict[str, Message]()
        for stored in stored_in(branch):
            own |= await removal.everything(stored)
        own = {i: message for i, message in own.items() if i not in (held or {})}
        going, gone = await removal.choose(own, choice)
        within = await look_inside(branch, choice, own)
        ids |= {*going, *within.ids}
        lost = _loses(branch.control, gone) or (bool(going) and not branch.control.branch)
        ends = ends or within.ends_run or lost
    return Inside(tuple(branches), frozenset(ids), ends)


def _loses(control: Control, gone: Erasure) -> bool:
    """Return whether a branch with this state cannot continue."""
    after = control.model_copy(deep=True)
    held = forget_in_control(after, gone, live=bool(control.branch))
    return held or bool(_waiting(control) - _waiting(after))


async def forget_in(memory: StoredMemory | LayeredMemory, inside: Inside, choice: Choice) -> None:
    """Forget in the branches of a memory, which has been changed accordingly."""
    if memory.control.state is None:  # the run has ended, if there was one
        await memory._drop_all_branches()
        return
    for stored in stored_in(memory):
        await journaled.drop_branches(stored, memory.step_place, scrub=True)
    await forget_in_each(inside, choice)


async def forget_in_each(inside: Inside, choice: Choice) -> None:
    """Forget in branches that continue."""
    for branch in cast("tuple[StoredMemory, ...]", inside.branches):
        if inside.ids:
            await branch.forget([*inside.ids])
        for part in choice.parts:
            await branch.forget(text=part)


async def forget_kept(memory: Memory, ids: Names | None, which: ForgetOptions) -> int:
    """Forget in the branches that a wrapper keeps in RAM; return how many messages.

    Args:
        memory: The wrapper.
        ids: As for ``forget()``.
        which: The other arguments of ``forget()``.
    """
    choice = forgettable(ids, which, utc_now())
    inside = await look_inside(memory, choice, kept_only=True)
    if inside.ends_run and memory.control.status != "idle":
        memory.control.abort()
        await memory.checkpoint()
    if memory.control.state is None:  # the run has ended, if there was one
        memory._kept = None
    else:
        await forget_in_each(inside, choice)
    return len(inside.ids)


def stored_in(memory: Memory) -> Iterator[StoredMemory]:
    """Yield the memories with a store that a memory consists of."""
    from agent_brain.memories.stored import StoredMemory

    if isinstance(memory, StoredMemory):
        yield memory
    for inner in memory.wrapped:
        yield from stored_in(inner)


def _waiting(control: Control) -> set[str]:
    asked = control.human_requests
    return set() if asked is None else {*asked.approvals, *asked.questions}
