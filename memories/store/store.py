"""The engine of every built-in memory: a record in RAM, kept in a journal if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from os import PathLike
from typing import TypeAlias, cast

from pydantic import JsonValue, ValidationError

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.errors import (
    JournalError,
    MemoryDefinitionError,
    MemoryUseError,
    ReadOnlyMemoryError,
)
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message
from agent_brain.memories.store.events import (
    Added,
    Change,
    Checkpointed,
    Cleared,
    GoalSet,
    Kept,
    Removed,
    Tagged,
    live,
    read_changes,
)
from agent_brain.memories.store.expiry import LONG_AGO, Expiry, as_duration, utc_now
from agent_brain.memories.store.log import Record
from agent_brain.memories.store.session import Session
from agent_brain.memories.views.groups import with_partners
from agent_brain.tools.toolset import ToolLike

JournalLike: TypeAlias = Journal | str | PathLike[str]


class RecordCore(Memory):
    """Changes to a record: first into the journal, then into RAM, then into the views.

    A view derives from this class and overrides the hooks ``_added``, ``_removed``, ``_emptied``,
    ``_goal_changed`` and ``_kept_changed``; they are called for new changes and for those that are
    read from the journal, in the same order, and must not await. ``_hand_over`` may: it is called
    after a change that has left something in ``_leaving``.
    """

    def __init__(
        self,
        tools: Iterable[ToolLike] = (),
        *,
        journal: JournalLike | None = None,
        session: str = "default",
        tenant: str | None = None,
        ttl: timedelta | float | None = None,
        clock: Callable[[], datetime] = utc_now,
        readonly: bool = False,
    ) -> None:
        super().__init__(tools)
        if readonly and journal is None:
            raise MemoryDefinitionError("readonly=True opens what a journal has: give journal= too")
        self.readonly = readonly
        self._clock = clock
        self._ttl = as_duration("ttl", ttl)
        self._owned_journal: Journal | None = None
        self._session: Session | None = None
        self._record = Record()
        self._attach(journal, session, tenant)
        self._empty()

    def _attach(self, journal: JournalLike | None, session: str, tenant: str | None) -> None:
        """Stand on a session of ``journal``, to be read at the first use."""
        for what, value in (("session", session), ("tenant", tenant)):
            if not (isinstance(value, str) or (what == "tenant" and value is None)) or value == "":
                raise MemoryDefinitionError(f"{what}= must be a text that is not empty: {value!r}")
        self._owned_journal = None
        if isinstance(journal, str | PathLike):
            from agent_brain.memories.journal.sqlite import SQLiteJournal

            journal = self._owned_journal = SQLiteJournal(journal, readonly=self.readonly)
        elif journal is not None and not isinstance(journal, Journal):
            raise MemoryDefinitionError(
                f"journal={journal!r} is no journal: use SQLiteJournal(path), a path, or nothing"
            )
        self._session = None if journal is None else Session(journal, session, tenant)
        self._due: datetime | None = None if journal is None else LONG_AGO
        self._adopts_control = True  # from the journal, when it is read next
        self._if_landed: Callable[[], None] | None = None  # see _change()

    def _empty(self) -> None:
        self._record = Record(self._record.last)
        self._goal_id: str | None = None
        self._kept: dict[str, JsonValue] = {}
        self._kept_at: dict[str, int] = {}
        self._expiry = Expiry(self._ttl)
        self._leaving: list[tuple[int, Message]] = []  # places and messages
        self._left_before: list[tuple[int, Message]] = []  # what left while the journal was read
        self._emptied()

    # Hooks of views

    def _emptied(self) -> None:
        """The record is new and empty."""

    def _added(self, messages: Sequence[Message]) -> None:
        """``messages`` have been added to the record in one update."""

    def _removed(self, messages: Sequence[Message]) -> None:
        """``messages`` have been taken from the record."""

    def _goal_changed(self) -> None:
        """Another message is the goal."""

    def _pins_changed(self) -> None:
        """Messages of the record were pinned, or are pinned no more."""

    def _kept_changed(self, name: str) -> None:
        """Another value is kept under ``name``."""

    def _forked(self) -> None:
        """This is a copy that still shares everything, and is filled next: share no view."""

    async def _hand_over(self) -> None:
        """Do what is to be done with what has left the view; ``_leaving`` is not empty."""

    # Getting ready

    async def _settle(self) -> None:
        """Read the session if that is still to be done, and let go what has expired."""
        if self._due is None or self._due > self._clock():
            return
        session = self._session
        if session is not None and self._due is LONG_AGO:
            async with session.lock:
                if self._due is LONG_AGO:
                    await self._read_session(session)
        await self._expire()

    async def _read_session(self, session: Session) -> None:
        entries = await session.read()
        counting = live(entries)
        self._replay(session, counting)
        if session.landed and self._if_landed is not None:
            self._if_landed()
        self._if_landed = None
        self._due = self._expiry.next()
        if not self.readonly:
            await self._finish_removal(session, entries, counting)

    async def _finish_removal(
        self, session: Session, entries: Sequence[Entry], counting: Sequence[Entry]
    ) -> None:
        """Remove what a process that was stopped inside forget() or clear() has left."""
        counts = {entry.seq for entry in counting}
        dead = [entry.seq for entry in entries if entry.seq not in counts]
        forgotten = {i for e in counting if e.kind == "forget" for i in cast("list[str]", e.data)}
        if forgotten:
            standing = {session.control_at, *self._kept_at.values()}
            dead += [entry.seq for entry in counting if is_dead(entry, forgotten, standing)]
        if dead:
            await session.remove(dead)

    def _replay(self, session: Session, entries: Sequence[Entry]) -> None:
        self._empty()
        session.forget_control()
        for seq, change in read_changes(entries):
            self._carry_out(change, seq)
        self._left_before, self._leaving = self._leaving, []
        if self._adopts_control and session.control is not None:
            try:
                self.control = Control.model_validate(session.control)
            except ValidationError as error:
                raise JournalError(
                    f"Entry {session.control_at} of session {session.key} is no control: {error}"
                ) from error
        self._adopts_control = False

    async def _expire(self) -> None:
        """Forget what is due, but not the goal, nor calls that still wait for their results."""
        due = self._expiry.take_due(self._clock())
        waiting = {action.id for action in self.control.next_actions}
        going: list[tuple[datetime, str]] = []
        staying: list[tuple[datetime, str]] = []
        for item in due:
            message = self._record.get(item[1])  # None: it has left a window, or is in a summary
            stays = message is not None and (
                message.id == self._goal_id or any(c.id in waiting for c in message.tool_calls)
            )
            (staying if stays else going).append(item)
        self._due = None  # forgetting looks at the record, and must not come here again
        try:
            if going and self.readonly:
                self._drop(with_partners([message_id for _, message_id in going], self._record))
            elif going:
                await self._forget_ids([message_id for _, message_id in going])
        except BaseException:
            staying += going
            raise
        finally:
            self._expiry.give_back(staying)
            if self._due is not LONG_AGO:  # pyright: ignore[reportUnnecessaryComparison]
                self._due = self._expiry.next()  # the session is not to be read anew

    async def _forget_ids(self, ids: Sequence[str]) -> int:
        raise NotImplementedError

    # Changing

    async def _write(self, method: str) -> None:
        """Get ready for ``method``, which writes.

        Raises:
            ReadOnlyMemoryError: The memory is read-only.
        """
        if self.readonly:
            raise ReadOnlyMemoryError(
                f"{method} writes, and this memory was opened with readonly=True: open the session "
                "without it to write, or fork() the memory for a copy that can be changed"
            )
        if self._due is not None:
            await self._settle()

    async def _change(
        self, plan: Callable[[], Sequence[Change]], then: Callable[[], None] | None = None
    ) -> None:
        """Carry out what ``plan`` says, all of it or nothing: one append to the journal.

        Args:
            plan: Called when no other change of this memory is under way.
            then: Called when it is carried out, to change what the journal does not tell.

        Raises:
            SessionConflictError: Another memory has written to the session.
            JournalError: The journal cannot be used.
        """
        session = self._session
        if session is None:
            for change in plan():
                self._carry_out(change, None)
            if then is not None:
                then()
            return
        async with session.lock:
            changes = plan()
            entries = [entry for change in changes for entry in change.entries()]
            if entries:
                seq = await self._append(session, entries, then)
                for change in changes:
                    self._carry_out(change, seq)
                    seq += len(change.messages) if isinstance(change, Added) else 1
            if then is not None:
                then()

    async def _append(
        self, session: Session, entries: list[Entry], then: Callable[[], None] | None
    ) -> int:
        try:
            return await session.append(entries)
        except BaseException:
            if session.doubt is not None:
                self._due = LONG_AGO  # what is in the journal is read before anything else
                self._if_landed = then
            raise

    def _carry_out(self, change: Change, seq: int | None) -> None:
        match change:
            case Added(messages):
                self._take(messages, seq)
            case GoalSet(message_id):
                self._goal_id = message_id
                self._goal_changed()
            case Removed(ids):
                self._drop(ids)
            case Tagged():
                self._tag(change)
            case Kept(name, value):
                self._keep(name, value, seq)
            case Cleared():
                self._empty()
            case Checkpointed(control, since):
                if self._session is not None and seq is not None:
                    self._session.note_control(control, seq, since)

    def _take(self, messages: Sequence[Message], seq: int | None) -> None:
        self._record.append(messages, seq)
        self._taken(messages)

    def _taken(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if message.expires_at is not None or self._ttl is not None:
                self._expiry.add(messages)
                if self._due is not LONG_AGO:
                    self._due = self._expiry.next()
                break
        self._added(messages)

    def _drop(self, ids: Sequence[str]) -> None:
        known = [message_id for message_id in ids if message_id in self._record]
        if self._session is not None:
            self._session.outdate([self._record.place(message_id) for message_id in known])
        removed = self._record.remove(known)
        self._expiry.discard(ids)
        if self._goal_id is not None and self._goal_id not in self._record:
            self._goal_id = None
        if removed:
            self._removed(removed)

    def _tag(self, change: Tagged) -> None:
        known = [m for m in map(self._record.get, change.ids) if m is not None]
        changed = [change.applied_to(message) for message in known]
        for message in changed:
            self._record.replace(message)
        if change.pinned is not None:
            self._expiry.discard(message.id for message in changed)
            self._expiry.add(changed)
            if self._due is not LONG_AGO:
                self._due = self._expiry.next()
            self._pins_changed()

    def _keep(self, name: str, value: JsonValue, seq: int | None) -> None:
        if self._session is not None and name in self._kept_at:
            self._session.outdate([self._kept_at[name]])
        if value is None:
            self._kept.pop(name, None)
        else:
            self._kept[name] = value
        if seq is not None:
            self._kept_at[name] = seq
        self._kept_changed(name)


def checked(messages: Iterable[Message]) -> Sequence[Message]:
    """``messages`` as a sequence, if that is what they are.

    Raises:
        MemoryUseError: They are something else.
    """
    if type(messages) is not list:
        if isinstance(messages, Message | str | bytes | dict) or not isinstance(messages, Iterable):
            raise MemoryUseError(
                f"update() takes a list of messages, not {type(messages).__name__}: "
                "await memory.update([message])"
            )
        messages = list(messages)
    for message in messages:
        if not isinstance(message, Message):
            raise MemoryUseError(
                f"update() takes a list of messages, and {message!r:.100} is none: make one with "
                "Message.user(…), Message.assistant(…), Message.tool(…) or Message(**fields)"
            )
    return messages


def concerns(entry: Entry, forgotten: AbstractSet[str]) -> bool:
    """Whether an entry holds a forgotten message, or is the note that it was to be forgotten."""
    if entry.kind in ("part", "message"):
        data = entry.data
        return isinstance(data, dict) and data.get("id") in forgotten
    return entry.kind == "forget"


def is_dead(entry: Entry, forgotten: AbstractSet[str], standing: set[int]) -> bool:
    """Whether an entry may hold, or quote, something forgotten and is not needed any more."""
    if entry.kind in ("control", "amend", "view"):
        return entry.seq not in standing
    return concerns(entry, forgotten)
