"""The base class for memories: four methods to write, defaults for the rest."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from agent_brain.memories.branches.kept import (
    KeptBranches,
    Origin,
    copy_kept_branches,
    keep_branch,
    kept_branch,
    kept_branches,
)
from agent_brain.memories.control import Control, ToolScope
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.runs.beginning import Beginning, begin_by_set_goal
from agent_brain.memories.runs.claim import Claim
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.runs.turn_notes import MOST, TurnNote, with_current
from agent_brain.memories.runs.turns import StoredResult, TurnRecord, result_of, turns_of
from agent_brain.memories.runs.work import RunWork, set_run_work, working_for
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.views.groups import arranged
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.text import to_compact_json
from agent_brain.tools.toolset import Choice, ToolLike, chooser, collect

if TYPE_CHECKING:
    from agent_brain.memories.store.session import Session


EarlierTurns: TypeAlias = tuple[Sequence[TurnNote], frozenset[str]]
"""The turns before one, and the IDs of the messages that the memory held then."""


class Memory(ABC):
    """Base class for memories: the goal, the messages, the tools and the state of a run.

    A subclass defines ``set_goal``, ``update``, ``goal`` and ``dump``; it may override the rest.
    One that is to have a journal and queries derives from :class:`StoredMemory` instead::

        memory = MessagesMemory([my_tool])
        await memory.set_goal("What is 17 times 23?")
        result = await Brain("react", memory).run("And divided by 2?")

    Args:
        tools: What the agent may call: tools, or functions with type hints.

    Raises:
        ToolDefinitionError: Two tools have the same name.
    """

    deps: Any = None  # what the current run was given for its states and tools; never stored
    claim: Claim | None = None  # of the run that uses this memory; the Brain sets it
    run_work: RunWork | None = None  # makes model calls and embeddings; the Brain sets it
    resumed: bool = False  # of a branch: a run that was interrupted had written to it
    lasting: bool = False  # of a branch: it is in the journal of the memory it is a branch of
    begins_with_goal: bool = False  # set_goal() records a run in the same write
    last_request: Sequence[Message] = ()  # a request without system messages behind the prompt
    _turn_began: tuple[str, frozenset[str]] = "", frozenset()  # the goal, and the IDs before it
    _earlier_turns: tuple[TurnNote, ...] = ()  # that began in this object
    _origin: Origin | None = None  # of a branch
    _beginning: Beginning | None = None  # a run that begins with the next goal
    _kept: KeptBranches | None = None  # the branches that wait, if they are in RAM

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self.control = Control.fresh()
        self.available_tools: dict[str, BaseTool] = {}
        self.add_tools(tools)

    def add_tools(self, tools: Iterable[ToolLike]) -> None:
        """Make more tools available: all of them, or none if a name is taken.

        Args:
            tools: Tools, functions with type hints, toolsets.

        Raises:
            ToolDefinitionError: Two different tools have the same name.
        """
        self.available_tools.update(collect(tools, self.available_tools))

    def allow_tools(self, *, allow: Choice | None = None, deny: Choice | None = None) -> None:
        """Set which of the available tools runs may see.

        The choice is part of ``control``, so it holds after a restart too. Without arguments: all.

        Args:
            allow: A name or a pattern (``"fs_*"``), several of them, or a function of a tool, which
                chooses among the tools that are available now; None allows all.
            deny: The same; wins over ``allow``.

        Raises:
            ToolDefinitionError: An argument is neither a name or pattern nor a function.
        """
        self.control.tool_scope = (
            None
            if allow is None and deny is None
            else ToolScope(
                allow=None if allow is None else self._patterns(allow),
                deny=[] if deny is None else self._patterns(deny),
            )
        )

    def _patterns(self, choice: Choice) -> list[str]:
        chosen = chooser(choice, default=False)
        if callable(choice):
            return [name for name, tool in self.available_tools.items() if chosen(tool)]
        return [choice] if isinstance(choice, str) else list(choice)

    def offered_tools(self) -> Mapping[str, BaseTool]:
        """Return the tools that a model is offered now, by name; do not change the mapping.

        Those that :meth:`allow_tools` allows and, once a result was cut, the one that reads the
        rest of it.
        """
        scope = self.control.tool_scope
        if scope is None and not self.control.results_cut:
            return self.available_tools
        offered = {
            name: tool
            for name, tool in self.available_tools.items()
            if scope is None or scope.allows(name)
        }
        if self.control.results_cut:
            from agent_brain.memories.views.truncated_results import READ_RESULT, read_result

            offered.setdefault(READ_RESULT, read_result)
        return offered

    @property
    def busy(self) -> bool:
        """Whether a run is using this memory, or one that it wraps."""
        claimed = self.claim is not None and self.claim.holds(self)
        return claimed or any(inner.busy for inner in self.wrapped)

    @property
    def wrapped(self) -> tuple[Memory, ...]:
        """The memories that this one wraps; a run over it uses them too."""
        return ()

    def work_for(self, purpose: str) -> AbstractContextManager[None]:
        """Inside, model calls and embeddings belong to the run that uses this memory.

        Hooks see them, limits and budgets hold for them, and they are counted, recorded and
        replayed. That goes for ``llm.call(…)`` and for embedders. Outside of a run it does
        nothing. Never hold it across a ``yield``::

            with self.work_for("summary"):
                text = await self.summarize(messages)

        Args:
            purpose: What model calls are for, as in ``UsageReported.purpose``.
        """
        return working_for(self.run_work, purpose)

    @property
    def session(self) -> str | None:
        """Which conversation the memory holds; None if it has no name."""
        return None

    @property
    def tenant(self) -> str | None:
        """Whose conversation it is; None if nobody was named."""
        return None

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

    def list_tools(self) -> str:
        """Return all offered tools as a JSON object: name to description and input schema."""
        described: dict[str, Any] = {}
        for tool in self.offered_tools().values():
            described |= tool.to_dict()
        return to_compact_json(described)

    def get_tool(self, name: str) -> BaseTool | None:
        """Return the tool with this name, or None."""
        return self.available_tools.get(name)

    @abstractmethod
    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn with ``goal``, the current request."""

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it; built-in memories record both in one write.

        The goal is set by :meth:`set_goal`, as a subclass has it.

        Args:
            goal: The goal of the turn.
            run_id: The ID of the run.
            state: The name of the state that the run begins in.
            before: Messages to record ahead of the goal: results of calls that the previous run
                left open.
        """
        await begin_by_set_goal(self, goal, Beginning(run_id, state, before))

    async def _before_turn(self) -> EarlierTurns:
        """Return what :meth:`_note_new_turn` needs to know from before a turn."""
        kind = type(self)
        by_default = kind.turn is Memory.turn or kind.context is Memory.context
        earlier = [*await self.goal(), *await self.dump()] if by_default else []
        return await self._turn_notes(), frozenset(message.id for message in earlier)

    async def _note_new_turn(self, earlier: EarlierTurns) -> None:
        """Note which messages are older than the turn that has begun."""
        notes, before = earlier
        goal = await self.goal()
        goal_id = goal[-1].id if goal else ""
        self._earlier_turns = tuple(note for note in notes if note.goal_id != goal_id)[-MOST:]
        self._turn_began = goal_id, before

    @abstractmethod
    async def update(self, messages: list[Message]) -> None:
        """Add ``messages`` in this order, all or none; known IDs are ignored."""

    @abstractmethod
    async def goal(self) -> list[Message]:
        """Return the current goal as a list of one message, or an empty list."""

    @abstractmethod
    async def dump(self) -> list[Message]:
        """Return a copy of all that the memory holds, oldest first, without the current goal.

        The goal is in :meth:`goal`; :meth:`context` has both, and :meth:`turn` those of this turn.
        """

    async def context(self) -> list[Message]:
        """Return what a model sees: earlier turns, the goal, and what this turn produced.

        The default puts each result right behind its call, before what arrived in between. It
        separates earlier turns as :meth:`turn` does.

        A subclass may leave out messages, but not the goal, system and pinned messages, and the
        group (an assistant message with calls, and their results) that last got a result: without
        it a model asks for the same calls again. Groups are shown whole, each result right behind
        its call.
        """
        goal = await self.goal()
        earlier, later = self._split_at(goal, await self.dump())
        return arranged(earlier + goal + later)

    async def turn(self) -> list[Message]:
        """Return the current goal and what was recorded since, if the memory still holds it.

        By default :meth:`begin` notes what was there before; for a turn that began otherwise, or in
        another process, the times of the messages decide.
        """
        goal = await self.goal()
        return arranged(goal + self._split_at(goal, await self.dump())[1])

    async def turns(self) -> list[TurnRecord]:
        """Return the turns of the session in order: goals, and what was recorded until the next.

        A turn whose goal is not in the memory any more is left out. A memory with a journal knows
        the turns of earlier processes; a class that does not derive from :class:`StoredMemory`
        knows the current one and, of the others, those that runs have begun on this object.
        """
        await self.open()
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
        goal = await self.goal()
        begun = with_current(self._earlier_turns, self._turn_began[0] or None, self.control)
        return with_current(begun, goal[-1].id if goal else None, self.control)

    async def _whole_session(self) -> list[Message]:
        """Return all messages of the session, the goals at their places."""
        turn = await self.turn()
        of_turn = {message.id for message in turn}
        return arranged([m for m in await self.dump() if m.id not in of_turn] + turn)

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

    @property
    def leasable(self) -> bool:
        """Whether :meth:`acquire` does anything."""
        return type(self).acquire is not Memory.acquire

    async def acquire(self) -> None:
        """Keep other processes from running the session; called before a run begins or continues.

        Does nothing by default.

        Raises:
            LeaseHeldError: Another process runs it.
        """

    async def release(self) -> None:
        """Let other processes run the session again; called when a run has ended."""

    def reread(self) -> None:
        """Read the session again at the next use, with the state of the run, as RAM may have more.

        Called when a run was ended by an error of its store. Does nothing by default.
        """

    async def open(self) -> None:
        """Prepare for use; the Brain calls it before a run. Idempotent. Does nothing by default."""

    async def snapshot(self) -> Snapshot:
        """Return all that the memory holds, as plain data."""
        return Snapshot(
            goal=await self.goal(),
            messages=await self.dump(),
            control=self.control.model_copy(deep=True),
        )

    async def restore(self, snapshot: Snapshot) -> None:
        """Replace the content by that of ``snapshot``. The default fills an empty memory.

        Raises:
            MemoryUseError: The memory holds messages and cannot drop them.
            SnapshotError: The snapshot's version is unknown.
        """
        snapshot.check()
        if await self.goal() or await self.dump():
            raise MemoryUseError(
                f"{type(self).__name__} already holds messages and its restore() cannot drop them: "
                "restore into a new memory, or override restore()"
            )
        goals = {message.id for message in snapshot.goal}
        for goal in snapshot.goal[-1:]:
            await self.set_goal(goal)
        await self.update([message for message in snapshot.messages if message.id not in goals])
        self.control = snapshot.control.model_copy(deep=True)

    @property
    def durable(self) -> bool:
        """Whether :meth:`checkpoint` does anything; if not, states write no notes for it."""
        return type(self).checkpoint is not Memory.checkpoint

    async def checkpoint(self) -> None:
        """Make what happened so far durable; called after each step. Does nothing by default."""

    async def record(self, parts: Iterable[str] = ()) -> None:
        """Make durable what happened inside a step; the default calls :meth:`checkpoint`.

        Args:
            parts: Keys in ``control.ended`` of parts of a state that have finished. Calls that have
                begun or finished are in ``control.pending``.
        """
        await self.checkpoint()

    async def rollback(self) -> None:
        """Drop what an interrupted step wrote after the last checkpoint. Does nothing by default.

        The Brain calls it before it resumes a run that was interrupted inside a step, and repeats
        the step from its beginning.
        """

    async def fork(self) -> Memory:
        """Return an independent copy for a parallel branch; by default a deep copy.

        The copy of a memory whose run waits in branches has copies of them. A ``fork`` of your own
        calls :meth:`copy_branches` for that.

        Raises:
            MemoryUseError: An attribute cannot be copied.
        """
        copied = self._deep_copy()
        await self.copy_branches(copied)
        return copied

    def _deep_copy(self) -> Self:
        try:
            copied = copy.deepcopy(self)
            set_run_work(copied, None)
            return copied
        except TypeError as error:
            raise MemoryUseError(
                f"{type(self).__name__} cannot be forked, as one of its attributes cannot be "
                f"copied ({error}): override fork()"
            ) from error

    async def copy_branches(self, copied: Memory) -> None:
        """Give a copy of this memory what it keeps in RAM of the branches that its run waits in.

        Args:
            copied: The copy, with the same messages and registers.

        Raises:
            MemoryUseError: A branch cannot be written to the journal of the copy.
        """
        await copy_kept_branches(self, copied)

    async def _take_branch(self, name: str, branch: Memory) -> None:
        """Keep a copy of a branch of the memory that this one is a copy of."""
        copied = await branch.fork()
        nested = branch._origin is not None and branch._origin.nested
        copied._origin = Origin(copied, self, (*self.step_place, name), nested=nested)
        keep_branch(copied)

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
        kept = await kept_branch(self, place)
        if kept is not None:
            return kept
        with self.work_for("branch"):  # a copy with a goal may embed it
            made = await make()
        made._origin, made._kept = Origin(made, self, place, nested=nested), None
        return made

    async def _new_branch(self, name: str) -> Memory:
        """Return a new branch, or the one that the journal has."""
        return await self.fork()

    async def _new_nested(self, source: Memory, goal: Message, name: str) -> Memory:
        """Return a copy of ``source`` with a goal, or the one that the journal has."""
        copied = await source.fork()
        await copied.set_goal(goal)
        return copied

    async def _copy_below(self, run: Session, key: str, goal: Message | None) -> Memory | None:
        """Return a copy of this memory with a goal, under a key of the journal of a run.

        If there is one already, it is returned with ``resumed`` set. None if this memory cannot be
        written to a journal.
        """
        return None

    @property
    def step_place(self) -> tuple[str, str]:
        """What identifies the current step: the ID of the run, and how many steps were before."""
        return self.control.run_id or "", str(self.control.moves)

    async def has_branches(self) -> bool:
        """Return whether branches of the current step are kept, in RAM or in the journal."""
        return bool(kept_branches(self))

    async def branch_counts(self) -> dict[str, Counts] | None:
        """Return what the branches of the current step have counted, by name, before a crash.

        None if no journal has them. The Brain calls it before it continues a run, or a branch.
        """
        return None

    async def drop_branches(self) -> None:
        """Remove what is kept of branches of earlier steps. Does nothing by default."""

    async def aclose(self) -> None:
        """Release what the memory opened. Idempotent. Does nothing by default."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
