"""Deletes, forgets, clears and expires the messages of a stored memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from anyio import to_thread
from pydantic import JsonValue

from agent_brain.common.secrets import get_logger
from agent_brain.memories.control import Control
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.entry import Row, Rows, to_line
from agent_brain.memories.message import Message
from agent_brain.memories.store import events
from agent_brain.memories.store.erasure import Erasure, deleted, forget_in_control, forgotten
from agent_brain.memories.store.events import Change
from agent_brain.memories.store.filters import Choice, Keep, Names, kept_by, names, refuse_unknown
from agent_brain.memories.store.log import id_of
from agent_brain.memories.store.many import in_slices, in_thread_if_many
from agent_brain.memories.store.queries import read_journal
from agent_brain.memories.store.run_record import RunRecord
from agent_brain.memories.store.session import below
from agent_brain.memories.views.groups import with_partners

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory

log = get_logger(__name__)
Plan: TypeAlias = Callable[[], Sequence[Change]]
EXPIRED = Erasure(for_good=True)  # a run that waits keeps what it needs
REMOVING = "removing"  # the name of the value with what a layered memory is still to remove
OVER = ("idle", "ended")  # the status of a run that needs no branches
NOT_YET = "What was forgotten could not be wiped from the journal yet, the next use does it: %s"


async def delete(memory: StoredMemory, ids: Names, *, strict: bool) -> int:
    """Remove messages and their partners; see :meth:`StoredMemory.delete`."""
    wanted = names("ids", ids)
    log = memory.store.log
    known = [m for m in map(log.get, wanted) if m is not None]
    if not known and not strict:
        return 0
    alone = not any(m.tool_calls or m.tool_call_id for m in known)
    if not alone:
        await log.decoded()

    def choose() -> list[str]:
        if strict:
            refuse_unknown(wanted, log)  # another program may have deleted one meanwhile
        return [i for i in wanted if i in log] if alone else with_partners(wanted, log)

    return await remove(memory, choose)


async def remove(
    memory: StoredMemory,
    choose: Callable[[], Sequence[str]],
    gone: Erasure | None = None,
    note: Plan = tuple,
) -> int:
    """Record that messages are removed, without their partners, and a note; return how many.

    Args:
        memory: The memory.
        choose: Returns their IDs; they need not be here.
        gone: What is removed from the state of the run; None for their calls.
        note: Returns what is recorded with it.
    """
    going: Sequence[str] = ()
    lost = Erasure()

    def plan() -> list[Change]:
        nonlocal going, lost
        going = choose()
        lost = gone or deleted(m for m in map(memory.store.log.get, going) if m is not None)
        removed = [events.Removed(going)] if going else []
        return [*removed, *note(), *_struck(memory, lost)]

    # A call without results may have kept others in a view.
    await memory._carry_out(memory.store.change(plan, lambda: _forget_in_control(memory, lost)))
    return len(going)


async def set_value(memory: StoredMemory, name: str, value: JsonValue, *, erase: bool) -> None:
    """Set a value of a memory; with ``erase``, leave no copy of the previous one."""
    store = memory.store
    await store.change(lambda: [events.ValueSet(name, value), *(store.marks() if erase else ())])
    if erase:
        await scrub(memory)


async def clear(
    memory: StoredMemory, *, keep: Keep | None = None, note: Sequence[Change] = ()
) -> int:
    """Remove everything, branches too; see :meth:`StoredMemory.clear`. ``note`` is recorded."""
    store = memory.store
    await store.log.decoded()
    before = len(store.log)
    stays = {*await in_thread_if_many([*store.log], partial(kept_by, keep))}
    kept = [store.log[message_id] for message_id in store.log.ids() if message_id in stays]
    gone = await in_thread_if_many(
        [store.log[i] for i in store.log.ids() if i not in stays],
        partial(forgotten, everything=True),
    )
    changes: list[Change] = [events.Cleared(), *([events.Added(kept)] if kept else []), *note]
    if store.session is not None and store.session.run.at:  # the run continues to count
        control = _stored_control(store.session.run)
        forget_in_control(control, gone, live=_is_live(memory))
        changes.append(events.Checkpointed(RunRecord().reduced(control)))
    await store.replace_all(
        changes, lambda: _forget_in_control(memory, gone), memory._drop_all_branches
    )
    return before - len(kept)


async def choose(held: Mapping[str, Message], choice: Choice) -> tuple[list[str], Erasure]:
    """Return the IDs of the messages that are chosen, partners included, and what is gone."""
    going = [i async for i in in_slices(held) if choice.fits(held[i])]
    if any(held[i].tool_calls or held[i].tool_call_id for i in going):
        going = await in_thread_if_many(held.values(), partial(with_partners, going))
    gone = partial(forgotten, text=choice.text, parts=choice.parts)
    return going, await in_thread_if_many([held[i] for i in going], gone)


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
            await erase(memory, going_too, EXPIRED, frozenset(ids), held)
    except BaseException:
        staying += going
        raise
    finally:
        store.expiry.give_back(staying)
        if staying:
            store.settled = False


async def everything(memory: StoredMemory) -> events.Replayed:
    """Return every message in RAM, in the journal or held by a run, with its tags, by ID."""
    store = memory.store
    if store.session is None:
        found = events.Replayed(())
        for message in (*(message for _, message in store.released.values()), *store.log.all()):
            found.add(message)
    else:
        found = await read_journal(store, removed=True)
    for call in memory.control.pending.values():
        if call.result is not None and call.result.id not in found:
            found.add(call.result)
    return found


async def erase(
    memory: StoredMemory,
    ids: Sequence[str],
    gone: Erasure,
    meant: AbstractSet[str] | None,
    held: Mapping[str, Message],
    note: Plan | None = None,
    *,
    quoting: Rows | None = None,
    unfinished: bool = False,
    inside: AbstractSet[str] = frozenset(),
    then: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Erase messages, and what may quote them.

    The first write says all that is to be done: what is interrupted is finished at the next use.

    Args:
        memory: The memory.
        ids: Their IDs, partners included.
        gone: What is removed from the state of the run, from values and from tags.
        meant: The IDs that were asked for; None if any message may be meant.
        held: All messages that there are, by ID.
        note: Returns what is recorded with it.
        quoting: The entries with one of the texts in ``gone``; see :func:`rows_with`.
        unfinished: Whether the session says already that this is being forgotten.
        inside: The IDs of messages in branches.
        then: Forgets in branches; called between the first write and the removal of entries.
    """
    store, quoting, going = memory.store, quoting or Rows(), {*ids}
    stale = _stale_values(memory, going, None if meant is None else meant - held.keys(), {*held})
    if gone.parts:
        quotes = replace(gone, texts=frozenset()).finder()
        stale |= {name for name, value in store.values.items() if quotes(value)} - {REMOVING}
    changes: list[Change] = [
        *(events.ValueSet(name, None) for name in sorted(stale)),
        *_tags_again(gone, quoting, held, going),
        *_struck(memory, gone),
    ]
    due = bool(ids or changes or inside or quoting or unfinished)
    due = due or await _is_quoted(memory, gone)
    if due and (inside or gone.parts or not ids) and (ids or changes or not unfinished):
        changes.insert(0, events.Forgetting(sorted(inside), sorted(gone.parts)))
    if ids:
        changes.insert(0, events.Removed(ids, forgotten=True))

    def plan() -> list[Change]:
        noted = [*changes, *(note() if note else ())]
        return [*noted, *store.marks()] if noted else []

    await store.change(plan, lambda: _forget_in_control(memory, gone))
    try:
        if then is not None and due:
            await then()
        if due or note:
            await _scrub_after(memory, gone)
        elif store.session is not None:
            await store.session.remove([])  # what an earlier removal could not scrub
    finally:
        if stale and store.session is not None:
            store.reread()  # what a dropped summary covered counts again
        elif stale and store.keeps_evicted:
            store.take_back([*store.released.values()])
    return len(going)


def rows_with(parts: frozenset[str], rows: Rows) -> Rows:
    """Return the entries that contain one of some texts, folded."""
    quotes = Erasure(parts=parts).line_finder()
    return Rows(row for row in rows if quotes(row[2])) if parts else Rows()


async def _is_quoted(memory: StoredMemory, gone: Erasure) -> bool:
    """Return whether a text is stored: in entries, the history, recorded calls or branches."""
    session = memory.store.session
    if not gone.parts:
        return False
    quotes = gone.line_finder()
    if session is None:
        calls = memory.store.traced.in_ram
        return any(quotes(to_line(call.model_dump(mode="json"))) for call in calls)
    journal = session.journal
    for key in (session.key, *await journal.sessions(below(session.key))):
        async with aclosing(journal.pages(key, history=True)) as pages:
            async for page in pages:
                lines = (to_line(made.data) for made in page)
                if await to_thread.run_sync(any, map(quotes, lines)):
                    return True
    return False


def _tags_again(
    gone: Erasure, quoting: Rows, held: Mapping[str, Message], going: AbstractSet[str]
) -> Iterator[Change]:
    """Yield changes that tag messages as they are, as entries about their tags are removed."""
    quotes = replace(gone, texts=frozenset()).finder()
    for row in quoting:
        if _has_tag(row, quotes):
            change = cast("events.Tagged", events.read_change(*row))
            others = {tag for tag in (*change.add, *change.remove) if not quotes(tag)}
            for message in (held[i] for i in change.ids if i in held and i not in going and others):
                yield events.Tagged(
                    [message.id], sorted(message.tags), sorted(others - message.tags)
                )


def _has_tag(row: Row, quotes: Callable[[Any], bool]) -> bool:
    """Return whether an entry is about a tag that quotes something; IDs in it do not count."""
    if row[1] != "tag":
        return False
    change = cast("events.Tagged", events.read_change(*row))
    return quotes([*change.add, *change.remove])


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
        await scrub(memory, gone)
    except JournalError as error:
        if gone is not EXPIRED:
            raise
        log.warning(NOT_YET, error)


async def scrub(memory: StoredMemory, gone: Erasure = EXPIRED) -> None:
    """Remove what the journal still has of forgotten messages and of outdated values.

    The history goes with them, as it has the state of earlier steps, and the recorded calls.
    """
    session = memory.store.session
    if session is None:
        memory.store.traced.clear()
    else:
        await session.drop_history()
        rows = await session.rows()
        await session.remove(await in_thread_if_many(rows, lambda r: _dead(memory, r, gone)))


async def finish_removal(
    memory: StoredMemory, rows: Rows, counting: Rows
) -> events.Forgetting | None:
    """Finish what a process that was stopped inside forget(), clear() or rollback() has left.

    Returns:
        What forget() was in the middle of, which is still to be done.
    """
    session = memory.store.session
    if session is None:
        return None
    if (unfinished := unfinished_forgetting(counting)) is not None:
        return unfinished
    erased = "forget" in counting.kinds or "clear" in rows.kinds[1:]
    counts = {*counting.seqs} if len(counting) < len(rows) else None
    left = [] if counts is None else [seq for seq in rows.seqs if seq not in counts]
    dead = _dead(memory, counting) if "forget" in counting.kinds else []
    try:
        if erased:
            if session.run.control.get("status", "idle") in OVER:
                await memory._drop_all_branches()
            await session.drop_history()
            await session.remove([*left, *dead])
        elif left:
            await session.set_aside(left)
    except JournalError as error:  # what they note stays, and is read at the next opening
        log.warning(NOT_YET, error)
    return None


def unfinished_forgetting(rows: Rows) -> events.Forgetting | None:
    """Return what is still to be forgotten; None if there is nothing."""
    if "forgetting" not in rows.kinds:
        return None
    noted = (row for row in rows if row[1] == "forgetting")
    found = [cast("events.Forgetting", events.read_change(*row)) for row in noted]
    ids, texts = ({x for f in found for x in getattr(f, name)} for name in ("ids", "texts"))
    return events.Forgetting(sorted(ids), sorted(texts))


def ids_noted(rows: Rows) -> set[str]:
    """Return the IDs of messages that were forgotten and may still be in a session."""
    noted = set[str]()
    if "forget" not in rows.kinds:
        return noted
    for seq, kind, line in rows:
        if kind == "forget":
            noted.update(cast("events.Removed", events.read_change(seq, kind, line)).ids)
        elif noted and kind in events.MESSAGES:
            noted.discard(id_of(line))  # it was added again
    return noted


def _dead(memory: StoredMemory, rows: Sequence[Row], gone: Erasure = EXPIRED) -> list[int]:
    """Return the entries that may quote something forgotten and are not needed any more.

    A message that was added again after it was forgotten counts. In a shared session the note that
    messages were forgotten stays, for memories that have not read it yet; it has only their IDs.
    """
    store, session = memory.store, memory.store.session
    standing = set[int]()
    if session is not None:
        standing = {
            *session.run.standing,
            session.reading.marked_at,
            *session.reading.values_at.values(),
        }
    dead, removed = [], set[str]()
    quotes = replace(gone, texts=frozenset()).finder()
    for seq, kind, line in reversed(rows):
        if kind in events.RUN or kind in ("view", "evicted"):
            if seq not in standing:
                dead.append(seq)
        elif kind == "forget":
            removed.update(cast("events.Removed", events.read_change(seq, kind, line)).ids)
            if not store.shared:
                dead.append(seq)
        elif (
            (kind in events.MESSAGES and removed and id_of(line) in removed)
            or kind == "forgetting"
            or _has_tag((seq, kind, line), quotes)
        ):
            dead.append(seq)
    return dead


def _is_live(memory: StoredMemory) -> bool:
    return memory.busy or bool(memory.control.branch)


def _forget_in_control(memory: StoredMemory, gone: Erasure) -> None:
    forget_in_control(memory.control, gone, live=_is_live(memory))


def _struck(memory: StoredMemory, gone: Erasure) -> list[Change]:
    """Return what to record so that the last step does not hold what is gone either."""
    session = memory.store.session
    if session is None or not session.run.at:
        return []
    control = _stored_control(session.run)
    before = control.model_dump()
    forget_in_control(control, gone, live=_is_live(memory))
    if control.model_dump() == before:
        return []
    run = session.run
    since = run.safe_at if control.status == "running" else None
    return [events.Checkpointed(run.reduced(control), since)]


def _stored_control(run: RunRecord) -> Control:
    return Control.model_validate(run.whole())
