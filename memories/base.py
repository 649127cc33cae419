"""The interface of memories: four methods to write, defaults for the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from anyio.abc import AsyncResource

from agent_brain.common.text import to_compact_json
from agent_brain.memories.control import Control, ToolScope
from agent_brain.memories.errors import STORE_ERRORS, MemoryUseError
from agent_brain.memories.message import Message
from agent_brain.memories.runs.run_memory import EarlierTurns, RunMemory
from agent_brain.memories.runs.work import working_for
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.views.groups import arranged
from agent_brain.tools.base import BaseTool
from agent_brain.tools.toolset import Choice, ToolLike, chooser, collect


class Memory(RunMemory, AsyncResource):
    """Base class for memories: the goal, the messages, the tools and the state of a run.

    A subclass defines ``set_goal``, ``update``, ``goal`` and ``dump``; it may override the rest.
    One that is to have a journal and queries derives from :class:`StoredMemory` instead::

        memory = MessagesMemory([my_tool])
        await memory.set_goal("What is 17 times 23?")
        result = await Brain("react", memory).run("And divided by 2?")

    What a Brain needs besides is inherited from ``RunMemory``: ``done`` and ``next_actions`` of
    ``control``, turns, branches, and that one run at a time uses a memory.

    Attributes:
        control: The state of the run.
        available_tools: The tools by name.

    Args:
        tools: What the agent may call: tools, or functions with type hints.

    Raises:
        ToolDefinitionError: Two tools have the same name.
    """

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self.control = Control.fresh()
        self.available_tools: dict[str, BaseTool] = {}
        self.add_tools(tools)

    @abstractmethod
    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn with ``goal``, the current request."""

    @abstractmethod
    async def update(self, messages: list[Message]) -> Sequence[str] | None:
        """Add ``messages`` in this order, all or none; known IDs are ignored.

        In a step of a run, a memory with a journal may write them with the end of the step.

        Returns:
            The IDs of those that were added, if the memory returns them, as the built-in ones do.
        """

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

    async def checkpoint(self) -> None:
        """Make what happened so far durable. Does nothing by default.

        A run calls it when it continues, after each step, and when it waits or ends.
        """

    @property
    def durable(self) -> bool:
        """Whether :meth:`checkpoint` does anything; if not, states write no notes for it."""
        return type(self).checkpoint is not Memory.checkpoint

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

    async def open(self) -> None:
        """Prepare for use; the Brain calls it before a run. Idempotent. Does nothing by default."""

    async def aclose(self) -> None:
        """Release what the memory opened. Idempotent. Does nothing by default."""

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

    def list_tools(self) -> str:
        """Return all offered tools as a JSON object: name to description and input schema."""
        described: dict[str, Any] = {}
        for tool in self.offered_tools().values():
            described |= tool.to_dict()
        return to_compact_json(described)

    def get_tool(self, name: str) -> BaseTool | None:
        """Return the tool with this name, or None."""
        return self.available_tools.get(name)

    def work_for(self, purpose: str) -> AbstractContextManager[None]:
        """Inside, model calls and embeddings belong to the run that uses this memory.

        Where the state or tool of another run uses the memory, they belong to that run. Hooks see
        the calls, limits and budgets hold for them, and they are counted, recorded and replayed.
        That goes for ``llm.call(…)`` and for embedders. Outside of a run it does nothing. Never
        hold it across a ``yield``::

            with self.work_for("summary"):
                text = await self.summarize(messages)

        Args:
            purpose: What model calls are for, as in ``UsageReported.purpose``.
        """
        return working_for(self.run_work, purpose)

    def report(self, kind: str, **fields: Any) -> None:
        """Tell the readers of a run what the memory does by itself, as an event of the run.

        Nothing happens outside of a run, and if nobody reads its events; ``self.heard`` says so
        beforehand, where it takes work to know what to tell::

            self.report("trimmed", ids=tuple(gone))

        Args:
            kind: ``"recalled"``, ``"trimmed"``, ``"compacted"`` or ``"learned"``, or a kind of your
                own, whose event is an :class:`~agent_brain.states.OtherEvent`.
            **fields: The fields of the event: those of ``MessagesRecalled``, ``MessagesTrimmed``,
                ``ContextCompacted`` or ``FactsLearned``; of an own kind, any JSON values.

        Raises:
            MemoryUseError: Events of this kind are not for memories.
            TypeError: The fields are others.
        """
        if self.run_work is not None and self.run_work.listens:
            self.run_work.report(kind, fields)

    async def _before_turn(self) -> EarlierTurns:
        """Return what :meth:`_note_new_turn` needs to know from before a turn."""
        kind = type(self)
        by_default = kind.turn is Memory.turn or kind.context is Memory.context
        earlier = [*await self.goal(), *await self.dump()] if by_default else []
        return await self._turn_notes(), frozenset(message.id for message in earlier)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, STORE_ERRORS):  # closing writes what is held
            self.note_store_failure(error)
        await self.aclose()
