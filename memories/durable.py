"""A memory of a user's own over a journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar, Unpack, cast

import anyio
from pydantic import JsonValue

from agent_brain.memories.base import Memory
from agent_brain.memories.branches.copying import Branch, Copying, Fork, Nested, fork_of
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.message import Message, as_message, checked_messages
from agent_brain.memories.options import SessionOptions, refuse_others
from agent_brain.memories.runs.work import family, set_run_work
from agent_brain.memories.store import removal
from agent_brain.memories.store.events import Tagged, ValueSet
from agent_brain.memories.store.filters import ForgetOptions, Keep, Names, names, refuse_unknown
from agent_brain.memories.store.lock import Lock
from agent_brain.memories.store.made_state import MadeState, read_state
from agent_brain.memories.store.options import JournalLike
from agent_brain.memories.store.repeats import unrepeated
from agent_brain.memories.store.retagging import Retagged
from agent_brain.memories.store.snapshot import Snapshot, check_snapshot
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.views.calls import GOALS, STATE, Call, Calls, calls_of, without
from agent_brain.memories.views.groups import with_partners
from agent_brain.memories.wrapper import WrappingMemory
from agent_brain.tools.base import BaseTool
from agent_brain.tools.toolset import ToolLike

T = TypeVar("T")


class DurableMemory(Retagged, WrappingMemory):
    """Stores the session of any memory in a journal.

    The journal has every goal, every update and the state of the run. The memory that ``make``
    returns is made from them: it gets the same calls of ``set_goal`` and ``update``, and answers
    ``goal``, ``dump``, ``context`` and, if its class defines it, ``turn``. All else (queries,
    steps, leases, branches, ``forget``) is done over the journal::

        memory = DurableMemory(MyMemory, journal="brain.db", session="alice/42")

    A new one is made, and gets in order the calls that count, when the session is opened, rolled
    back, read as of a step or copied, and when messages were tagged or removed. So what it holds
    should follow from its calls. If its class overrides both ``snapshot`` and ``restore``, what
    ``snapshot()`` returns is stored with each step (messages of the session by their IDs) and given
    to ``restore()``, and only later calls are repeated; ``forget`` and ``clear`` remove it, as it
    may quote what is forgotten.

    A call is made on that memory first. If it raises, nothing is stored; if the journal cannot be
    written, a new one is made.

    Args:
        make: Returns a new memory without a journal at each call, such as the class of one.
        tools: What the agent may call, besides the tools of that memory.
        journal: As for :class:`StoredMemory`, like ``session``, ``tenant``, ``ttl``, ``clock``,
            ``readonly``, ``history``, ``lease_wait`` and ``dedupe``. None keeps the session in RAM
            only.

    Raises:
        MemoryDefinitionError: ``make`` is not a function that returns such a memory, or an option
            makes no sense.
        ToolDefinitionError: Two tools have the same name.
    """

    begins_with_goal = True

    def __init__(
        self,
        make: Callable[[], Memory],
        tools: Iterable[ToolLike] = (),
        **options: Unpack[SessionOptions],
    ) -> None:
        self._make = make
        self._made = _new(make)
        _new(make, self._made)
        refuse_others(type(self), options, SessionOptions)
        self._record = StoredMemory(tools, views=[Calls()], **options)
        super().__init__(self._record)
        self._made_tools: dict[str, BaseTool] = {}
        self._start()

    def _start(self) -> None:
        self._lock = Lock()
        self._unused = True  # the made memory has got no call yet
        self._given = 0  # how many calls it has got
        self._take_tools()

    @property
    def made(self) -> Memory:
        """The memory that ``make`` returned last; another one after a rollback, for example."""
        return self._made

    # The made memory

    @property
    def _calls(self) -> Calls:
        return cast("Calls", self._record.store.views[0])

    @property
    def _has_state(self) -> bool:
        """Whether the made memory says what it holds, and can be filled with it."""
        kind = type(self._made)
        return kind.snapshot is not Memory.snapshot and kind.restore is not Memory.restore

    def _take_tools(self) -> None:
        """Offer the tools of the made memory in place of those of the one before it."""
        before, now = self._made_tools, dict(self._made.available_tools)
        for name, tool in before.items():
            if self.available_tools.get(name) is tool:
                if name in now:
                    self.available_tools[name] = now[name]
                else:
                    del self.available_tools[name]
        self.add_tools(now.values())
        self._made_tools = now
        self._made.available_tools = self.available_tools

    async def _current(self) -> Memory:
        """Return the made memory once it has got every call of the session; the lock is held."""
        await self._record.open()
        calls = self._calls
        while calls.changed:
            calls.changed = False
            try:
                await self._make_again()
            except BaseException:
                calls.changed = True
                raise
        if later := calls.calls[self._given :]:
            with self._given_first(len(later)):
                await self._repeat(self._made, later)
        self._made.control, self._made.deps = self.control, self.deps
        set_run_work(family(self._made), self.run_work)
        return self._made

    async def _make_again(self) -> None:
        """Fill a new memory with the session."""
        store, calls = self._record.store, [*self._calls.calls]
        made = self._made if self._unused else _new(self._make, self._made)
        self._unused = False
        try:
            await made.open()
            state = read_state(store.values.get(STATE)) if self._has_state else None
            covered = None if state is None else state.covers(calls)
            if state is not None and covered is not None:
                await made.restore(state.snapshot(calls[:covered], store.log, self.control))
            await self._repeat(made, calls[covered or 0 :])
        except BaseException:
            with anyio.CancelScope(shield=True):
                await made.aclose()
            raise
        before, self._made, self._given = self._made, made, len(calls)
        if made is not before:
            self._take_tools()
            await before.aclose()

    async def _repeat(self, made: Memory, calls: Sequence[Call]) -> None:
        """Give ``made`` calls of the session; without a goal, earlier goals are messages."""
        made.control = self.control
        log, has_goal = self._record.store.log, self._record.store.goal_id is not None
        for call in calls:
            messages = [m for m in map(log.get, call.ids) if m is not None]
            try:
                await _give(made, messages, sets_goal=call.sets_goal and has_goal)
            except Exception as error:
                raise MemoryUseError(
                    f"{type(made).__name__} cannot be given what session {self.session!r} holds: "
                    f"its {'set_goal' if call.sets_goal else 'update'}() raised {error!r} for the "
                    f"messages {[*call.ids]}. It must accept again what it has accepted before"
                ) from error
        self._note_turn(made)

    def _note_turn(self, made: Memory) -> None:
        """Tell ``made`` which messages are older than the turn, as its ``begin()`` would do."""
        store = self._record.store
        began = store.log.find(store.goal_id)
        while made.wrapped:  # which tell the turn
            made = made.wrapped[0]
        if store.goal_id is not None and began is not None:
            ids, place = store.log.ids(), store.log.place
            made._turn_began = store.goal_id, frozenset(i for i in ids if place(i) < began)

    async def _keep_state(self, made: Memory) -> None:
        """Store what the made memory holds, if it says so and that has changed."""
        if self._has_state:
            state = await self._state(made, self._calls.calls[: self._given])
            if state != self._record.store.values.get(STATE):
                await self._record.keep(STATE, state)

    async def _state(self, made: Memory, calls: Sequence[Call]) -> dict[str, JsonValue]:
        """Return what the made memory holds of the messages of some calls, and beside them."""
        ids, log = {i for call in calls for i in call.ids}, self._record.store.log
        snapshot: object = await made.snapshot()
        if not isinstance(snapshot, Snapshot):
            raise MemoryUseError(
                f"{type(made).__name__}.snapshot() returned {type(snapshot).__name__}, not a "
                "Snapshot: begin with that of super(), and keep more in its views"
            )
        for messages in (snapshot.goal, snapshot.messages):
            messages[:] = [m for m in messages if m.id in ids or m.id not in log]
        return MadeState.of(snapshot, calls, log).model_dump(mode="json")

    # Writing

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn."""
        goal = as_message(goal)
        begins = self._record._beginning
        before = () if begins is None else begins.before
        await self._add("set_goal()", before, goal, lambda: self._record.set_goal(goal))

    async def update(self, messages: list[Message]) -> list[str] | Any:
        """Add ``messages`` in this order, all or none; known IDs are ignored."""
        given = [*checked_messages(messages)]
        return await self._add("update()", given, None, lambda: self._record.update(given))

    async def _add(
        self,
        method: str,
        messages: Sequence[Message],
        goal: Message | None,
        write: Callable[[], Awaitable[T]],
    ) -> T:
        """Give the made memory what is to be added, then write it; return what that returns."""
        async with self._lock:
            await self._record._write(method)
            made = await self._current()
            if self._record._beginning is not None:
                await self._keep_state(made)
            log, dedupe = self._record.store.log, self._record.store.dedupe
            if dedupe is not None and goal is None:
                messages = unrepeated(messages, log, dedupe)
            fresh = log.unknown(messages if goal is None else [*messages, goal])
            added = {message.id: message for message in fresh}
            calls = calls_of(added, (), None if goal is None else goal.id)
            if goal is not None and (known := log.get(goal.id)) is not None:
                added[goal.id] = known
                calls.insert(0, Call([goal.id], sets_goal=True))
            with self._given_first(len(calls)):
                for call in calls:
                    await _give(made, [added[i] for i in call.ids], sets_goal=call.sets_goal)
                written = await write()
            if goal is not None:
                self._note_turn(made)
            return written

    @contextmanager
    def _given_first(self, count: int) -> Iterator[None]:
        """Give the made memory ``count`` calls and write them; if that fails, make a new one."""
        try:
            yield
        except BaseException:
            self._calls.changed = True
            raise
        self._given += count
        if self._given != len(self._calls.calls):  # something else was written meanwhile
            self._calls.changed = True

    async def checkpoint(self) -> None:
        """Write the state of the run, and what the made memory holds, if it says so."""
        if self.durable and not self.readonly and self._has_state:
            async with self._lock:
                await self._keep_state(await self._current())
        await self._record.checkpoint()

    async def rollback(self) -> None:
        """Drop what an interrupted step wrote after the last checkpoint."""
        async with self._lock:
            await self._record.rollback()
            if STATE in self._record.store.values:
                self._calls.changed = True
            await self._current()

    async def reopen(self) -> None:
        """As :meth:`StoredMemory.reopen`."""
        async with self._lock:
            await self._record.reopen()
            await self._current()

    async def forget(self, ids: Names | None = None, **which: Unpack[ForgetOptions]) -> int:
        """As :meth:`StoredMemory.forget`; the made memory loses all that its calls do not tell."""
        async with self._lock:
            count = await self._record.forget(ids, **which)
            await self._current()
            return count

    async def clear(self, *, keep: Keep | None = None) -> int:
        """As :meth:`StoredMemory.clear`."""
        async with self._lock:
            count = await self._record.clear(keep=keep)
            await self._current()
            return count

    async def delete(self, ids: Names, *, strict: bool = False) -> int:
        """As :meth:`StoredMemory.delete`."""
        async with self._lock:
            await self._record._write("delete()")
            made, log = await self._current(), self._record.store.log
            if strict:
                refuse_unknown(names("ids", ids), log)
            going = with_partners(names("ids", ids), log)
            left = without(self._calls.calls, going)
            note = [ValueSet(STATE, await self._state(made, left))] if self._has_state else []
            if going:
                await removal.remove(self._record, lambda: going, note=lambda: note)
                await self._current()
            return len(going)

    async def _retag(self, method: str, ids: Names, change: Callable[[list[str]], Tagged]) -> int:
        """Change messages that the made memory has got, and make a new one."""
        async with self._lock:
            await self._record._write(method)
            await self._keep_state(await self._current())
            self._calls.changed = True
            count = await self._record._retag(method, ids, change)
            await self._current()
            return count

    # Reading

    async def open(self) -> None:
        """Read the session, and make the memory from it."""
        async with self._lock:
            await self._current()

    async def goal(self) -> list[Message]:
        """Return the current goal as the made memory has it."""
        async with self._lock:
            return await (await self._current()).goal()

    async def dump(self) -> list[Message]:
        """Return what the made memory holds without the goal, oldest first."""
        async with self._lock:
            return await (await self._current()).dump()

    async def context(self) -> list[Message]:
        """Return what a model sees now, as the made memory shows it."""
        async with self._lock:
            return await (await self._current()).context()

    async def turn(self) -> list[Message]:
        """Return the current goal and what was recorded since."""
        async with self._lock:
            made = await self._current()
            own = type(made).turn is not Memory.turn
            return await (made if own else self._record).turn()

    async def history(self) -> list[Message]:
        """Return everything that is not deleted, in order."""
        return await self._record.messages()

    # As a whole

    async def snapshot(self) -> Snapshot:
        """Return all that the session holds, and what the made memory holds, if it says so."""
        async with self._lock:
            made = await self._current()
            snapshot = await self._record.snapshot()
            goals = self._calls.goals
            snapshot.views[GOALS] = [*goals]
            if self._has_state:
                ids = [message.id for message in snapshot.messages]
                calls = calls_of(ids, goals, self._record.store.goal_id)
                snapshot.views[STATE] = await self._state(made, calls)
            return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace everything by the content of ``snapshot``, which may be of another kind.

        Raises:
            MemoryUseError: The made memory does not accept its messages; nothing has changed.
        """
        check_snapshot(snapshot)
        read_state(snapshot.views.get(STATE))
        trial = self._over_record(self._record._copy(None, "default", None))
        await trial._record.restore(snapshot)
        try:
            await trial.open()
        finally:
            await trial.aclose()
        async with self._lock:
            await self._record.restore(snapshot)

    async def fork(
        self,
        *,
        journal: JournalLike | None = None,
        session: str = "default",
        tenant: str | None = None,
        replace: bool = False,
    ) -> Self:
        """As :meth:`StoredMemory.fork`."""
        place = Fork(journal, session, tenant, replace=replace, keeper=self)
        return cast("Self", await fork_of(self, place))

    async def _copied(self, copying: Copying) -> Self:
        """Return a copy of this memory over a copy of its session."""
        if isinstance(copying, Branch | Nested) and self.durable and not self.readonly:
            async with self._lock:
                await self._keep_state(await self._current())
        return self._over_record(await copying.stored(self._record, self))

    def _over_record(self, record: StoredMemory) -> Self:
        """Return a copy of this memory over a copy of its session."""
        copied = self._shallow_copy()
        copied.inner = copied._record = record
        copied.available_tools = record.available_tools
        copied.resumed, copied.lasting = record.resumed, record.lasting
        copied._made = _new(self._make, self._made)
        copied._start()
        return copied

    async def aclose(self) -> None:
        """Close the made memory, and the journal if this memory was given its place. Idempotent."""
        try:
            await self._made.aclose()
        finally:
            await self._record.aclose()


def _new(make: Callable[[], Memory], before: Memory | None = None) -> Memory:
    """Return a new memory.

    Args:
        make: The function that makes it.
        before: What it returned last.

    Raises:
        MemoryDefinitionError: It is not a function, or what it returns cannot be used.
    """
    if isinstance(make, Memory) or not callable(make):
        raise MemoryDefinitionError(
            "DurableMemory takes a function that makes a memory, such as its class or "
            f"lambda: MyMemory(…), as it needs a new one to repeat a session: not {make!r}"
        )
    made = make()
    if not isinstance(made, Memory):
        raise MemoryDefinitionError(
            f"DurableMemory takes a function that returns a memory, and {make!r} has returned "
            f"{made!r:.100}"
        )
    if made is before:
        raise MemoryDefinitionError(
            f"{make!r} has returned the same {type(made).__name__} again: DurableMemory takes a "
            "function that makes a new memory at each call"
        )
    if (own := _with_journal(made)) is not None:
        raise MemoryDefinitionError(
            f"{type(own).__name__} has a journal itself: use it without DurableMemory, or give "
            "journal= to DurableMemory only"
        )
    return made


async def _give(made: Memory, messages: list[Message], *, sets_goal: bool) -> None:
    """Make one call on a memory."""
    if sets_goal:
        await made.set_goal(messages[0])
    else:
        await made.update(messages)


def _with_journal(memory: Memory) -> Memory | None:
    """Return the memory with a journal among ``memory`` and those that it wraps."""
    inside = next((found for m in memory.wrapped if (found := _with_journal(m))), None)
    return inside or (memory if getattr(memory, "journal", None) is not None else None)
