"""When messages expire."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message

LONG_AGO = datetime.min.replace(tzinfo=UTC)


def utc_now() -> datetime:
    """Return the current time, aware."""
    return datetime.now(UTC)


def as_duration(what: str, value: timedelta | float | None) -> timedelta | None:
    """Return a duration that is given as such or in seconds.

    Raises:
        MemoryDefinitionError: It is not positive.
    """
    if value is None or isinstance(value, timedelta):
        duration = value
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise MemoryDefinitionError(f"{what}= takes seconds or a timedelta, not {value!r}")
    else:
        try:
            duration = timedelta(seconds=value)
        except (ValueError, OverflowError) as error:
            raise MemoryDefinitionError(f"{what}={value!r} is not a duration: {error}") from error
    if duration is not None and duration <= timedelta(0):
        raise MemoryDefinitionError(f"{what}= must be greater than 0, not {value!r}")
    return duration


class Expiry:
    """Which messages have expired; each costs O(log n).

    A message expires at its ``expires_at``; without one, unless it is pinned, ``ttl`` after its
    creation.
    """

    __slots__ = ("_heap", "_ttl", "_watched")

    def __init__(self, ttl: timedelta | None) -> None:
        self._ttl = ttl
        self._heap: list[tuple[datetime, str]] = []
        self._watched: dict[str, None] = {}  # smaller than a set while it is empty

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, messages: Iterable[Message]) -> None:
        """Watch ``messages``."""
        ttl = self._ttl
        for message in messages:
            moment = message.expires_at
            if moment is None and ttl is not None and not message.pinned:
                moment = message.created_at + ttl
            if moment is not None:
                heapq.heappush(self._heap, (moment, message.id))
                self._watched[message.id] = None

    def discard(self, ids: Iterable[str]) -> None:
        """Stop watching messages."""
        for message_id in ids if self._watched else ():
            self._watched.pop(message_id, None)
        if len(self._heap) > 64 + 2 * len(self._watched):
            self._heap = [item for item in self._heap if item[1] in self._watched]
            heapq.heapify(self._heap)

    def take_due(self, now: datetime) -> list[tuple[datetime, str]]:
        """Stop watching the messages that have expired; return their times and IDs."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            item = heapq.heappop(self._heap)
            if item[1] in self._watched:
                del self._watched[item[1]]
                due.append(item)
        return due

    def give_back(self, due: Iterable[tuple[datetime, str]]) -> None:
        """Watch messages again that cannot be removed yet."""
        for item in due:
            heapq.heappush(self._heap, item)
            self._watched[item[1]] = None
