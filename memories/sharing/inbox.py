"""A queue of messages, as the inbox of an agent."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, Literal, Self

import anyio
from pydantic import BaseModel, Field, ValidationError, model_validator

from agent_brain.memories.errors import MemoryUseError, SnapshotError
from agent_brain.memories.message import Message

VERSION: Literal[1] = 1


class MessageQueue:
    """A queue of messages: lowest priority number first, then first in, first out.

    Pushing and popping n messages takes the logarithm of n each. A message that is already queued
    is not added again. Call it from one event loop only::

        inbox = MessageQueue()
        inbox.push(Message.user("urgent"), priority=-1)
        message = await inbox.get()
    """

    def __init__(self) -> None:
        self._order: list[tuple[int, int]] = []  # a heap of priorities and numbers
        self._waiting: dict[int, tuple[Message, int]] = {}  # by number, in order of arrival
        self._ids: set[str] = set()
        self._last = 0
        self._arrival: anyio.Event | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, message: Message, *, priority: int = 0) -> bool:
        """Add a message; return False if one with its ID is already queued.

        Args:
            message: The message to add.
            priority: The lower the number, the sooner it is popped.

        Raises:
            MemoryUseError: It is not a message, or the priority is not a whole number.
        """
        if not isinstance(message, Message):
            raise MemoryUseError(f"push() takes a Message, not {message!r:.100}")
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise MemoryUseError(f"priority= must be a whole number, not {priority!r}")
        if message.id in self._ids:
            return False
        self._last += 1
        self._put(self._last, message, priority)
        if self._arrival is not None:
            self._arrival.set()
            self._arrival = None
        return True

    def _put(self, number: int, message: Message, priority: int) -> None:
        heapq.heappush(self._order, (priority, number))
        self._waiting[number] = (message, priority)
        self._ids.add(message.id)

    def pop(self) -> Message | None:
        """Remove and return the next message, or None."""
        if not self._order:
            return None
        message, _ = self._waiting.pop(heapq.heappop(self._order)[1])
        self._ids.remove(message.id)
        return message

    def pop_all(self) -> list[Message]:
        """Remove and return all messages, in the order of :meth:`pop`."""
        messages: list[Message] = []
        while (message := self.pop()) is not None:
            messages.append(message)
        return messages

    def peek(self) -> Message | None:
        """Return the next message without removing it, or None."""
        return self._waiting[self._order[0][1]][0] if self._order else None

    def empty(self) -> bool:
        """Return whether the queue is empty."""
        return not self._waiting

    async def get(self) -> Message:
        """Remove and return the next message; wait until there is one."""
        while (message := self.pop()) is None:
            await self.wait()
        return message

    async def wait(self) -> None:
        """Wait until the queue is not empty; remove nothing."""
        while not self._waiting:
            if self._arrival is None:
                self._arrival = anyio.Event()
            await self._arrival.wait()

    def find_news(self, after: int = 0) -> tuple[list[Message], int]:
        """Return what arrived after a cursor and is still queued, and the cursor for the next call.

        Oldest first. Nothing is removed; each reader has a cursor of its own. The cost depends on
        what is new only::

            news, cursor = queue.find_news(cursor)
        """
        found: list[Message] = []
        for number in reversed(self._waiting):
            if number <= after:
                break
            found.append(self._waiting[number][0])
        return found[::-1], max(after, self._last)

    def dump(self) -> dict[str, Any]:
        """Return the queue as plain data, in order of arrival; nothing is removed."""
        waiting = [
            _Waiting(message=message, priority=priority, number=number)
            for number, (message, priority) in self._waiting.items()
        ]
        return _Dump(version=VERSION, waiting=waiting, last=self._last).model_dump(mode="json")

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> MessageQueue:
        """Return a queue with the content of a :meth:`dump`.

        Cursors of :meth:`find_news` stay valid.

        Raises:
            SnapshotError: It is not a dump of a queue.
        """
        try:
            dump = _Dump.model_validate(data)
        except ValidationError as error:
            raise SnapshotError(f"This is not a dump of a MessageQueue: {error}") from error
        queue = cls()
        for item in dump.waiting:
            if item.message.id not in queue._ids:
                queue._put(item.number, item.message, item.priority)
            queue._last = item.number
        queue._last = max(queue._last, dump.last)
        return queue


class _Waiting(BaseModel):
    """One message in a dump."""

    message: Message
    priority: int = 0
    number: int = Field(ge=1)


class _Dump(BaseModel):
    """What :meth:`MessageQueue.dump` returns; numbers grow along the list."""

    version: Literal[1]
    waiting: list[_Waiting]
    last: int

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        numbers = [item.number for item in self.waiting]
        if numbers != sorted({*numbers}):
            raise ValueError("the numbers of waiting messages must grow along the list")
        return self
