"""What every memory is: four methods to write, everything else built on them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from agent_brain.memories.control import Control
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.snapshot import Snapshot
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolDefinitionError
from agent_brain.tools.function import as_tool
from agent_brain.tools.text import to_compact_json


class Memory(ABC):
    """All that a run knows: its goal, its messages, its tools and where it stands.

    A subclass writes ``set_goal``, ``update``, ``goal`` and ``dump``; it is then complete, and
    overrides the rest where it can do better.

    Args:
        tools: What the agent may call: tools, or functions with type hints.

    Raises:
        ToolDefinitionError: Two tools have one name.
    """

    busy: bool = False  # a run is going on over this memory

    def __init__(self, tools: Iterable[BaseTool | Callable[..., Any]] = ()) -> None:
        self.control = Control()
        self.available_tools: dict[str, BaseTool] = {}
        self.add_tools(tools)

    def add_tools(self, tools: Iterable[BaseTool | Callable[..., Any]]) -> None:
        """Make more tools available; all of them or, if a name is taken, none.

        Raises:
            ToolDefinitionError: Two different tools have one name.
        """
        added: dict[str, BaseTool] = {}
        for tool in map(as_tool, tools):
            other = added.get(tool.name) or self.available_tools.get(tool.name)
            if other is not None and other is not tool:
                raise ToolDefinitionError(
                    f"Two tools are named {tool.name!r}: {other!r} and {tool!r}. Give one of them "
                    "another name, as in @tool(name=…)"
                )
            added[tool.name] = tool
        self.available_tools.update(added)

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
        """All available tools as one JSON object: name to description and input schema."""
        described: dict[str, Any] = {}
        for tool in self.available_tools.values():
            described |= tool.to_dict()
        return to_compact_json(described)

    def get_tool(self, name: str) -> BaseTool | None:
        """The tool of that name, or None."""
        return self.available_tools.get(name)

    @abstractmethod
    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn: ``goal`` is what is asked for now."""

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
        """What a model should see now, in the order it happened; default: the goal, the rest."""
        return await self.goal() + await self.dump()

    async def turn(self) -> list[Message]:
        """The current goal and what was recorded since; the default tells it by the time."""
        goal = await self.goal()
        since = goal[-1].created_at if goal else None
        return goal + [m for m in await self.dump() if since is None or m.created_at >= since]

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
