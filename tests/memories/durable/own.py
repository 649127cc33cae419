"""Memories of a user's own: one of four methods, and one with more than its messages."""

from __future__ import annotations

from collections.abc import Iterable

from agent_brain.memories import Memory, Message, Snapshot
from agent_brain.tools.toolset import ToolLike


class ListMemory(Memory):
    """Keeps its messages in a dict, and which of them were goals."""

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        super().__init__(tools)
        self.said: dict[str, Message] = {}
        self.goals: list[str] = []
        self.refuses = ""
        self.closed = 0

    async def set_goal(self, goal: str | Message) -> None:
        goal = goal if isinstance(goal, Message) else Message.user(goal)
        self.goals.append(goal.id)
        await self.update([goal])

    async def update(self, messages: list[Message]) -> None:
        for message in messages:
            if self.refuses and self.refuses in message.content:
                raise ValueError(f"{message.content} is refused")
            self.said.setdefault(message.id, message)

    async def goal(self) -> list[Message]:
        return [self.said[i] for i in self.goals[-1:]]

    async def dump(self) -> list[Message]:
        return [message for i, message in self.said.items() if i not in self.goals[-1:]]

    async def aclose(self) -> None:
        self.closed += 1


class NotedMemory(ListMemory):
    """Has notes, which follow from none of its calls."""

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        super().__init__([*tools, self.note])
        self.notes: list[str] = []

    def note(self, text: str) -> str:
        """Note something.

        Args:
            text: What.
        """
        self.notes.append(text)
        return "noted"

    async def snapshot(self) -> Snapshot:
        snapshot = await super().snapshot()
        snapshot.views["notes"] = [*self.notes]
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        await super().restore(snapshot)
        notes = snapshot.views.get("notes", [])
        self.notes = [str(note) for note in notes] if isinstance(notes, list) else []


class ShortMemory(ListMemory):
    """Drops all but its newest four messages, with a message that says how many."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped = 0

    async def update(self, messages: list[Message]) -> None:
        await super().update(messages)
        while len(self.said) > 4:
            oldest = next(i for i in self.said if i not in self.goals[-1:])
            del self.said[oldest]
            self.dropped += 1

    async def dump(self) -> list[Message]:
        dropped = Message.system(f"{self.dropped} dropped", id="dropped")
        return [dropped, *await super().dump()] if self.dropped else await super().dump()

    async def snapshot(self) -> Snapshot:
        snapshot = await super().snapshot()
        snapshot.views["dropped"] = self.dropped
        return snapshot

    async def restore(self, snapshot: Snapshot) -> None:
        held = [message for message in snapshot.messages if message.id != "dropped"]
        await super().restore(snapshot.model_copy(update={"messages": held}))
        self.dropped = int(str(snapshot.views.get("dropped", 0)))
