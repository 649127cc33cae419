"""A memory over another one: everything is the inner one's, except what is overridden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message
from agent_brain.memories.snapshot import Snapshot


class WrappingMemory(Memory):
    """Passes everything on to ``inner``; its tools and its control are this memory's too.

    What else the inner memory offers (``messages``, ``get``, ``forget``, ``recall`` …) is reached
    through this one as well.

    Args:
        inner: The memory to stand in front of.
    """

    def __init__(self, inner: Memory) -> None:
        if not isinstance(inner, Memory):
            raise MemoryDefinitionError(
                f"{type(self).__name__} takes a memory, such as MessagesMemory(), not {inner!r}"
            )
        self.inner = inner
        self.available_tools = inner.available_tools

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.inner, name)

    @property
    def control(self) -> Control:
        """Where the run stands: the inner memory's."""
        return self.inner.control

    @control.setter
    def control(self, control: Control) -> None:
        self.inner.control = control

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn."""
        await self.inner.set_goal(goal)

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it."""
        await self.inner.begin(goal, run_id, state, before=before)

    async def update(self, messages: list[Message]) -> None:
        """Add ``messages`` in this order, all or none."""
        await self.inner.update(messages)

    async def goal(self) -> list[Message]:
        """The current goal as a list of one message, or an empty list."""
        return await self.inner.goal()

    async def dump(self) -> list[Message]:
        """A copy of everything but the current goal, oldest first."""
        return await self.inner.dump()

    async def context(self) -> list[Message]:
        """What a model should see now."""
        return await self.inner.context()

    async def turn(self) -> list[Message]:
        """The current goal and what was recorded since."""
        return await self.inner.turn()

    async def open(self) -> None:
        """Get ready."""
        await self.inner.open()

    async def snapshot(self) -> Snapshot:
        """All that the memory holds."""
        return await self.inner.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds, and nothing else."""
        await self.inner.restore(snapshot)

    @property
    def durable(self) -> bool:
        """Whether :meth:`checkpoint` does anything."""
        return self.inner.durable

    async def checkpoint(self) -> None:
        """Make what happened so far durable."""
        await self.inner.checkpoint()

    async def rollback(self) -> None:
        """Drop what an interrupted step wrote after the last checkpoint."""
        await self.inner.rollback()

    async def aclose(self) -> None:
        """Close the inner memory."""
        await self.inner.aclose()
