"""The memory that every built-in one is at heart: a record, a goal, and where the run stands."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

import anyio
from pydantic import JsonValue

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.store.events import (
    LASTING,
    Added,
    Change,
    Checkpointed,
    Cleared,
    GoalSet,
    Kept,
)
from agent_brain.memories.store.expiry import LONG_AGO
from agent_brain.memories.store.queries import QueryFace
from agent_brain.memories.store.session import Session
from agent_brain.memories.store.store import JournalLike, checked


class RecordMemory(QueryFace):
    """Everything, in the order it happened; the base of memories that show less, or more.

    Goals are messages of the record like all others: a second question in the same session is asked
    after the first one and its answer. Adding a message whose id is already here changes nothing.

    With a journal, ``update`` has written the messages when it returns, and a later process that
    opens the same session has the same memory: goal, record, control and view. A session has one
    writer at a time; a second one is told (``SessionConflictError``).

    Args:
        tools: What the agent may call.
        journal: Where to keep it: a journal, or the path of a SQLite file, which is then closed
            with the memory. None: in this process's memory only.
        session: Which conversation; any text.
        tenant: Whose; sessions of different tenants have nothing to do with each other.
        ttl: How long messages are remembered, in seconds or as a timedelta, unless they are pinned
            or have an ``expires_at`` of their own. None: for ever.
        clock: Tells the time (aware) by which messages expire.
        readonly: Only read the session: nothing is ever written, and every method that writes
            raises ReadOnlyMemoryError. What others write is seen after :meth:`reopen`.

    Raises:
        MemoryDefinitionError: Options that make no sense.
        ToolDefinitionError: Two tools have one name.
    """

    @property
    def journal(self) -> Journal | None:
        """The journal, if there is one."""
        return None if self._session is None else self._session.journal

    async def open(self) -> None:
        """Read the session, if that has not been done yet."""
        await self._settle()

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn; earlier goals stay where they were asked."""
        await self._write("set_goal()")
        message = as_message(goal)
        await self._change(lambda: [GoalSet(message.id), *self._addition([message])])
        if self._leaving:
            await self._hand_over()

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it: all of it is recorded in one write, or nothing is.

        Args:
            goal: The goal of the turn.
            run_id: The id of the run.
            state: The name of the state that the run begins in.
            before: Messages to record ahead of the goal.

        Raises:
            MemoryUseError: Something in ``before`` is no message.
            SessionConflictError: Another memory has written to the session; nothing has changed.
        """
        await self._write("begin()")
        messages = [*checked(before), goal]

        def plan() -> list[Change]:
            changes: list[Change] = [GoalSet(goal.id), *self._addition(messages)]
            if self._session is not None:
                control = self.control.model_copy()  # begin() assigns, and changes nothing inside
                control.begin(run_id, state)
                changes.append(Checkpointed(control.model_dump(mode="json")))
            return changes

        await self._change(plan, then=lambda: self.control.begin(run_id, state))
        if self._leaving:
            await self._hand_over()

    async def update(self, messages: list[Message]) -> None:
        """Add ``messages`` in this order, all or none; known ids are passed over.

        Raises:
            MemoryUseError: Something in it is no message.
            SessionConflictError: Another memory has written to the session; nothing was written.
        """
        if self._due is not None or self.readonly:
            await self._write("update()")
        sequence = checked(messages)
        if self._session is None:
            fresh = self._record.add_unknown(sequence)
            if fresh:
                self._taken(fresh)
        else:
            await self._change(lambda: self._addition(sequence))
        if self._leaving:
            await self._hand_over()

    def _addition(self, messages: Sequence[Message]) -> list[Change]:
        fresh = self._record.unknown(messages)
        return [Added(fresh)] if fresh else []

    async def goal(self) -> list[Message]:
        """The current goal as a list of one message, or an empty list."""
        if self._due is not None:
            await self._settle()
        goal = None if self._goal_id is None else self._record.get(self._goal_id)
        return [] if goal is None else [goal]

    async def dump(self) -> list[Message]:
        """A copy of everything but the current goal, oldest first."""
        if self._due is not None:
            await self._settle()
        return [message for message in self._record if message.id != self._goal_id]

    async def context(self) -> list[Message]:
        """Everything in the order it happened: earlier turns, the goal, what this turn produced."""
        if self._due is not None:
            await self._settle()
        return list(self._record)

    async def turn(self) -> list[Message]:
        """The current goal and what was recorded since."""
        if self._due is not None:
            await self._settle()
        if self._goal_id is None:
            return list(self._record)
        return self._record.since(self._goal_id)

    async def keep(self, name: str, value: JsonValue, *, erase: bool = False) -> None:
        """Keep a JSON value with the session under ``name``; None: no more.

        For what a view or a wrapper needs besides the messages. It is part of snapshots and of the
        journal. If a model is shown it, it is a dict with the text under ``"shown"``, which then
        counts in token limits.

        Args:
            name: What it is kept under.
            value: The value; None keeps nothing.
            erase: Leave no copy of the value before in the journal.
        """
        await self._write("keep()")
        await self._change(lambda: [Kept(name, value)])
        if erase:
            await self._scrub(frozenset())

    async def kept(self, name: str) -> JsonValue:
        """A copy of what is kept under ``name``, or None."""
        await self._settle()
        return copy.deepcopy(self._kept.get(name))

    @property
    def durable(self) -> bool:
        """Whether there is a journal."""
        return self._session is not None

    async def checkpoint(self) -> None:
        """Write where the run stands, if that has changed."""
        session = self._session
        if session is None:
            return
        await self._write("checkpoint()")
        async with session.lock:
            try:
                await session.append_control(self.control.model_dump(mode="json"))
            except BaseException:
                if session.doubt is not None:
                    self._due = LONG_AGO
                raise

    async def rollback(self) -> None:
        """Drop what was written after the last checkpoint, and stand where it stood then.

        What was deleted or forgotten since does not come back.
        """
        session = self._session
        if session is None:
            return
        await self._write("rollback()")
        async with session.lock:
            if not session.control_at:
                return
            later = await session.journal.read(session.key, session.safe_at)
            doomed = [entry.seq for entry in later if entry.kind not in LASTING]
            if not doomed:
                return
            self._due, self._adopts_control = LONG_AGO, True
            rollback = await session.append([Entry("rollback", session.safe_at)])
            await session.remove([*doomed, rollback])
        await self._settle()

    async def reopen(self) -> None:
        """Drop what is in RAM and read the session again, with what others have written to it."""
        if self._session is not None:
            self._session.doubt = None
            self._due, self._adopts_control = LONG_AGO, True
        await self._settle()

    async def snapshot(self) -> Snapshot:
        """All that the memory holds; ``messages`` has the goal at its place."""
        goal = await self.goal()
        return Snapshot.trusted(
            goal=goal,
            messages=list(self._record),
            control=self.control.model_copy(deep=True),
            views=copy.deepcopy(self._kept),
        )

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds, and nothing else.

        Raises:
            SnapshotError: The snapshot's version is unknown; nothing has changed.
        """
        snapshot.check()
        await self._write("restore()")
        control = snapshot.control.model_copy(deep=True)
        unique = {message.id: message for message in [*snapshot.messages, *snapshot.goal]}
        changes: list[Change] = [Cleared()]
        if snapshot.goal:
            changes.append(GoalSet(snapshot.goal[-1].id))
        changes += [Kept(name, value) for name, value in copy.deepcopy(snapshot.views).items()]
        if unique:
            changes.append(Added(list(unique.values())))
        changes.append(Checkpointed(control.model_dump(mode="json")))

        def take_control() -> None:
            self.control = control

        await self._replace_all(changes, take_control)
        if self._leaving:
            await self._hand_over()

    async def fork(
        self,
        *,
        journal: JournalLike | None = None,
        session: str = "default",
        tenant: str | None = None,
        replace: bool = False,
    ) -> Self:
        """An independent copy: same tools and options, nothing shared that changes.

        Args:
            journal: Where to keep the copy; None: in RAM only.
            session: Which session of ``journal`` the copy becomes.
            tenant: Whose.
            replace: Replace what that session holds. It may be lost: there is no undo.

        Raises:
            MemoryUseError: The session already holds something and ``replace`` is not given, or it
                is the one of this memory itself.
        """
        snapshot = await self.snapshot()
        copied = copy.copy(self)
        copied.available_tools = dict(self.available_tools)
        copied.readonly = False
        copied._attach(journal, session, tenant)
        try:
            await self._check_place(copied._session, replace=replace)
            copied._forked()
            copied._empty()
            await copied.restore(snapshot)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await RecordMemory.aclose(copied)
            raise
        return copied

    async def _check_place(self, place: Session | None, *, replace: bool) -> None:
        """Refuse to make a copy where it would destroy something."""
        if place is None:
            return
        own = self._session
        if own is not None and own.key == place.key and place.journal.same_as(own.journal):
            raise MemoryUseError(
                f"fork() cannot write into the session of the memory itself, {place.key}: choose "
                "another one with session= or tenant="
            )
        if not replace and (entries := await place.journal.read(place.key)):
            raise MemoryUseError(
                f"fork() would replace what session {place.key} holds ({len(entries)} entries): "
                "choose another session=, or say replace=True"
            )

    async def aclose(self) -> None:
        """Close the journal if the memory was given its path; twice is fine."""
        if self._owned_journal is not None:
            await self._owned_journal.aclose()
