"""The message store that every built-in memory has: a log in RAM over a session of a journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias, TypeVar, Unpack, get_args

import anyio.lowlevel
import anyio.to_thread
from pydantic import JsonValue

from agent_brain.memories.control import Control
from agent_brain.memories.errors import SessionConflictError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.journal.opening import open_journal
from agent_brain.memories.message import Message
from agent_brain.memories.store import events, opening
from agent_brain.memories.store.events import Added, Change, RunChange
from agent_brain.memories.store.expiry import Expiry, as_duration, utc_now
from agent_brain.memories.store.log import Held, MessageLog
from agent_brain.memories.store.many import ON_LOOP, SLICE, in_thread_if_many
from agent_brain.memories.store.opening import LOCAL
from agent_brain.memories.store.options import check_options, history_to_keep
from agent_brain.memories.store.repeats import Window, checked_window, unrepeated
from agent_brain.memories.store.run_record import call_data
from agent_brain.memories.store.session import PRUNE_AT, Reading, Session, session_key
from agent_brain.memories.trace.chunks import TraceLog
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.memories.views.base import View

if TYPE_CHECKING:
    from agent_brain.memories.options import StoreOptions

Finish: TypeAlias = Callable[[Rows, Rows], Awaitable[events.Forgetting | None]]
IGNORED = LOCAL | {events.RECORDED_CALL}  # by others that read a session
LOCAL_CHANGES = events.GoalSet | RunChange
OF_RUN = frozenset(get_args(RunChange))
NOTHING = nullcontext()  # instead of a lock that nobody has, around what does not wait
ChangeT = TypeVar("ChangeT", bound=Change)


class MessageStore:
    """Messages, the goal and named values: written to a journal, then to RAM, then shown by views.

    A session is read at the first use. Its older messages stay JSON text until they are used.

    Args:
        views: They are notified of every change.
        **options: Those of :class:`StoredMemory`. A journal that is given by its place is closed
            with the store. ``history`` is 100 by default in a journal that outlives the process.

    Attributes:
        log: The messages in RAM.
        measuring: The views that count messages before they are added.
        in_ram: Whether nothing outlives the process, so that RAM has the only copy.
        keeps_evicted: Whether RAM keeps evicted messages, as a view may need them again.
        goal_id: The ID of the goal, None if there is none.
        values: Values by name.
        expiry: When messages expire.
        released: Messages of the current turn that a view has evicted, with their places.
        evicted: What views have evicted and nobody has taken yet, with places.
        settled: Whether there is nothing to do before the store is used.
    """

    def __init__(
        self,
        views: Iterable[View] = (),
        **options: Unpack[StoreOptions],
    ) -> None:
        self.views = tuple(views)
        check_options(self.views, options)
        self.readonly = readonly = options.get("readonly", False)
        self.shared = shared = options.get("shared", False)
        self.clock = options.get("clock", utc_now)
        self.ttl = as_duration("ttl", options.get("ttl"))
        self.dedupe = checked_window(options.get("dedupe"))
        journal = options.get("journal")
        owned = isinstance(journal, str | PathLike)
        if isinstance(journal, str | PathLike):
            journal = open_journal(journal, readonly=readonly)
        history = history_to_keep(options.get("history"), journal, shared=shared)
        self.session: Session | None = None
        if journal is not None:
            key = session_key(options.get("session", "default"), options.get("tenant"))
            self.session = Session(journal, key, shared=shared, history=history)
            self.session.owns_journal = owned
            self.session.lease_wait = options.get("lease_wait", 0)
        self.in_ram = journal is None or not journal.persistent
        self.takes_evicted = False  # whether somebody uses what views evict
        self.log = MessageLog()
        self._traced: TraceLog | None = None  # made when it is needed
        for view in self.views:
            view.attach(self.log)
        self.measuring = tuple(view for view in self.views if view.measures)
        self.keeps_evicted = journal is None and any(view.keeps_evicted for view in self.views)
        self.reset()

    # Not attributes: with 30 of them, Python keeps a table of names for each object. What only a
    # store over a journal needs is in its session.

    @property
    def traced(self) -> TraceLog:
        """The recorded calls."""
        if self.session is not None and not self.shared:
            return self.session.traced
        if self._traced is None:
            self._traced = TraceLog()
        return self._traced

    @property
    def stale(self) -> bool:
        """Whether the session is to be read before anything else."""
        return self.session is not None and self.session.stale

    @property
    def evicts(self) -> bool:
        """Whether a view evicts messages."""
        return any(type(view).evict is not View.evict for view in self.views)

    @property
    def keeps_old(self) -> bool:
        """Whether every view needs old messages too."""
        return all(view.keeps_old for view in self.views)

    @property
    def journal(self) -> Journal | None:
        """The journal, if there is one."""
        return None if self.session is None else self.session.journal

    def reset(self) -> None:
        """Drop everything from RAM."""
        self.log.clear()
        self.goal_id: str | None = None
        self.values: dict[str, JsonValue] = {}
        self.expiry = Expiry(self.ttl)
        self.released: dict[str, tuple[int, Message]] = {}
        self.evicted: list[tuple[int, Message]] = []
        self.settled = self.session is None or not (self.session.stale or self.shared)
        self.evicted_upto = 0
        self.evicting = self.session is None or not self.session.reading.resumes_at
        if self.session is not None:
            reading = self.session.reading
            self.session.reading = Reading(reading.resumes_at, reading.in_progress)
        for view in self.views:
            view.reset()

    # Reading a session

    async def open(
        self, adopt: Callable[[Session], None], finish: Finish
    ) -> events.Forgetting | None:
        """Read the session if that is necessary; return what is still to be forgotten.

        Args:
            adopt: Called with the session when its control is to be taken over.
            finish: Called with all entries and those that count, to finish a removal that was
                interrupted.
        """
        session, unfinished = self.session, None
        if session is None or not (session.stale or self.shared):
            return None
        async with session.lock:
            if session.stale:
                rows = await session.read()
                some = bool(rows.seqs)
                counting = await in_thread_if_many(rows, events.effective) if some else rows
                if some or self.shared:
                    await opening.replay_session(self, session, counting)
                else:
                    self.reset()
                if session.adopts_control and session.run.at and not self.shared:
                    adopt(session)
                session.adopts_control = False
                if session.append_found and session.if_append_found is not None:
                    session.if_append_found()
                session.if_append_found = None
                session.stale = False
                self.settled = not self.shared and not self.expiry
                if some and not self.readonly:
                    unfinished = await finish(rows, counting)
                del counting
                if some:
                    await in_thread_if_many(rows, Rows.free)
            elif self.shared:
                await self._read_new(session)
        return unfinished

    async def _read_new(self, session: Session) -> None:
        """Carry out what other memories wrote to a shared session."""
        rows = await session.read_new()
        if rows is None or any(kind == "rollback" for _, kind, _ in rows):
            await opening.replay_session(self, session, events.effective(await session.read()))
            return
        for seq, change in events.read_changes(row for row in rows if row[1] not in IGNORED):
            self.carry_out(change, seq)

    def reread(self, *, adopt_control: bool = False) -> None:
        """Read the session again before anything else."""
        if self.session is not None:
            self.session.stale, self.settled = True, False
            self.session.adopts_control = self.session.adopts_control or adopt_control

    # Changing

    async def change(
        self,
        plan: Callable[[], Sequence[ChangeT]],
        then: Callable[[], None] | None = None,
        *,
        hold: bool = False,
        few: bool = False,
    ) -> Sequence[ChangeT]:
        """Carry out the changes that ``plan`` returns, all or none: one append to the journal.

        Args:
            plan: Called when no other change of this store is in progress, and again if another
                memory has appended to a shared session first.
            then: Called when they are carried out, to change what the journal does not store.
            hold: Write them with what is written next.
            few: They are so few that none of them waits for anything, if they are not written now.

        Returns:
            The changes.

        Raises:
            SessionConflictError: Another memory has written to the session.
            JournalError: The journal cannot be used.
        """
        session = self.session
        if session is None:
            changes = plan()
            self._measure(changes)
            for change in changes:
                await self.carry_out_parts(change, None)
            if then is not None:
                then()
            return changes
        async with NOTHING if hold and few and not session.lock.users else session.lock:
            changes = plan()
            while True:
                try:
                    await self._change(session, changes, then, hold=hold)
                    break
                except SessionConflictError:
                    if not self.shared:
                        raise
                    await self._read_new(session)
                    changes = plan()
            if self.shared and len(session.run.outdated) >= PRUNE_AT:
                await session.prune()
            return changes

    async def _change(  # noqa: C901 - written, then carried out
        self,
        session: Session,
        changes: Sequence[Change],
        then: Callable[[], None] | None = None,
        *,
        hold: bool = False,
    ) -> None:
        """Write changes, then carry them out; see :meth:`change`."""
        of_run = OF_RUN.issuperset(map(type, changes))
        many = 0 if of_run else self._measure(changes)
        written = changes
        if self.shared:
            written = [change for change in changes if not isinstance(change, LOCAL_CHANGES)]
        entries: Sequence[Entry]
        if many <= ON_LOOP:
            entries = events.entries_of(written)
        else:
            entries = await anyio.to_thread.run_sync(events.lines_of, written)
        seq = 0
        if hold:
            seq = session.hold(entries) if entries else 0
        elif entries or session.held:
            try:
                seq = await session.append(entries)
            except BaseException as error:
                if session.doubt is not None:
                    self.reread()
                    if not isinstance(error, SessionConflictError):
                        session.if_append_found = then
                raise
        failed: Exception | None = None
        self.evicting = events.Evicted not in map(type, changes)
        for change in changes:
            local = self.shared and isinstance(change, LOCAL_CHANGES)
            try:
                if isinstance(change, RunChange) and not local:
                    session.run.take(change, seq)
                elif many > SLICE:
                    await self.carry_out_parts(change, None if local else seq)
                else:
                    self.carry_out(change, None if local else seq)
            except Exception as error:  # of a view; all is written, so all of it is carried out
                failed = failed or error
            if not local:
                seq += len(change.messages) if isinstance(change, Added) else 1
        self.evicting = True
        if then is not None:
            then()
        if failed is not None:
            raise failed

    async def checkpoint(self, control: Control, *, hold: bool = False) -> None:
        """Write a step, if something has changed since the last one.

        Args:
            control: The control.
            hold: Write it with what is written next.
        """
        session = self.session
        assert session is not None
        async with NOTHING if hold and not session.lock.users else session.lock:
            run = session.run
            step = events.Checkpointed(run.reduced(control))
            unchanged = step.control == run.control and session.last == run.safe_at
            await self._change(session, [] if unchanged else [step], hold=hold)
            if not hold and len(session.run.outdated) + len(session.traced.live) >= PRUNE_AT:
                if marks := self.marks():
                    await self._change(session, marks)
                try:
                    await session.prune()
                except BaseException:
                    self.reread()
                    raise

    async def record(self, control: Control, parts: Sequence[str]) -> None:
        """Write what happened inside a step, and the control if it has changed otherwise.

        Args:
            control: The control. Its calls that have begun or finished are written.
            parts: Keys in ``control.ended`` of parts that have finished.
        """
        session = self.session
        assert session is not None
        async with session.lock:
            run = session.run
            counts, unnoted = run.counts_of(control), run.unnoted(control)
            notes: list[Change] = []
            for call in unnoted:
                data, call_id = call_data(call), call.action.id
                if call.result is None:
                    notes.append(events.CallBegun(data["action"], counts, call.continues))
                else:
                    notes.append(events.CallFinished(data, counts, run.written_by(call_id)))
            notes += [events.PartNoted(key, control.ended[key], counts) for key in parts]
            if run.at and not run.has(control):
                begins_with = run.amended(control, {call.action.id for call in unnoted})
                if begins_with is not None:
                    notes.append(events.Checkpointed(begins_with, since=run.safe_at))
            await self._change(session, notes)

    async def trace(self, calls: Iterable[RecordedCall]) -> None:
        """Write recorded calls; they change nothing else."""
        session, traced = self.session, self.traced
        if session is None or self.shared:
            for call in calls:
                traced.keep(call)
            return
        async with session.lock:
            made = [traced.writer.entry(call) for call in calls]
            try:
                first = await session.append(made)
            except BaseException:
                traced.lose()
                if session.doubt is not None:
                    self.reread()
                raise
            for seq, item in enumerate(made, first):
                traced.note(item, seq)

    async def replace_all(
        self,
        changes: Sequence[Change],
        then: Callable[[], None],
        first: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Carry out ``changes``, the first of which clears, and remove what was before them.

        Args:
            changes: The changes.
            then: As for :meth:`change`.
            first: Called when they are written, before anything is removed.
        """
        session = self.session
        before = Rows() if session is None else await session.rows()
        await self.change(lambda: changes, then)
        if first is not None:
            await first()
        if session is None:
            self.traced.clear()
        else:
            await session.drop_history()
            await session.remove(before.seqs)

    def marks(self) -> list[Change]:
        """Return what to record before entries are removed; it is the last of several changes.

        Without these entries, a view that is read again would show older messages instead.
        """
        if self.session is None or self.shared:
            return []
        for view in self.views:
            if (mark := view.mark(self.evicted_upto)) is not None:
                return [mark]
        return []

    def _measure(self, changes: Sequence[Change]) -> int:
        """Have the views count what is to be added, before it is written.

        Returns:
            How many messages the largest of the changes adds or removes.
        """
        values: list[JsonValue] = []
        messages: list[Message] = []
        many = 0
        for change in changes:
            if type(change) is Added:
                if not isinstance(change.messages, Held) or self.measuring:
                    messages += change.messages
                many = max(many, len(change.messages))
            elif type(change) is events.Removed:
                many = max(many, len(change.ids))
            elif type(change) is events.ValueSet:
                values.append(change.value)
        if values:
            values += self.values.values()
        if messages or values:
            for view in self.measuring:
                view.measure(messages, values)
        return many

    def add(self, messages: Sequence[Message]) -> list[Message]:
        """Add those of ``messages`` that are not here yet, without a journal; return them."""
        for view in self.measuring:
            view.measure(messages)
        fresh = self.log.add_unknown(messages)
        if fresh:
            self._added(fresh)
        return fresh

    def addition(self, messages: Sequence[Message], window: Window | None = None) -> list[Added]:
        """Return the change that adds what is not here yet, without repetitions in a window."""
        new = messages if window is None else unrepeated(messages, self.log, window)
        fresh = self.log.unknown(new)
        return [Added(fresh)] if fresh else []

    async def carry_out_parts(self, change: Change, seq: int | None) -> None:
        """Carry out a change in RAM; other tasks run between the parts of a large one."""
        if events.size_of(change) <= SLICE:
            self.carry_out(change, seq)
            return
        for start in range(0, events.size_of(change), SLICE):
            place = seq
            if seq is not None and isinstance(change, Added):
                place = seq + start
            self.carry_out(events.part_of(change, start, SLICE), place)
            await anyio.lowlevel.cancel_shielded_checkpoint()

    def carry_out(self, change: Change, seq: int | None) -> None:
        """Carry out a change in RAM that is entry ``seq`` of the journal."""
        match change:
            case Added(messages):
                if isinstance(messages, Held):
                    self.log.append(messages, seq)
                    messages = [*messages] if self._reads(messages) else ()
                else:
                    self.log.add_unknown(messages, seq)
                self._added(messages)
            case events.GoalSet(message_id):
                self.set_goal(message_id)
            case events.Removed(ids):
                self.drop(ids)
            case events.Tagged():
                self._tag(change)
            case events.ValueSet(name, value):
                self._set_value(name, value, seq)
            case events.Evicted():
                self._resume(change, seq or 0)
            case events.Cleared():
                self.reset()
            case _:
                if isinstance(change, RunChange) and self.session is not None and seq is not None:
                    self.session.run.take(change, seq)

    def _reads(self, messages: Held) -> bool:
        """Return whether there is more to do with messages than to put them into the log."""
        reading = self.session is not None and bool(self.session.reading.removed)
        views = any(type(view).add is not View.add for view in self.views)
        return self.ttl is not None or reading or views or messages.may_expire

    def _added(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if message.__dict__["expires_at"] is not None or self.ttl is not None:
                self.watch(messages)
                break
        if self.session is not None and self.session.reading.removed:
            for message in messages:
                self.session.reading.removed.pop(message.id, None)
        failed: Exception | None = None
        for view in self.views:
            try:
                if type(view).add is not View.add:
                    view.add(messages)
                if self.evicting and type(view).evict is not View.evict and (out := view.evict()):
                    self._release(out)
            except Exception as error:  # the other views need to know of the messages too
                failed = failed or error
        if failed is not None:
            raise failed

    def watch(self, messages: Iterable[Message]) -> None:
        """Have ``messages`` expire."""
        self.expiry.add(messages)
        self.settled = False

    def set_goal(self, message_id: str | None) -> None:
        """Make a message the goal in RAM; it may be added next."""
        self.goal_id = message_id
        if self.released and not self.keeps_evicted:
            began = self.log.find(self.goal_id)
            for i, (place, _) in [*self.released.items()]:
                if began is None or place < began:
                    del self.released[i]
                    if self.session is None:
                        self.expiry.discard([i])
        for view in self.views:
            if type(view).set_goal is not View.set_goal:
                view.set_goal(message_id)

    def drop(self, ids: Sequence[str], *, outdated: bool = True) -> None:
        """Remove messages from RAM."""
        known = [message_id for message_id in ids if message_id in self.log]
        session = self.session
        if session is not None and outdated:
            session.run.outdated += [self.log.place(message_id) for message_id in known]
            if session.reading.in_progress:
                session.reading.removed.update(dict.fromkeys(ids))
        removed = self.log.remove(known)
        self.expiry.discard(ids)
        for message_id in ids:
            self.released.pop(message_id, None)
        if self.goal_id in ids:
            self.goal_id = None
        if removed:
            self._notify(lambda view: view.remove(removed))

    def _notify(self, notify: Callable[[View], None], *, evict: bool = True) -> None:
        """Notify the views of a change; raise the first error when all have been notified."""
        failed: Exception | None = None
        for view in self.views:
            try:
                notify(view)
                if evict and self.evicting:
                    self._release(view.evict())
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _resume(self, mark: events.Evicted, seq: int) -> None:
        """Let those messages leave that had left when the entry was written."""
        session = self.session
        assert session is not None  # there are no marks without one
        if seq < session.reading.resumes_at:
            return
        self.evicting = True
        if session.reading.marked_at:
            session.run.outdated.append(session.reading.marked_at)
        session.reading.marked_at = seq
        if not self.keeps_old:
            log, staying = self.log, {*mark.staying}
            places = ((i, log.place(i)) for i in log.ids())
            self._release([i for i, at in places if at <= mark.upto and at not in staying])
            self.evicted_upto = max(self.evicted_upto, mark.upto)
        self._notify(lambda view: view.resume(mark))

    def _tag(self, change: events.Tagged) -> None:
        known = [m for m in map(self.log.get, change.ids) if m is not None]
        changed = [change.applied_to(message) for message in known]
        for message in changed:
            self.log.replace(message)
        if change.pinned is not None:
            self.expiry.discard(message.id for message in changed)
            self.watch(changed)
            if self.evicting:
                self._notify(lambda view: view.update_pins(), evict=False)

    def _set_value(self, name: str, value: JsonValue, seq: int | None) -> None:
        session = self.session
        if session is not None and name in session.reading.values_at:
            session.run.outdated.append(session.reading.values_at[name])
        if value is None:
            self.values.pop(name, None)
        else:
            self.values[name] = value
        if session is not None and seq is not None:
            session.reading.values_at[name] = seq
        self._notify(lambda view: view.set_value(self.values, name))

    # What views have evicted

    def _release(self, ids: Sequence[str]) -> None:
        """Drop evicted messages from the log; those of the current turn stay at hand."""
        if not ids:
            return
        log, keeps = self.log, self.keeps_evicted
        if len(ids) > 1:
            ids = sorted(ids, key=log.place)
        if log.leaving is not None:
            log.leaving += ids
        self.evicted_upto = max(self.evicted_upto, log.place(ids[-1]))
        if not (keeps or self.in_ram or self.takes_evicted):
            log.discard(ids)
            return
        began = log.find(self.goal_id)
        for pair in log.take(ids):
            if keeps or (self.in_ram and began is not None and pair[0] > began):
                self.released[pair[1].id] = pair
            elif self.expiry and self.session is None:
                self.expiry.discard([pair[1].id])
            if self.takes_evicted:
                self.evicted.append(pair)

    def take_back(self, messages: Sequence[tuple[int, Message]]) -> None:
        """Insert evicted messages again, as nobody could take them."""
        for _, message in messages:
            self.released.pop(message.id, None)
        self.log.put_back(messages)
        self.watch(message for _, message in messages)
        for view in self.views:
            view.remove(())

    async def aclose(self) -> None:
        """Write what is held; close the journal if the store was given its path. Idempotent."""
        session = self.session
        if session is None:
            return
        if session.doubt is None and session.main.failure is None:
            await session.flush()
        if session.owns_journal:
            await session.journal.aclose()
