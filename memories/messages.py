"""The memory that keeps every message, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.record import Record
from agent_brain.memories.snapshot import Snapshot
from agent_brain.tools.base import BaseTool


class MessagesMemory(Memory):
    """Everything, in the order it happened.

    Goals are messages of the record like all others: a second question in the same session is asked
    after the first one and its answer. Adding a message whose id is already here changes nothing.
    """

    def __init__(self, tools: Iterable[BaseTool | Callable[..., Any]] = ()) -> None:
        super().__init__(tools)
        self._record = Record()
        self._goal_id: str | None = None

    async def set_goal(self, goal: str | Message) -> None:
        """Start a turn; earlier goals stay where they were asked."""
        message = as_message(goal)
        self._record.append(self._record.unknown([message]))
        self._goal_id = message.id

    async def update(self, messages: list[Message]) -> None:
        """Add ``messages`` in this order; known ids are passed over."""
        self._record.append(self._record.unknown(messages))

    async def goal(self) -> list[Message]:
        """The current goal as a list of one message, or an empty list."""
        goal = None if self._goal_id is None else self._record.get(self._goal_id)
        return [] if goal is None else [goal]

    async def dump(self) -> list[Message]:
        """A copy of everything but the current goal, oldest first."""
        return [message for message in self._record if message.id != self._goal_id]

    async def context(self) -> list[Message]:
        """Everything in the order it happened: earlier turns, the goal, what this turn produced."""
        return list(self._record)

    async def turn(self) -> list[Message]:
        """The current goal and what was recorded since."""
        turn: list[Message] = []
        for message in reversed(self._record):
            turn.append(message)
            if message.id == self._goal_id:
                break
        return turn[::-1]

    async def snapshot(self) -> Snapshot:
        """All that the memory holds; ``messages`` has the goal at its place."""
        return Snapshot(
            goal=await self.goal(),
            messages=list(self._record),
            control=self.control.model_copy(deep=True),
        )

    async def restore(self, snapshot: Snapshot) -> None:
        """Hold what ``snapshot`` holds, and nothing else."""
        snapshot.check()
        record = Record()
        record.append(record.unknown([*snapshot.messages]))
        record.append(record.unknown(snapshot.goal))
        self._record = record
        self._goal_id = snapshot.goal[-1].id if snapshot.goal else None
        self.control = snapshot.control.model_copy(deep=True)

    async def fork(self) -> Self:
        """An independent copy: same tools, same messages, nothing shared that changes."""
        copied = type(self)(self.available_tools.values())
        await copied.restore(await self.snapshot())
        return copied
