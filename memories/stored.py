"""The base class of the built-in memories: a message store, queries, and the state of a run."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, Self, TypeVar, Unpack, cast

from pydantic import JsonValue, ValidationError

from agent_brain.common.errors import FinalError
from agent_brain.memories.base import Memory
from agent_brain.memories.branches import forgetting, journaled
from agent_brain.memories.branches.copying import (
    AsOf,
    Copying,
    Fork,
    Nested,
    NotStorableError,
    fork_of,
)
from agent_brain.memories.branches.journaled import read_branch_counts
from agent_brain.memories.control import Control
from agent_brain.memories.errors import (
    JournalError,
    MemoryDefinitionError,
    MemoryUseError,
    ReadOnlyMemoryError,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message, as_message, checked_messages
from agent_brain.memories.options import StoreOptions, refuse_others
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.runs.run_memory import Beginning, is_replaced
from agent_brain.memories.runs.turns import TurnNote, note_turn, turn_notes, values_with_turns
from agent_brain.memories.runs.work import here
from agent_brain.memories.sessions.timeline import SavedStep, saved_steps
from agent_brain.memories.store import filters, queries, removal
from agent_brain.memories.store.events import Change, Checkpointed, Cleared, GoalSet, Tagged
from agent_brain.memories.store.export import Exported, content_of
from agent_brain.memories.store.filters import Filters, ForgetOptions, Keep, Names, Query, Where
from agent_brain.memories.store.many import ON_LOOP, SLICE, in_thread_if_many
from agent_brain.memories.store.options import JournalLike
from agent_brain.memories.store.repeats import unrepeated
from agent_brain.memories.store.retagging import Retagged
from agent_brain.memories.store.run_record import undo_step
from agent_brain.memories.store.session import USER_SESSION, Session
from agent_brain.memories.store.snapshot import Snapshot, check_snapshot
from agent_brain.memories.store.store import MessageStore
from agent_brain.memories.trace.call_history import read_calls
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.memories.views.base import Everything, View
from agent_brain.tools.context import call_here
from agent_brain.tools.toolset import ToolLike

T = TypeVar("T")
ID = attrgetter("id")


class StoredMemory(Retagged, Exported):
    """Base class of the built-in memories: everything in order, in RAM or in a journal.

    A subclass shows something else with a view, or by overriding :meth:`context`, whose docstring
    says what a model must always see. Start from the view :class:`Recent`, which keeps that::

        class LastFive(StoredMemory):
            def __init__(self, tools=(), **options):
                super().__init__(tools, views=[Recent(5)], **options)

    Goals are messages like all others: a second question in the same session follows the first
    one and its answer. Adding a message whose ID is already here changes nothing.

    With a journal, ``update`` has written the messages when it returns; in a run, they are written
    with the step, or before anything that cannot be undone. A later process that opens the session
    has the same memory: goal, messages, control and view. A session has one
    writer at a time; a second one gets a ``SessionConflictError``, unless all open it with
    ``shared=True``.

    Args:
        tools: The tools that the agent may call.
        views: What :meth:`context` shows: the first of them; none shows everything.
        journal: Where the session is stored: a journal, or its place: the path of a SQLite file, or
            a URL such as ``redis://…``, which is then closed with the memory. None keeps it in RAM
            only.
        session: Which conversation; any text.
        tenant: Whose; sessions of different tenants are separate.
        ttl: How long messages are kept, in seconds or as a timedelta, unless they are pinned or
            have an ``expires_at``. None keeps them for ever.
        clock: Returns the time (aware) by which messages expire.
        readonly: Only read the session: every method that writes raises ReadOnlyMemoryError. What
            others write is seen after :meth:`reopen`.
        shared: Let many memories, also of other processes, append to the session at the same time.
            Each sees at its next use what the others wrote, in the same order. The goal and the
            state of the run are this memory's own and are not stored.
        history: How many steps of runs the journal keeps at least: a number, ``"all"``, or
            ``"last"`` for the current one only. Default: 100, in a journal that outlives the
            process.
        lease_wait: How long a run waits for another process to end its run of the session, in
            seconds.
        dedupe: A duration, as a timedelta, or a number of turns within which :meth:`update` adds a
            message once that has the text, attachments, role, sender and receivers of another one.
            A turn begins with a message of a user after one of somebody else, so with 1 the same
            answer to two questions is kept. Goals, calls of tools and results are always added.

    Raises:
        MemoryDefinitionError: Options that make no sense.
        ToolDefinitionError: Two tools have the same name.
    """

    begins_with_goal = True
    _of_user: ClassVar[bool] = False  # whether it stores what is known about a user

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        views: Iterable[View] = (),
        **options: Unpack[StoreOptions],
    ) -> None:
        super().__init__(tools)
        refuse_others(type(self), options)
        self.store = MessageStore([*views] or [Everything()], **options)
        session, tenant = options.get("session", "default"), options.get("tenant")
        if session == USER_SESSION and not self._of_user:
            raise MemoryDefinitionError(
                f"session={session!r} is where UserMemory stores what is known about the tenant: "
                "take another name"
            )
        self._conversation = _conversation(self.store.session, session, tenant)

    @property
    def session(self) -> str | None:
        """Which conversation it is; None without a journal and a name. Forks in RAM have it too."""
        return self._conversation[0]

    @property
    def tenant(self) -> str | None:
        """Whose conversation it is."""
        return self._conversation[1]

    @property
    def readonly(self) -> bool:
        """Whether the memory never writes."""
        return self.store.readonly

    @property
    def shared(self) -> bool:
        """Whether other memories append to the session at the same time."""
        return self.store.shared

    @property
    def journal(self) -> Journal | None:
        """The journal, if there is one."""
        return self.store.journal

    # Opening

    @property
    def leasable(self) -> bool:
        """Whether a run acquires the session: there is a journal to write."""
        return self.store.session is not None and not self.store.readonly

    async def acquire(self) -> None:
        """Get the lease of the session, and read the session again if another runner wrote to it.

        A shared session has no lease.

        Raises:
            LeaseHeldError: Another runner has it, and does not release it within ``lease_wait``.
        """
        session = self.store.session
        if session is None or self.store.readonly or session.lease is not None:
            return
        if session.shared:
            session.running = True
        else:
            await session.acquire(session.lease_wait)
            if not session.stale and await session.is_outdated():
                self.store.reread(adopt_control=True)

    async def release(self) -> None:
        """Give the lease of the session back."""
        if self.store.session is not None:
            await self.store.session.release()

    async def open(self) -> None:
        """Read the session, if that has not been done yet."""
        if not self.store.settled:
            await self._settle()

    async def _settle(self) -> None:
        """Read what is to be read, and forget what has expired, if there is anything."""
        if self.store.settled:
            return
        left = await self.store.open(self._adopt, partial(removal.finish_removal, self))
        if left is not None:
            await forgetting.finish(self, left)
        if not self.store.settled and self.store.expiry:
            await removal.expire(self)

    def _adopt(self, session: Session) -> None:
        try:
            self.control = Control.model_validate(session.run.whole())
        except ValidationError as error:
            raise JournalError(
                f"Entry {session.run.at} of session {session.key} is not a step of a run: {error}"
            ) from error

    async def _write(self, method: str) -> None:
        """Prepare for ``method``, which writes.

        Raises:
            ReadOnlyMemoryError: The memory is read-only.
        """
        if self.store.readonly:
            raise ReadOnlyMemoryError(
                f"{method} writes, and this memory was opened with readonly=True: open the session "
                "without it to write, or fork() the memory for a copy that can be changed"
            )
        if not self.store.settled:
            await self._settle()

    async def _carry_out(self, change: Awaitable[T]) -> T:
        """Await a change; use what views have evicted then, and report what has left them."""
        result = await change
        if self.store.evicted:
            await self._hand_over()
        if self.store.log.leaving:
            self._report_leaving()
        return result

    async def _hand_over(self) -> None:
        """Use what views have evicted, in ``store.evicted``; called after each such change."""

    # What every memory has

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn; earlier goals stay where they were asked."""
        store, session = self.store, self.store.session
        if not store.settled or store.readonly:
            await self._write("set_goal()")
        goal = as_message(goal)
        beginning, self._beginning = self._beginning, None
        messages = [goal] if beginning is None else [*beginning.before, goal]
        if session is None:
            note_turn(store, self.control, goal)
            store.set_goal(goal.id)
            store.add(messages)
            if beginning is not None:
                self.control.begin(beginning.run_id, beginning.state)
        else:
            await self._write_turn(session, messages, beginning)
        if store.evicted:
            await self._hand_over()
        if store.log.leaving:
            self._report_leaving()

    async def _write_turn(
        self, session: Session, messages: Sequence[Message], beginning: Beginning | None
    ) -> None:
        """Write a turn, the last of whose messages is the goal, and a run if one begins."""
        store = self.store
        begun: Control | None = None

        def begin() -> None:
            if begun is not None:
                registers = vars(self.control)
                registers.clear()
                registers.update(vars(begun))

        def plan() -> list[Change]:
            nonlocal begun
            changes: list[Change] = [GoalSet(messages[-1].id), *store.addition(messages)]
            if beginning is not None:
                begun = self.control.model_copy()  # begin() assigns, and changes nothing inside
                begun.begin(beginning.run_id, beginning.state)
                if not store.shared:
                    changes.append(Checkpointed(session.run.reduced(begun)))
            return changes

        running, session.running = session.running, session.running or beginning is not None
        try:
            await store.change(plan, then=begin)
        except BaseException:
            if beginning is not None and not running:  # none has begun
                session.running, session.failure = False, None
            raise

    async def update(self, messages: list[Message]) -> list[str] | Any:  # a subclass: maybe None
        """Add ``messages`` in this order, all or none; known IDs, and repetitions, are ignored.

        In a step of a run they are written to the journal with the step.

        Returns:
            The IDs of those that were added.

        Raises:
            MemoryUseError: Something in it is not a message.
            SessionConflictError: Another memory has written to the session; nothing was written.
        """
        store = self.store
        if not store.settled or store.readonly:
            await self._write("update()")
        sequence = checked_messages(messages)
        dedupe = store.dedupe
        if store.session is None:
            if dedupe is not None:
                sequence = unrepeated(sequence, store.log, dedupe)
            fresh: Sequence[Message] = store.add(sequence)
        else:
            plan, few = partial(store.addition, sequence, dedupe), len(sequence) <= SLICE
            changes = await store.change(plan, hold=self._in_step, few=few)
            fresh = changes[0].messages if changes else ()
        if store.evicted:
            await self._hand_over()
        if store.log.leaving:
            self._report_leaving()
        return [*map(ID, fresh)]

    def _begin_reporting(self) -> None:
        self.store.log.leaving = []

    def _report_leaving(self) -> None:
        """Report what has left the views, as long as somebody reads that."""
        log = self.store.log
        left, log.leaving = log.leaving, [] if self.heard else None
        self.report("trimmed", ids=tuple(dict.fromkeys(left or ())))

    @property
    def _in_step(self) -> bool:
        """Whether this is the work of a state, which is written when its step ends.

        What tool calls and other tasks of the program write meanwhile is written at once.
        """
        session = self.store.session
        if session is None or self.run_work is None or self.store.shared:
            return False
        if (place := here.get()) is None or not place.in_step:
            return False
        return session.running and self.control.status == "running" and call_here() is None

    async def goal(self) -> list[Message]:
        """Return the current goal as a list of one message, or an empty list."""
        if not self.store.settled:
            await self._settle()
        goal = None if self.store.goal_id is None else self.store.log.get(self.store.goal_id)
        return [] if goal is None else [goal]

    async def dump(self) -> list[Message]:
        """Return everything but the current goal, oldest first."""
        messages = await self._all()
        goal_id = self.store.goal_id
        return [message for message in messages if message.id != goal_id]

    async def _all(self) -> list[Message]:
        await self._settle()
        return await queries.everything(self.store.log)

    async def context(self) -> list[Message]:
        """Return what the first view shows.

        Calls that never got a result are left out, as models refuse them.
        """
        store = self.store
        if not store.settled:
            await self._settle()
        log, view = store.log, store.views[0]
        if log.encoded and view.tail == 0:
            await log.decoded()
        return view.show()

    async def turn(self) -> list[Message]:
        """Return the current goal and what was recorded since, also what has left the view."""
        store = self.store
        if not store.settled:
            await self._settle()
        log, goal_id = store.log, store.goal_id
        if goal_id is None or (began := log.find(goal_id)) is None:
            return list(log)
        if not store.in_ram and store.evicted_upto > began:
            return await queries.journal_messages(store, began - 1)
        behind = log.since(goal_id)
        if not store.released:
            return behind
        left = (pair for pair in store.released.values() if pair[0] > began)
        return queries.merged(store, behind, left)

    async def _turn_notes(self) -> list[TurnNote]:
        """Return what is known of the turns beside their messages."""
        await self._settle()
        return await turn_notes(self.store, self.control)

    async def _whole_session(self) -> list[Message]:
        """Return all messages, with those that have left the view and are not gone."""
        await self._settle()
        return await queries.whole_session(self.store)

    @property
    def durable(self) -> bool:
        """Whether :meth:`checkpoint` writes: there is a journal, and the session is not shared."""
        return self.store.session is not None and not self.store.shared

    async def checkpoint(self) -> None:
        """Write the state of the run, if it has changed."""
        store = self.store
        if store.session is not None and not store.shared:
            if not store.settled or store.readonly:
                await self._write("checkpoint()")
            if self.control.status == "running":
                store.session.running = True
            await store.checkpoint(self.control)

    async def _checkpoint_later(self) -> None:
        """Write the state of the run, if it has changed, with what is written next.

        Where a subclass replaces ``checkpoint`` and not this, it is called at once.
        """
        if self._in_step and not is_replaced(
            type(self), "checkpoint", type(self).checkpoint, "_checkpoint_later"
        ):
            session = self.store.session
            if session is not None and session.stale:
                await self._settle()
            await self.store.checkpoint(self.control, hold=True)
        else:
            await self.checkpoint()

    async def record(self, parts: Iterable[str] = ()) -> None:
        """Write which calls have begun or finished, and the results of parts of a state.

        Each is a small entry. The state of the run is written too where it has changed otherwise.

        Args:
            parts: Keys of the results in ``control.ended``.
        """
        store = self.store
        if store.session is not None and not store.shared:
            if not store.settled or store.readonly:
                await self._write("record()")
            await store.record(self.control, [*parts])

    async def rollback(self) -> None:
        """Drop what was written after the last step, and return to the state of it.

        What was deleted or forgotten since does not come back. What is known of calls that began
        since stays, and so does what finished calls and other programs wrote. Of ``scratch`` and
        ``session``, what has changed while calls ran stays as it was when the last one was
        recorded. A shared session is not rolled back.
        """
        if not self.durable:
            return
        await self._write("rollback()")
        plan = await undo_step(self.store)
        if plan is None:
            return
        await self._settle()
        self.control.note_results(plan.results)
        if not plan.asked.isdisjoint(action.id for action in self.control.next_actions):
            self.control.request_calls([])  # of the step itself, which is repeated

    # Steps

    async def steps(self) -> list[SavedStep]:
        """Return the steps of runs that the journal has of this session, in order.

        How many it keeps is set with ``history=``.
        """
        session = self.store.session
        return [] if session is None else await saved_steps(session.journal, session.key)

    # Recorded calls

    async def record_call(self, *calls: RecordedCall) -> None:
        """Record calls of models and tools of a run with ``trace=True``, in one write.

        They are not messages, and a rollback does not undo them.
        """
        await self._write("record_call()")
        await self.store.trace(calls)

    async def recorded_calls(
        self, run_id: str | None = None, step: int | SavedStep | None = None
    ) -> list[RecordedCall]:
        """Return the calls of models and tools that were recorded with ``Brain(trace=True)``.

        They are in order, and kept as long as the steps (``history=``); without a journal, those of
        the last 100 steps.

        Args:
            run_id: Those of this run.
            step: Those of the step with this number in its run, from 0, as in events; or, with one
                of :meth:`steps`, those that were made in the step that ended there.

        Raises:
            MemoryUseError: ``run_id`` or ``step`` is something else.
        """
        await self._settle()
        return await read_calls(self.store, run_id, step)

    async def model_calls(
        self, run_id: str | None = None, step: int | SavedStep | None = None
    ) -> list[RecordedCall]:
        """Return those of :meth:`recorded_calls` that are calls of models."""
        return [call for call in await self.recorded_calls(run_id, step) if call.action is None]

    async def as_of(self, step: int | SavedStep) -> Self:
        """Return the memory as it was at a step: a copy in RAM, which changes nothing here.

        A run that was in progress then can be resumed over it, and :meth:`fork` writes it to
        another session. If the step that follows was interrupted in branches, they continue, and
        what is known of its calls is there.

        Args:
            step: One of :meth:`steps`, or its number.

        Raises:
            MemoryUseError: The journal does not have that step.
        """
        return await self._copied(AsOf(step))

    async def reopen(self) -> None:
        """Drop what is in RAM and read the session again, with what others have written to it."""
        session = self.store.session
        if session is not None and session.doubt is None:
            await session.flush()
        self.reread()
        await self._settle()

    def reread(self) -> None:
        """Do the same at the next use."""
        if self.store.session is not None:
            self.store.session.drop_held()
            self.store.session.doubt = None
            self.store.reread(adopt_control=True)

    def note_store_failure(self, error: FinalError) -> None:
        """Have every write of the run raise ``error``, in branches too; until it has ended."""
        session = self.store.session
        if session is not None and session.running and session.main.running:
            session.main.failure = session.main.failure or error

    async def snapshot(self) -> Snapshot:
        """Return all that the memory holds; ``messages`` has the goal at its place."""
        return await self._snapshot(await self._all())

    async def snapshot_held(self) -> Snapshot:
        """Return the same, with messages that are decoded when they are read, if there are many.

        A subclass that replaces :meth:`snapshot` is asked for all of them.
        """
        kind = type(self)
        await self._settle()
        if self.store.log.encoded <= ON_LOOP or is_replaced(
            kind, "snapshot", kind.snapshot, "_snapshot"
        ):
            return await self.snapshot()
        return await self._snapshot(self.store.log.held())

    async def _snapshot(self, messages: Sequence[Message]) -> Snapshot:
        return Snapshot.trusted(
            goal=await self.goal(),
            messages=messages,
            control=self.control.model_copy(deep=True),
            views=await values_with_turns(self.store, self.control, messages),
        )

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace everything by the content of ``snapshot``.

        Raises:
            SnapshotError: The snapshot's version is unknown; nothing has changed.
            MemoryUseError: The session is shared.
        """
        check_snapshot(snapshot)
        await self._write("restore()")
        if self.store.shared:
            raise MemoryUseError(
                "restore() replaces everything, and other memories write to this session too: add "
                "the messages with load(…, merge=True)"
            )
        control = snapshot.control.model_copy(deep=True)

        def take_control() -> None:
            self.control = control

        content = await in_thread_if_many(
            snapshot.messages, lambda _: content_of(snapshot, control)
        )
        await self._carry_out(self.store.replace_all([Cleared(), *content], take_control))

    async def fork(
        self,
        *,
        journal: JournalLike | None = None,
        session: str = "default",
        tenant: str | None = None,
        replace: bool = False,
    ) -> Self:
        """Return an independent copy with the same tools and options.

        If a journal has branches of a step that was interrupted, or that waits for a person, the
        copy has them and the history of the session, and the run can be resumed over it.

        Args:
            journal: Where the copy is stored; None keeps it in RAM only.
            session: Which session of ``journal`` the copy becomes.
            tenant: Whose; pass ``memory.tenant`` for the same user.
            replace: Replace what that session holds. There is no undo.

        Raises:
            MemoryUseError: The session already holds something and ``replace`` is False, or it is
                the session of this memory itself; or a brain that is called as a tool waits, over a
                memory that cannot be written to ``journal``.
            JournalError: There are branches, and ``journal`` cannot load entries of another one.
        """
        place = Fork(journal, session, tenant, replace=replace, keeper=self)
        return cast("Self", await fork_of(self, place))

    async def _copied(self, copying: Copying) -> Self:
        """Return a copy of this memory."""
        return await copying.stored(self)

    async def _take_branch(self, name: str, branch: Memory) -> None:
        """Keep a copy of a branch of the memory that this one is a copy of."""
        own = self.store.session
        if own is None or not self.durable:
            await super()._take_branch(name, branch)
            return
        made: Memory
        if branch._origin is None or not branch._origin.nested:
            made = await self._new_branch(name)
            await made.restore(await branch.snapshot())
        else:  # of a brain that is called as a tool
            try:
                made = await branch._copied(Nested(own, self.step_place, name, None))
            except NotStorableError as error:
                raise MemoryUseError(
                    f"fork() cannot write the copy to a journal: {name!r} waits in it over a "
                    f"{type(branch).__name__}, which no journal can hold. Make a copy in RAM, with "
                    "fork(), or answer what it waits for first"
                ) from error
        await branch.copy_branches(made)

    def _copy(
        self, journal: JournalLike | None, session: str, tenant: str | None, **options: Any
    ) -> Self:
        """Return an empty memory with the same tools and options."""
        copied = self._shallow_copy()
        for name, value in [*vars(copied).items()]:
            if type(value) in (dict, list, set):  # the tools, and what a class of one's own holds
                setattr(copied, name, value.copy())
        copied.control = Control.fresh()
        copied.resumed = copied.lasting = False
        copied.store = MessageStore(
            [view.fresh() for view in self.store.views],
            journal=journal,
            session=session,
            tenant=tenant,
            ttl=self.store.ttl,
            clock=self.store.clock,
            dedupe=self.store.dedupe,
            **options,
        )
        if journal is not None:
            copied._conversation = _conversation(journal, session, tenant)
        copied.store.log.last = self.store.log.last  # cursors continue to count
        return copied

    async def _forked(self) -> None:
        """Share nothing with the memory that this one was copied from."""

    # Branches

    async def _new_nested(self, source: Memory, goal: Message, name: str) -> Memory:
        """Return a copy of ``source``, which is written to the journal, below the session."""
        own = self.store.session
        if own is not None and self.durable and not self.readonly:
            with suppress(NotStorableError):
                copied = await source._copied(Nested(own, self.step_place, name, goal))
                copied.lasting = True
                return copied
        return await super()._new_nested(source, goal, name)

    async def has_branches(self) -> bool:
        """Return whether branches of the current step are kept, in RAM or in the journal."""
        if not self.durable:
            return await super().has_branches()
        return await journaled.has_branches_at(self, self.step_place)

    async def branch_counts(self) -> dict[str, Counts] | None:
        """Return what the branches of the current step have counted, by name, before a crash."""
        own = self.store.session
        if own is None or not self.durable:
            return None
        return await read_branch_counts(own.journal, own.key, self.control)

    async def drop_branches(self) -> None:
        """Remove what the journal has of branches of earlier steps and runs."""
        await journaled.drop_branches(self, self.step_place)

    async def _drop_all_branches(self) -> None:
        """Drop all branches, and leave no copy of their data."""
        self._kept = None
        await journaled.drop_branches(self, (), scrub=True)

    async def aclose(self) -> None:
        """Close the journal if the memory was given its path. Idempotent."""
        await self.store.aclose()

    # Values beside the messages

    async def keep(self, name: str, value: JsonValue, *, erase: bool = False) -> None:
        """Store a JSON value with the session under ``name``, for a view or a wrapper.

        It is part of snapshots and of the journal. If a model is shown it, it is a dict with the
        text under ``"shown"``, which then counts in token limits.

        Args:
            name: The name of the value.
            value: The value; None removes it.
            erase: Leave no copy of the previous value in the journal.

        Raises:
            MemoryUseError: The value is not a JSON value.
        """
        filters.checked_text("keep()", name)
        try:
            value = json.loads(json.dumps(value))
        except (TypeError, ValueError) as error:
            raise MemoryUseError(
                f"keep({name!r}, …) takes a JSON value (text, number, list, dict …): {error}"
            ) from error
        await self._write("keep()")
        await self._carry_out(removal.set_value(self, name, value, erase=erase))

    async def kept(self, name: str) -> JsonValue:
        """Return a copy of the value that is stored under ``name``, or None."""
        filters.checked_text("kept()", name)
        await self._settle()
        return copy.deepcopy(self.store.values.get(name))

    # Queries

    async def messages(self, last: int | None = None, **filters: Unpack[Filters]) -> list[Message]:
        """Return messages in order, the goals at their places: filtered, then the ``last`` of them.

        They are what is stored, including calls without results; what a model may be sent is
        :meth:`context`.

        Args:
            last: At most this many, the newest; 0 and less is none, None is all. Groups are not
                split, so that a call keeps its results; the newest one is always included.
            role: With one of these roles.
            cause_by: Caused by one of these.
            name: Said by one of these speakers.
            sent_from: Sent by one of these.
            tags: With at least one of these tags.
            without_tags: With none of these tags.
            text: Containing this text, whatever the case and the spaces: in the content, names,
                tags, metadata, attachments, or the arguments of calls.
            where: A function of a message, or a dict of values that its metadata must have.
            since: Of this moment (aware) or later: when it happened, as ``occurred_at`` says, else
                when it was created.
            until: Of before this moment (aware), likewise.

        Raises:
            MemoryUseError: A filter that no message could pass, such as an unknown role.
        """
        if not self.store.settled:
            await self._settle()
        return await queries.find(self.store.log, Query(**filters), last)

    async def get(self, message_id: str) -> Message | None:
        """Return the message with this ID, or None."""
        filters.checked_text("get()", message_id)
        if not self.store.settled:
            await self._settle()
        return self.store.log.get(message_id)

    async def count(self) -> int:
        """Return the number of messages that the memory holds."""
        await self._settle()
        return len(self.store.log)

    async def find_news(self, after: int = 0) -> tuple[list[Message], int]:
        """Return the messages that came after a cursor, and the cursor for the next call.

        The cost depends on what is new only. Each reader has a cursor of its own. After
        :meth:`restore` all messages are new::

            news, cursor = await memory.find_news(cursor)
        """
        filters.checked_cursor(after)
        await self._settle()
        log = self.store.log
        if self.store.session is None and after > log.last:
            after = 0  # a cursor of another memory: repeat messages rather than miss some
        return log.after(after), max(after, log.last)

    # Changes

    async def _retag(self, method: str, ids: Names, change: Callable[[list[str]], Tagged]) -> int:
        await self._write(method)
        known = [i for i in filters.names("ids", ids) if i in self.store.log]
        if known:
            await self._carry_out(self.store.change(lambda: [change(known)]))
        return len(known)

    async def delete(self, ids: Names, *, strict: bool = False) -> int:
        """Remove messages.

        A call is removed with its results, and a result with its call and the other results.
        A journal may keep the text for a while; :meth:`forget` removes that too. Calls that have no
        result yet are removed with the message that asked for them: a run that waits for them ends.

        Args:
            ids: An ID or several.
            strict: Delete nothing if one of them is unknown. By default, unknown ones are ignored.

        Returns:
            How many messages were removed, partners included.

        Raises:
            MemoryUseError: An ID is unknown, if ``strict``.
        """
        await self._write("delete()")
        return await removal.delete(self, ids, strict=strict)

    async def clear(self, *, keep: Keep | None = None) -> int:
        """Erase everything, also the goal, summaries, lists and session state.

        A run that waits for a person ends.

        Args:
            keep: Keep these messages, and the results or the call that belong to them:
                ``"pinned"`` for the pinned ones, their IDs, or a function of a message::

                    await memory.clear(keep=lambda message: message.role == "system")

        Returns:
            How many messages were removed.

        Raises:
            MemoryUseError: ``keep`` is something else; nothing has changed.
        """
        await self._write("clear()")
        return await removal.clear(self, keep=keep)

    async def forget(
        self,
        ids: Names | None = None,
        *,
        where: Where | None = None,
        older_than: datetime | timedelta | None = None,
        role: Names | None = None,
        name: Names | None = None,
        tags: Names | None = None,
        text: str | None = None,
    ) -> int:
        """Erase messages: from RAM, the views and summaries, and the journal.

        Their partners go along as in :meth:`delete`. A summary that may quote them is dropped. In a
        journal the text is overwritten, not only marked; what has left a window is found there too.
        The goal and pinned messages are not spared. The state of a run that has ended is emptied; a
        run that waits ends if its state has a forgotten call or quotes something forgotten, also in
        a branch. Earlier steps and recorded calls are removed.

        With ``text`` alone, everything that contains it goes: values, notes, tags, decisions,
        branches, recorded calls, also where no message has it. It reaches this session only; see
        :func:`forget_in_sessions`. What is interrupted is finished at the next opening.

        Args:
            ids: These messages; the other arguments narrow the choice.
            where: A function of a message, or a dict of values that its metadata must have.
            older_than: Created before this moment, or longer ago than this.
            role: With one of these roles.
            name: Said by one of these speakers.
            tags: With at least one of these tags.
            text: Containing this text, whatever the case and the spaces: as in :meth:`messages`.

        Returns:
            How many messages were forgotten, partners included.

        Raises:
            MemoryUseError: Nothing says which messages; :meth:`clear` removes all.
            JournalError: The journal fails. If the first write was done, the messages are gone from
                the memory, and the next call or the next opening does the rest.
        """
        which = ForgetOptions(
            where=where, older_than=older_than, role=role, name=name, tags=tags, text=text
        )
        choice = filters.forgettable(ids, which, self.store.clock())
        await self._write("forget()")
        return await self._carry_out(forgetting.forget(self, choice))


def _conversation(
    journal: object, session: str, tenant: str | None
) -> tuple[str | None, str | None]:
    """Return the name of a conversation, if it was given one, and whose it is."""
    named = journal is not None or session != "default"
    return session if named else None, tenant
