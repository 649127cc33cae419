"""Deletes, forgets, clears and expires the messages of a stored memory. Private."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from pydantic import JsonValue

from agent_brain.memories.control import Control
from agent_brain.memories.errors import JournalError, MemoryUseError
from agent_brain.memories.journal.entry import Row, Rows
from agent_brain.memories.message import Message
from agent_brain.memories.store.erasure import Erasure, deleted, forgotten, strike, texts_of
from agent_brain.memories.store.events import (
    MESSAGES,
    Added,
    Change,
    Checkpointed,
    Cleared,
    Removed,
    ValueSet,
    read_change,
)
from agent_brain.memories.store.expiry import as_duration
from agent_brain.memories.store.filters import (
    ForgetOptions,
    Names,
    Query,
    checked_text,
    moment,
    names,
)
from agent_brain.memories.store.kinds import RUN
from agent_brain.memories.store.log import id_of
from agent_brain.memories.store.many import in_slices, in_thread_if_many
from agent_brain.memories.store.queries import read_journal
from agent_brain.memories.store.run_record import RunRecord
from agent_brain.memories.views.groups import with_partners
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory

log = get_logger(__name__)
Plan: TypeAlias = Callable[[], Sequence[Change]]
EXPIRED = Erasure(for_good=True)  # a run that waits keeps what it needs


async def delete(memory: StoredMemory, ids: Names) -> int:
    """Remove messages and their partners; see :meth:`StoredMemory.delete`."""
    wanted = names("ids", ids)
    log = memory.store.log
    known = [m for m in map(log.get, wanted) if m is not None]
    if not known:
        return 0
    alone = not any(m.tool_calls or m.tool_call_id for m in known)
    if not alone:
        await log.decoded()
    going: list[str] = []
    gone = Erasure()

    def plan() -> list[Change]:
        nonlocal gone, going
        going = [i for i in wanted if i in log] if alone else with_partners(wanted, log)
        gone = deleted(m for m in map(log.get, going) if m is not None)
        return [Removed(going), *_struck(memory, gone)] if going else []

    await memory.store.change(plan, lambda: _strike(memory, gone))
    return len(going)


async def remove(
    memory: StoredMemory, ids: Iterable[str], gone: Erasure, note: Plan = tuple
) -> None:
    """Record that messages are removed, wherever they are, without their partners; and a note."""
    going = list(ids)
    change = memory.store.change(
        lambda: [*([Removed(going)] if going else []), *note(), *_struck(memory, gone)],
        lambda: _strike(memory, gone),
    )
    await memory._carry_out(change)  # a call without results may have kept others in a view


async def set_value(memory: StoredMemory, name: str, value: JsonValue, *, erase: bool) -> None:
    """Set a value of a memory; with ``erase``, leave no copy of the previous one."""
    store = memory.store
    await store.change(lambda: [ValueSet(name, value), *(store.marks() if erase else ())])
    if erase:
        await scrub(memory)


async def clear(memory: StoredMemory, *, keep_pinned: bool, note: Sequence[Change] = ()) -> int:
    """Remove everything; see :meth:`StoredMemory.clear`. ``note`` is recorded with it."""
    store = memory.store
    await store.log.decoded()
    before = len(store.log)
    kept = [store.log[message_id] for message_id in store.log.pinned()] if keep_pinned else []
    stays = {message.id for message in kept}
    gone = await in_thread_if_many(
        [store.log[i] for i in store.log.ids() if i not in stays],
        partial(forgotten, everything=True),
    )
    changes: list[Change] = [Cleared(), *([Added(kept)] if kept else []), *note]
    if store.session is not None and store.session.run.at:  # the run continues to count
        control = _stored_control(store.session.run)
        strike(control, gone, live=_is_live(memory))
        changes.append(Checkpointed(RunRecord().reduced(control)))
    await store.replace_all(changes, lambda: _strike(memory, gone))
    return before - len(kept)


async def forget(
    memory: StoredMemory,
    fits: Callable[[Message], bool],
    ids: AbstractSet[str] | None,
    text: str | None,
) -> int:
    """Forget the messages that ``fits`` accepts and their partners.

    Args:
        memory: The memory.
        fits: Whether a message is to be forgotten.
        ids: IDs that the choice is limited to, if it is.
        text: The text that they were chosen by, if they were.
    """
    held = await everything(memory)
    going, gone = await choose(held, fits, text)
    return await erase(memory, going, gone, ids, held.keys())


async def choose(
    held: Mapping[str, Message], fits: Callable[[Message], bool], text: str | None
) -> tuple[list[str], Erasure]:
    """Return the IDs of the messages that ``fits`` accepts, partners included, and what is gone."""
    found = [i async for i, message in in_slices(held.items()) if fits(message)]
    going = await in_thread_if_many(held.values(), partial(with_partners, found))
    return going, await in_thread_if_many([held[i] for i in going], partial(forgotten, text=text))


async def expire(memory: StoredMemory) -> None:
    """Forget what has expired, except the goal and calls that wait for their results."""
    store = memory.store
    due = store.expiry.take_due(store.clock())
    if not due:
        return
    waiting = {action.id for action in memory.control.next_actions}
    going: list[tuple[datetime, str]] = []
    staying: list[tuple[datetime, str]] = []
    for item in due:
        message = store.log.get(item[1])  # None: it has left a window, or is in a summary
        stays = message is not None and (
            message.id == store.goal_id or any(c.id in waiting for c in message.tool_calls)
        )
        (staying if stays else going).append(item)
    ids = [message_id for _, message_id in going]
    try:
        if going and store.readonly:
            store.drop(with_partners(ids, store.log))
        elif going:
            held = await everything(memory)
            going_too = await in_thread_if_many(held.values(), partial(with_partners, ids))
            await erase(memory, going_too, EXPIRED, frozenset(ids), held.keys())
    except BaseException:
        staying += going
        raise
    finally:
        store.expiry.give_back(staying)
        if staying:
            store.settled = False


async def everything(memory: StoredMemory) -> dict[str, Message]:
    """Return every message in RAM, in the journal or held by a run, with its tags, by ID."""
    store = memory.store
    if store.session is None:
        found = {message_id: message for message_id, (_, message) in store.released.items()}
        found |= zip(store.log.ids(), store.log.all(), strict=True)
    else:
        found = await read_journal(store, removed=True)
    for call in memory.control.pending.values():
        if call.result is not None:
            found.setdefault(call.result.id, call.result)
    return found


async def erase(
    memory: StoredMemory,
    ids: Sequence[str],
    gone: Erasure,
    meant: AbstractSet[str] | None,
    held: AbstractSet[str],
    note: Plan | None = None,
) -> int:
    """Erase messages, and the values that may quote them.

    Args:
        memory: The memory.
        ids: Their IDs, partners included.
        gone: What is removed from the control of the run.
        meant: The IDs that were asked for; None if any message may be meant.
        held: The IDs of all messages that there are.
        note: Returns what is recorded with it.
    """
    store = memory.store
    stale = _stale_values(memory, {*ids}, None if meant is None else meant - held, held)
    changes: list[Change] = [
        *([Removed(ids, forgotten=True)] if ids else []),
        *(ValueSet(name, None) for name in sorted(stale)),
        *_struck(memory, gone),
    ]

    def plan() -> list[Change]:
        noted = [*changes, *(note() if note else ())]
        return [*noted, *store.marks()] if noted else []

    await store.change(plan, lambda: _strike(memory, gone))
    try:
        if changes or note:
            await _scrub_after(memory, gone)
    finally:
        if stale and store.session is not None:
            store.reread()  # what a dropped summary covered counts again
        elif stale:
            store.take_back([*store.released.values()])
    return len({*ids})


def _stale_values(
    memory: StoredMemory,
    ids: AbstractSet[str],
    unknown: AbstractSet[str] | None,
    held: AbstractSet[str],
) -> set[str]:
    """Return the names of values that may quote messages of these IDs, or of unknown ones."""
    return {
        name
        for view in memory.store.views
        for asked in (ids, unknown)
        for name in view.stale_values(asked, held)
        if name in memory.store.values
    }


async def _scrub_after(memory: StoredMemory, gone: Erasure) -> None:
    """Scrub the journal; if that fails, what has only expired stays in it until the next time."""
    try:
        await scrub(memory)
    except JournalError as error:
        if gone is not EXPIRED:
            raise
        log.warning("Expired messages could not be wiped from the journal yet: %s", error)


async def scrub(memory: StoredMemory) -> None:
    """Remove what the journal still has of forgotten messages and of outdated values.

    The history goes with them, as it has the state of earlier steps.
    """
    session = memory.store.session
    if session is None:
        memory.store.traced.clear()
    else:
        await session.drop_history()
        rows = await session.rows()
        await session.remove(await in_thread_if_many(rows, partial(_dead, memory)))


async def finish_removal(memory: StoredMemory, rows: Rows, counting: Rows) -> None:
    """Finish what a process that was stopped inside forget(), clear() or rollback() has left."""
    session = memory.store.session
    if session is None:
        return
    erased = "forget" in counting.kinds or "clear" in rows.kinds[1:]
    counts = {*counting.seqs} if len(counting) < len(rows) else None
    left = [] if counts is None else [seq for seq in rows.seqs if seq not in counts]
    dead = _dead(memory, counting) if "forget" in counting.kinds else []
    try:
        if erased:
            await session.drop_history()
            await session.remove([*left, *dead])
        elif left:
            await session.set_aside(left)
    except JournalError as error:  # what they note stays, and is read at the next opening
        log.warning("Forgotten messages could not be wiped from the journal yet: %s", error)


def _dead(memory: StoredMemory, rows: Sequence[Row]) -> list[int]:
    """Return the entries that may quote something forgotten and are not needed any more.

    A message that was added again after it was forgotten counts. In a shared session the note that
    messages were forgotten stays, for memories that have not read it yet; it has only their IDs.
    """
    store = memory.store
    run = set[int]() if store.session is None else store.session.run.standing
    standing = {*run, store.marked_at, *store.values_at.values()}
    dead, gone = [], set[str]()
    for seq, kind, line in reversed(rows):
        if kind in RUN or kind in ("view", "evicted"):
            if seq not in standing:
                dead.append(seq)
        elif kind == "forget":
            gone.update(cast("Removed", read_change(seq, kind, line)).ids)
            if not store.shared:
                dead.append(seq)
        elif kind in MESSAGES and gone and id_of(line) in gone:
            dead.append(seq)
    return dead


def _is_live(memory: StoredMemory) -> bool:
    return memory.busy or bool(memory.control.branch)


def _strike(memory: StoredMemory, gone: Erasure) -> None:
    strike(memory.control, gone, live=_is_live(memory))


def _struck(memory: StoredMemory, gone: Erasure) -> list[Change]:
    """Return what to record so that the last step does not hold what is gone either."""
    session = memory.store.session
    if session is None or not session.run.at:
        return []
    control = _stored_control(session.run)
    before = control.model_dump()
    strike(control, gone, live=_is_live(memory))
    if control.model_dump() == before:
        return []
    run = session.run
    since = run.safe_at if control.status == "running" else None
    return [Checkpointed(run.reduced(control), since)]


def _stored_control(run: RunRecord) -> Control:
    return Control.model_validate(run.whole())


def forgettable(
    ids: Names | None, which: ForgetOptions, now: datetime
) -> Callable[[Message], bool]:
    """Return the options of ``forget()`` as a function of a message.

    Raises:
        MemoryUseError: No option is given, or one makes no sense.
    """
    if ids is None and all(given is None for given in which.values()):
        raise MemoryUseError("Say which messages to forget; clear() removes all of them")
    for option in ("text", "where"):
        if which.get(option) in ("", {}):
            raise MemoryUseError(
                f"{option}= is empty, which fits every message. Say which messages to forget; "
                "clear() removes all of them"
            )
    older_than = which.get("older_than")
    until = now - older_than if isinstance(older_than, timedelta) else older_than
    if isinstance(older_than, timedelta):
        as_duration("older_than", older_than)
    elif until is not None:
        moment("older_than", until)
    fits = Query(
        where=which.get("where"),
        until=until,
        role=which.get("role"),
        name=which.get("name"),
        tags=which.get("tags"),
    ).predicate()
    text = which.get("text")
    part = "" if text is None else checked_text("text=", text).casefold()
    wanted = None if ids is None else names("ids", ids)
    return lambda message: (
        (wanted is None or message.id in wanted)
        and fits(message)
        and any(part in said.casefold() for said in texts_of(message))
    )
