"""What a run needs of a memory besides its messages: registers, turns, branches, one run at a time.

:class:`~agent_brain.memories.Memory` is what authors of memories read: it has all this
by inheritance, with defaults that do without a journal.
"""

from __future__ import annotations

import copy
from abc import ABC
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, cast

from agent_brain.common.errors import FinalError
from agent_brain.memories.control import READ_RESULT, Control
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, checked_messages
from agent_brain.memories.runs.claim import Claim
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.runs.turns import (
    MOST,
    StoredResult,
    TurnNote,
    TurnRecord,
    result_of,
    turns_of,
    with_current,
)
from agent_brain.memories.runs.work import RunWork, family, set_run_work, working_for
from agent_brain.memories.tool_search import SEARCH_TOOLS, ToolSearch
from agent_brain.memories.views.groups import arranged
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

if TYPE_CHECKING:
    from agent_brain.memories.base import Memory
    from agent_brain.memories.branches.copying import Copying


Place: TypeAlias = tuple[str, str, str]  # the run, the step, and the name of a branch
EarlierTurns: TypeAlias = tuple[Sequence[TurnNote], frozenset[str]]
"""The turns before one, and the IDs of the messages that the memory held then."""
_OF_THIS_OBJECT = ("claim", "run_work", "_origin", "_kept")  # what copies do not have


class Origin(NamedTuple):
    """Which memory a branch was made of, and for which place in its run.

    Attributes:
        parent: The memory that it is a branch of.
        place: Its place.
        nested: Whether it is a copy of another memory, for a run inside the step.
    """

    parent: Memory
    place: Place
    nested: bool = False


class Beginning(NamedTuple):
    """A run that begins with the next goal, in the same write.

    Attributes:
        run_id: The ID of the run.
        state: The name of the state that it begins in.
        before: Messages to record ahead of the goal.
    """

    run_id: str
    state: str
    before: Sequence[Message] = ()


class RunMemory(ABC):
    """Base class of :class:`~agent_brain.memories.Memory`, and of nothing else."""

    control: Control
    available_tools: dict[str, BaseTool]
    deps: Any = None  # what the current run was given for its states and tools; never stored
    claim: Claim | None = None  # of the run that uses this memory; the Brain sets it
    run_work: RunWork | None = None  # makes model calls and embeddings; the Brain sets it
    resumed: bool = False  # of a branch: a run that was interrupted had written to it
    lasting: bool = False  # of a branch: it is in the journal of the memory it is a branch of
    begins_with_goal: bool = False  # set_goal() records the run in _beginning in the same write
    last_request: Sequence[Message] = ()  # a request without system messages behind the prompt
    _turn_began: tuple[str, frozenset[str]] = "", frozenset()  # the goal, and the IDs before it
    _earlier_turns: tuple[TurnNote, ...] = ()  # that began in this object
    _origin: Origin | None = None  # of a branch
    _beginning: Beginning | None = None  # a run that begins with the next goal
    _kept: dict[Place, Memory] | None = None  # the branches that wait, if they are in RAM
    _reported: tuple[str, set[str]] | None = None  # for which goal, what was recalled

    @property
    def done(self) -> bool:
        """Whether a state has declared the goal reached; the Brain then ends the run."""
        return self.control.done

    @done.setter
    def done(self, value: bool) -> None:
        self.control.done = value

    @property
    def next_actions(self) -> list[Action]:
        """Calls that have no result yet."""
        return self.control.next_actions

    @next_actions.setter
    def next_actions(self, actions: Iterable[Action]) -> None:
        self.control.request_calls(actions)

    @property
    def next_action(self) -> Action | None:
        """The first of ``next_actions``; assigning one action, or None, replaces them all."""
        return self.control.next_actions[0] if self.control.next_actions else None

    @next_action.setter
    def next_action(self, action: Action | None) -> None:
        self.control.request_calls([] if action is None else [action])

    def allowed_tools(self) -> dict[str, BaseTool]:
        """Return the tools that :meth:`allow_tools` allows, by name."""
        scope = self.control.tool_scope
        return {
            name: tool
            for name, tool in self.available_tools.items()
            if scope is None or scope.allows(name)
        }

    def offered_tools(self) -> Mapping[str, BaseTool]:
        """Return the tools that a model is offered now, by name; do not change the mapping.

        Those that :meth:`allow_tools` allows and, if they are to be searched for, that were found;
        once a result was cut, the one that reads the rest of it.
        """
        control, search = self.control, self.available_tools.get(SEARCH_TOOLS)
        if search is None and control.tool_scope is None and not control.found_tools:
            return self.available_tools
        offered = self.allowed_tools()
        if isinstance(search, ToolSearch) and SEARCH_TOOLS in offered:
            search.check_names(self.available_tools)
            offered = search.offered(offered, control.found_tools)
        if control.results_cut:
            from agent_brain.memories.views.truncated_results import read_result

            offered.setdefault(READ_RESULT, read_result)
        return offered

    @property
    def session(self) -> str | None:
        """Which conversation the memory holds; None if it has no name."""
        return None

    @property
    def tenant(self) -> str | None:
        """Whose conversation it is; None if nobody was named."""
        return None

    @property
    def heard(self) -> bool:
        """Whether somebody reads what is told with :meth:`Memory.report`."""
        return self.run_work is not None and self.run_work.listens

    def _begin_reporting(self) -> None:
        """Note from now on what to report; called when somebody begins to read it."""

    async def turn(self) -> list[Message]:
        """Return the current goal and what was recorded since, if the memory still holds it.

        By default :meth:`begin` notes what was there before; for a turn that began otherwise, or in
        another process, the times of the messages decide.
        """
        goal = await _whole(self).goal()
        return arranged(goal + self._split_at(goal, await _whole(self).dump())[1])

    async def turns(self) -> list[TurnRecord]:
        """Return the turns of the session in order: goals, and what was recorded until the next.

        A turn whose goal is not in the memory any more is left out. A memory with a journal knows
        the turns of earlier processes; a class that does not derive from :class:`StoredMemory`
        knows the current one and, of the others, those that runs have begun on this object.
        """
        await _whole(self).open()
        notes = await self._turn_notes()
        return turns_of(notes, await self._whole_session(), self.control)

    async def last_result(self) -> StoredResult | None:
        """Return the result of the last run of the session, also of an earlier process.

        A run that failed, or waits, has one too. None if no run was begun, if the last one is in
        progress or was interrupted, and if its goal is not in the memory any more.
        :meth:`Brain.stored_result` returns the same as a ``Result``.
        """
        return result_of(await self.turns(), self.control)

    async def _turn_notes(self) -> list[TurnNote]:
        """Return what is known of the turns beside their messages."""
        goal = await _whole(self).goal()
        begun = with_current(self._earlier_turns, self._turn_began[0] or None, self.control)
        return with_current(begun, goal[-1].id if goal else None, self.control)

    async def _whole_session(self) -> list[Message]:
        """Return all messages of the session, the goals at their places."""
        turn = await self.turn()
        of_turn = {message.id for message in turn}
        return arranged([m for m in await _whole(self).dump() if m.id not in of_turn] + turn)

    def _split_at(
        self, goal: Sequence[Message], messages: Sequence[Message]
    ) -> tuple[list[Message], list[Message]]:
        """Return ``messages`` from before the turn of ``goal``, and those of the turn."""
        if not goal:
            return [], list(messages)
        began, before = self._turn_began
        if began == goal[-1].id:
            earlier = [m for m in messages if m.id in before]
        else:
            earlier = [m for m in messages if m.created_at < goal[-1].created_at]
        early = {m.id for m in earlier}
        return earlier, [m for m in messages if m.id not in early]

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it; built-in memories record all of it in one write.

        The goal is set by :meth:`set_goal`, as a subclass has it. Where a subclass has replaced it
        or :meth:`update`, the messages ahead of the goal are added with ``update``, which is then a
        write of its own.

        Args:
            goal: The goal of the turn.
            run_id: The ID of the run.
            state: The name of the state that the run begins in.
            before: Messages to record ahead of the goal: results of calls that the previous run
                left open.

        Raises:
            MemoryUseError: Something in ``before`` is not a message.
            SessionConflictError: Another memory has written to the session; nothing has changed.
        """
        before = checked_messages(before) if before else ()
        memory = inner = cast("Memory", self)
        chain = [memory]
        while inner.wrapped:
            inner = inner.wrapped[0]
            chain.append(inner)
        if before and not all(_adds_with_goal(type(each)) for each in chain):
            await memory.update([*before])
            before = ()
        earlier = None if inner.begins_with_goal else await inner._before_turn()
        inner._beginning = Beginning(run_id, state, before)
        try:
            await memory.set_goal(goal)
        finally:
            left, inner._beginning = cast("Beginning | None", inner._beginning), None
        if left is not None:  # no built-in memory has set the goal
            if earlier is not None:
                await inner._note_new_turn(earlier)
            memory.control.begin(run_id, state)
            await memory.checkpoint()

    async def _note_new_turn(self, earlier: EarlierTurns) -> None:
        """Note which messages are older than the turn that has begun."""
        notes, before = earlier
        goal = await _whole(self).goal()
        goal_id = goal[-1].id if goal else ""
        self._earlier_turns = tuple(note for note in notes if note.goal_id != goal_id)[-MOST:]
        self._turn_began = goal_id, before

    async def record(self, parts: Iterable[str] = ()) -> None:
        """Make durable what happened inside a step; the default calls :meth:`checkpoint`.

        Args:
            parts: Keys in ``control.ended`` of parts of a state that have finished. Calls that have
                begun or finished are in ``control.pending``.
        """
        await _whole(self).checkpoint()

    async def _checkpoint_later(self) -> None:
        """Make a step durable with what is written next; the default does it at once."""
        await _whole(self).checkpoint()

    async def rollback(self) -> None:
        """Drop what an interrupted step wrote after the last checkpoint. Does nothing by default.

        The Brain calls it before it resumes a run that was interrupted inside a step, and repeats
        the step from its beginning.
        """

    def reread(self) -> None:
        """Read the session again at the next use, with the state of the run, as RAM may have more.

        Called when a run was ended by an error of its store. Does nothing by default.
        """

    def note_store_failure(self, error: FinalError) -> None:
        """Write nothing more in this run and its branches: a store has failed.

        It leaves what a kill would leave.

        Args:
            error: The error of the store.
        """
        for memory in self.wrapped:
            memory.note_store_failure(error)

    @property
    def wrapped(self) -> tuple[Memory, ...]:
        """The memories that this one wraps; a run over it uses them too."""
        return ()

    @property
    def busy(self) -> bool:
        """Whether a run is using this memory, or one that it wraps."""
        return self.claim is not None or any(inner.busy for inner in self.wrapped)

    @property
    def leasable(self) -> bool:
        """Whether :meth:`acquire` does anything."""
        return type(self).acquire is not RunMemory.acquire

    async def acquire(self) -> None:
        """Keep other processes from running the session; called before a run begins or continues.

        Does nothing by default.

        Raises:
            LeaseHeldError: Another process runs it.
        """

    async def release(self) -> None:
        """Let other processes run the session again; called when a run has ended."""

    async def branch(self, name: str) -> Memory:
        """Return the memory of a branch of the current step: by default a :meth:`fork`.

        A net that runs on it may wait for a person: when the run is resumed, the same name gives
        the same branch. Without a journal this is so for this memory object, until the step ends.

        Args:
            name: Identifies the branch in the step. A branch that is given out again has the
                attribute ``resumed`` set if anything was written to it. So what a state writes to
                it before it runs must be written in one call, and only if the branch is not
                ``resumed``.
        """
        return await self._same_branch(name, lambda: self._new_branch(name))

    async def nested(self, source: Memory, goal: Message, name: str) -> Memory:
        """Return the memory of a run inside the current step: a copy of another memory.

        Like a :meth:`branch`, it is the same one when the run is resumed.

        Args:
            source: The memory to copy.
            goal: The goal of the copy.
            name: Identifies the run in the step.
        """
        make = partial(self._new_nested, source, goal, name)
        return await self._same_branch(name, make, nested=True)

    async def _same_branch(
        self, name: str, make: Callable[[], Awaitable[Memory]], *, nested: bool = False
    ) -> Memory:
        place = (*self.step_place, name)
        if self._kept is not None and (kept := self._kept.get(place)) is not None:
            kept.resumed = True
            await kept.open()
            return kept
        with working_for(self.run_work, "branch"):  # a copy may embed what is not embedded yet
            made = await make()
        set_run_work(family(made), self.run_work)
        made._origin, made._kept = Origin(_whole(self), place, nested), None
        return made

    async def _new_branch(self, name: str) -> Memory:
        """Return a new branch, or the one that the journal has."""
        from agent_brain.memories.branches.copying import Branch, copy_of

        return await copy_of(_whole(self), Branch(name))

    async def _new_nested(self, source: Memory, goal: Message, name: str) -> Memory:
        """Return a copy of ``source`` with a goal, or the one that the journal has."""
        copied = await source.fork()
        await copied.set_goal(goal)
        return copied

    async def _copied(self, copying: Copying) -> Memory:
        """Return a copy of this memory, over copies of the memories that it consists of."""
        return await copying.other(_whole(self))

    @property
    def step_place(self) -> tuple[str, str]:
        """What identifies the current step: the ID of the run, and how many steps were before."""
        return self.control.run_id or "", str(self.control.moves)

    async def has_branches(self) -> bool:
        """Return whether branches of the current step are kept, in RAM or in the journal."""
        return bool(self._kept_branches())

    def _kept_branches(self) -> dict[str, Memory]:
        """Return the branches of the current step that are kept in RAM, by name."""
        kept, step = self._kept or {}, self.step_place
        return {place[2]: branch for place, branch in kept.items() if place[:2] == step}

    def _is_branch_of(self, parent: Memory) -> bool:
        """Return whether ``parent.branch()`` has made this memory, and finds it again."""
        return self._origin is not None and self._origin.parent is parent

    def _drop_kept_branches(self) -> None:
        """Drop the branches of earlier steps that are kept in RAM."""
        if self._kept:
            step = self.step_place
            self._kept = {place: kept for place, kept in self._kept.items() if place[:2] == step}

    def _keep_branch(self) -> None:
        """Keep this memory of a branch that waits until the step of the net around it has ended."""
        if self._origin is not None and not self.lasting:
            parent, place, _ = self._origin
            parent._kept = {**(parent._kept or {}), place: _whole(self)}

    async def branch_counts(self) -> dict[str, Counts] | None:
        """Return what the branches of the current step have counted, by name, before a crash.

        None if no journal has them. The Brain calls it before it continues a run, or a branch.
        """
        return None

    async def drop_branches(self) -> None:
        """Remove what is kept of branches of earlier steps. Does nothing by default."""

    async def copy_branches(self, copied: Memory) -> None:
        """Give a copy of this memory copies of what it keeps in RAM of branches of this step.

        A fork that is made while a run uses the memory is not a copy of the run, and gets none.

        Args:
            copied: The copy, with the same messages and registers.

        Raises:
            MemoryUseError: A branch cannot be written to the journal of the copy.
        """
        if not self.busy and copied.step_place == self.step_place:
            for name, branch in self._kept_branches().items():
                await copied._take_branch(name, branch)

    async def _take_branch(self, name: str, branch: Memory) -> None:
        """Keep a copy of a branch of the memory that this one is a copy of."""
        copied = await branch.fork()
        nested = branch._origin is not None and branch._origin.nested
        copied._origin = Origin(_whole(self), (*self.step_place, name), nested)
        copied._keep_branch()

    def __getstate__(self) -> object:
        """Leave out what belongs to this object when it is copied: its run, and its branches."""
        state: Any = object.__getstate__(self)
        fields, *slots = state if isinstance(state, tuple) else (state,)
        of_copy = {name: each for name, each in fields.items() if name not in _OF_THIS_OBJECT}
        return (of_copy, *slots) if slots else of_copy

    def _shallow_copy(self) -> Self:
        """Return a shallow copy, without what belongs to this object."""
        copied = copy.copy(self)
        for name in _OF_THIS_OBJECT:  # a __getstate__ of a subclass may not leave it out
            vars(copied).pop(name, None)
        return copied

    def _deep_copy(self, *replaced: tuple[object, object]) -> Self:
        """Return a deep copy, with other objects in place of some."""
        memo: dict[int, object] = {id(old): new for old, new in replaced}
        own = vars(self)  # a __getstate__ of a subclass may not leave it out
        memo |= {id(own[name]): None for name in _OF_THIS_OBJECT if name in own}
        try:
            copied = copy.deepcopy(self, memo)
            set_run_work(family(_whole(copied)), None)
            return copied
        except TypeError as error:
            raise MemoryUseError(
                f"{type(self).__name__} cannot be forked, as one of its attributes cannot be "
                f"copied ({error}): override fork()"
            ) from error


@lru_cache(maxsize=256)
def is_replaced(memory: type[Memory], method: str, now: object, by: str) -> bool:
    """Return whether a subclass has replaced ``method``, which ``by`` stands in for.

    That is a subclass of the class whose ``by`` the memory has.

    Args:
        memory: The class of the memory.
        method: The name of the method.
        now: The method, as a class may be changed after it was looked at.
        by: The name of what stands in for it.
    """
    for kind in memory.__mro__:
        if by in vars(kind):
            return False
        if method in vars(kind):
            return True
    return False


def _adds_with_goal(kind: type[Memory]) -> bool:
    """Return whether ``set_goal`` adds messages ahead of the goal as ``update`` does.

    One that a subclass has replaced may not.
    """
    return kind.begins_with_goal and not any(
        is_replaced(kind, name, getattr(kind, name), "begins_with_goal")
        for name in ("set_goal", "update")
    )


def _whole(memory: RunMemory) -> Memory:
    """Return ``memory`` as what it is: only :class:`Memory` derives from this class."""
    return cast("Memory", memory)
