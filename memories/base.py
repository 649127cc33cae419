"""What every memory is: four methods to write, everything else built on them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from agent_brain.memories.control import Control, ToolScope
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.snapshot import Snapshot
from agent_brain.memories.store.claim import Claim
from agent_brain.memories.views.groups import arranged
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.text import to_compact_json
from agent_brain.tools.toolset import Choice, ToolLike, chooser, collect


class Memory(ABC):
    """All that a run knows: its goal, its messages, its tools and where it stands.

    A subclass writes ``set_goal``, ``update``, ``goal`` and ``dump``; it is then complete, and
    overrides the rest where it can do better.

    Args:
        tools: What the agent may call: tools, or functions with type hints.

    Raises:
        ToolDefinitionError: Two tools have one name.
    """

    claim: Claim | None = None  # of the run that uses this memory; the Brain sets it
    _turn_began: tuple[str, frozenset[str]] = "", frozenset()  # the goal, and what was there before

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self.control = Control.fresh()
        self.available_tools: dict[str, BaseTool] = {}
        self.add_tools(tools)

    def add_tools(self, tools: Iterable[ToolLike]) -> None:
        """Make more tools available; all of them or, if a name is taken, none.

        Args:
            tools: Tools, functions with type hints, toolsets.

        Raises:
            ToolDefinitionError: Two different tools have one name.
        """
        self.available_tools.update(collect(tools, self.available_tools))

    def allow_tools(self, *, allow: Choice | None = None, deny: Choice | None = None) -> None:
        """Choose which of the available tools runs may see, until it is chosen anew.

        It is kept in ``control``, so it holds after a restart too. Without arguments: all tools.

        Args:
            allow: A name or a pattern (``"fs_*"``), several of them, or a function of a tool, which
                chooses among the tools that are available now; None allows all.
            deny: The same; wins over ``allow``.

        Raises:
            ToolDefinitionError: Something that chooses no tools.
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
        """The tools that a model is offered now, by name.

        Those that :meth:`allow_tools` has chosen and, once a result was cut, the one that reads the
        rest of it. Not to be changed.
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
        """Whether a run is going on over this memory, or over one that it wraps."""
        claimed = self.claim is not None and self.claim.holds(self)
        return claimed or any(inner.busy for inner in self.wrapped)

    @property
    def watched(self) -> bool:
        """Whether events should be streamed as they come: False while nobody would see them."""
        return self.claim is None or self.claim.watched or not self.claim.holds(self)

    @property
    def wrapped(self) -> tuple[Memory, ...]:
        """The memories that this one stands in front of; a run over it is a run over them."""
        return ()

    @property
    def done(self) -> bool:
        """A state has said that the goal is reached; the Brain then ends the run."""
        return self.control.done

    @done.setter
    def done(self, value: bool) -> None:
        self.control.done = value

    @property
    def next_actions(self) -> list[Action]:
        """Calls that were asked for and not answered yet."""
        return self.control.next_actions

    @next_actions.setter
    def next_actions(self, actions: Iterable[Action]) -> None:
        self.control.next_actions = list(actions)

    @property
    def next_action(self) -> Action | None:
        """The first of ``next_actions``; assigning one action, or None, replaces them all."""
        return self.control.next_actions[0] if self.control.next_actions else None

    @next_action.setter
    def next_action(self, action: Action | None) -> None:
        self.control.next_actions = [] if action is None else [action]

    def list_tools(self) -> str:
        """All offered tools as one JSON object: name to description and input schema."""
        described: dict[str, Any] = {}
        for tool in self.offered_tools().values():
            described |= tool.to_dict()
        return to_compact_json(described)

    def get_tool(self, name: str) -> BaseTool | None:
        """The tool of that name, or None."""
        return self.available_tools.get(name)

    @abstractmethod
    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn: ``goal`` is what is asked for now."""

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it. Built-in memories record all of it in one write.

        Args:
            goal: The goal of the turn.
            run_id: The id of the run.
            state: The name of the state that the run begins in.
            before: Messages to record ahead of the goal: results of calls that the run before left
                open.
        """
        if before:
            await self.update([*before])
        kind = type(self)
        by_default = kind.turn is Memory.turn or kind.context is Memory.context
        earlier = [*await self.goal(), *await self.dump()] if by_default else []
        await self.set_goal(goal)
        self._turn_began = goal.id, frozenset(message.id for message in earlier)
        self.control.begin(run_id, state)
        await self.checkpoint()

    @abstractmethod
    async def update(self, messages: list[Message]) -> None:
        """Add ``messages`` in this order, all or none."""

    @abstractmethod
    async def goal(self) -> list[Message]:
        """The current goal as a list of one message, or an empty list."""

    @abstractmethod
    async def dump(self) -> list[Message]:
        """A copy of all that the memory still holds, oldest first, without the current goal."""

    async def context(self) -> list[Message]:
        """What a model should see now; default: earlier turns, the goal, what this turn produced.

        The default puts each result right behind its call, before what arrived in between. It
        tells earlier turns from this one as :meth:`turn` does.
        """
        goal = await self.goal()
        earlier, later = self._split_at(goal, await self.dump())
        return arranged(earlier + goal + later)

    async def turn(self) -> list[Message]:
        """The current goal and what was recorded since, as far as the memory still holds it.

        The default knows by :meth:`begin` what was there before; for a turn that began otherwise,
        or in another process, it goes by the time.
        """
        goal = await self.goal()
        return arranged(goal + self._split_at(goal, await self.dump())[1])

    def _split_at(
        self, goal: Sequence[Message], messages: Sequence[Message]
    ) -> tuple[list[Message], list[Message]]:
        """``messages`` from before the turn of ``goal``, and those of the turn."""
        if not goal:
            return [], list(messages)
        began, before = self._turn_began
        if began == goal[-1].id:
            earlier = [m for m in messages if m.id in before]
        else:
            earlier = [m for m in messages if m.created_at < goal[-1].created_at]
        early = {m.id for m in earlier}
        return earlier, [m for m in messages if m.id not in early]

    async def open(self) -> None:
        """Get ready: called by the Brain before a run, and again does nothing. Default: nothing."""

    async def snapshot(self) -> Snapshot:
        """All that the memory holds, as plain data of its own."""
        return Snapshot(
            goal=await self.goal(),
            messages=await self.dump(),
            control=self.control.model_copy(deep=True),
        )

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds. The default fills a memory that is still empty.

        Raises:
            MemoryUseError: The memory already holds messages and does not know how to drop them.
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
        """Whether :meth:`checkpoint` does anything; states skip their notes for it if not."""
        return type(self).checkpoint is not Memory.checkpoint

    async def checkpoint(self) -> None:
        """Make what happened so far durable; called after every step. Default: nothing."""

    async def rollback(self) -> None:
        """Drop what an interrupted step wrote after the last checkpoint. Default: nothing.

        The Brain calls it before it resumes a run that was cut off inside a step, so that the step
        can be taken again from its beginning.
        """

    async def fork(self) -> Memory:
        """An independent copy for a parallel branch; the default copies every attribute deeply.

        Raises:
            MemoryUseError: An attribute cannot be copied.
        """
        try:
            return copy.deepcopy(self)
        except TypeError as error:
            raise MemoryUseError(
                f"{type(self).__name__} cannot be forked, as one of its attributes cannot be "
                f"copied ({error}): override fork()"
            ) from error

    async def aclose(self) -> None:
        """Give back what the memory opened; twice is fine. Default: nothing."""

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
