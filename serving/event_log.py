"""The events of a session, numbered, for readers that come and go."""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import dataclass

import anyio

from agent_brain.memories.message import Message
from agent_brain.serving.event_json import event_json
from agent_brain.states import events
from agent_brain.tools.action import Action

OVERHEAD = 200  # bytes of an event beside its text, roughly
SMALL = {events.StateEntered, events.StateExited, events.ResponseStarted, events.UsageReported}


class SessionEvent:
    """An event with its number in the session.

    Attributes:
        event: The event.
        id: Identifies the event in its log; a reader that comes back gives the last ID it has seen.
        number: The number, which grows by one with each event of the session.
    """

    __slots__ = ("event", "log", "number")

    def __init__(self, event: events.AgentEvent, log: str, number: int) -> None:
        self.event = event
        self.log = log
        self.number = number

    @property
    def id(self) -> str:
        """The ID of the event."""
        return f"{self.log}-{self.number}"

    @property
    def json(self) -> bytes:
        """The event as JSON (see :meth:`Event.to_json`)."""
        return event_json(self.event)

    def __repr__(self) -> str:
        return f"SessionEvent({self.id!r}, {self.event!r})"


@dataclass(frozen=True, slots=True)
class Gap:
    """Events are missing: the reader was too slow or away for too long.

    Attributes:
        id: ID of the last event that is missing.
    """

    id: str


class EventLog:
    """The newest events of a session, in RAM.

    Args:
        max_events: Maximum number of events; older ones are dropped.
        max_bytes: Maximum size of the events, roughly.
    """

    def __init__(self, *, max_events: int = 10_000, max_bytes: int = 4_000_000) -> None:
        self.name = secrets.token_hex(4)  # the numbers of another process are not taken for ours
        self.last = 0
        self.closed = False
        self.readers = 0
        self.unread_since = 0.0
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[events.AgentEvent] = deque()  # the last one has the number self.last
        self._bytes = 0
        self._news: anyio.Event | None = None  # set when somebody waits and something happens

    @property
    def last_id(self) -> str:
        """The ID of the last event."""
        return f"{self.name}-{self.last}"

    @property
    def first(self) -> int:
        """The number of the first event that is still here."""
        return self.last - len(self._events) + 1

    def has_after(self, number: int) -> bool:
        """Return whether all events after ``number`` are still here."""
        return number >= self.first - 1

    def keeps_after(self, item: str) -> bool:
        """Return whether all events after the one with that ID are still here."""
        return self.has_after(self._number(item))

    def append(self, event: events.AgentEvent) -> SessionEvent:
        """Add an event, and wake the readers."""
        self.last = number = self.last + 1
        kept = self._events
        kept.append(event)
        self._bytes += (
            OVERHEAD + len(event.text) if type(event) is events.TextDelta else _size(event)
        )
        while len(kept) > self._max_events or (self._bytes > self._max_bytes and len(kept) > 1):
            self._bytes -= _size(kept.popleft())
        if self._news is not None:
            self._wake()
        return SessionEvent(event, self.name, number)

    def clear(self) -> None:
        """Drop all events; a reader that has not read the last one gets a :class:`Gap`."""
        self._events.clear()
        self._bytes = 0

    def skip(self) -> None:
        """Give every reader a :class:`Gap`: something has happened that no event here reports."""
        self.last += 1
        self.clear()
        self._wake()

    def close(self) -> None:
        """End the readers, once they have read everything."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None

    def read(self, after: str | None = None) -> LogReader:
        """Return a reader of the events after the one with ID ``after``.

        Args:
            after: ID of the last event that the reader knows; ``"0"`` for all that are here, None
                for those to come.
        """
        if after is None:
            return LogReader(self, self.last)
        if after == "0":
            return LogReader(self, self.first - 1)
        return LogReader(self, self._number(after))

    def _number(self, item: str) -> int:
        """Return the number of the event with that ID; -1 if it is not of this log."""
        name, _, number = item.rpartition("-")
        if name != self.name or not (number.isascii() and number.isdecimal()) or len(number) > 18:
            return -1
        return min(int(number), self.last)

    def since(self, number: int, most: int | None = None) -> list[SessionEvent]:
        """Return the events after ``number``; at most ``most``."""
        first, kept = self.first, self._events
        start = max(number + 1, first)
        end = self.last + 1 if most is None else min(start + most, self.last + 1)
        return [SessionEvent(kept[n - first], self.name, n) for n in range(start, end)]

    async def wait(self) -> None:
        """Wait until something happens."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()


class LogReader:
    """Reads the events of a log: those that are there, then those to come.

    An async iterator of :class:`SessionEvent` and :class:`Gap`; :meth:`batch` returns all that
    are there. It holds nothing open between two reads; use it with ``with``, so that the log knows
    whether it has readers.
    """

    def __init__(self, log: EventLog, position: int) -> None:
        self._log = log
        self._position = position

    def __enter__(self) -> LogReader:
        self._log.readers += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._log.readers -= 1
        self._log.unread_since = anyio.current_time()

    def __aiter__(self) -> LogReader:
        return self

    async def __anext__(self) -> SessionEvent | Gap:
        batch = await self.batch(1)
        if not batch:
            raise StopAsyncIteration
        return batch[0]

    async def batch(self, most: int = 256) -> list[SessionEvent | Gap]:
        """Return the next events, at most ``most`` (1 or more); wait for one.

        Empty when the log is closed.
        """
        log = self._log
        while self._position >= log.last:
            if log.closed:
                return []
            await log.wait()
        if not log.has_after(self._position):
            self._position = log.first - 1
            return [Gap(f"{log.name}-{self._position}")]
        kept = log.since(self._position, max(1, most))
        self._position = kept[-1].number
        return [*kept]


def _size(event: events.AgentEvent) -> int:
    """Return about how many bytes an event holds; texts are not encoded for it."""
    if isinstance(event, events.TextDelta | events.ActionDelta):
        return OVERHEAD + len(event.text)
    if type(event) in SMALL:
        return OVERHEAD
    if isinstance(event, events.ActionRequested | events.ActionStarted | events.ToolProgress):
        return OVERHEAD + _action_size(event.action)
    if isinstance(event, events.ActionFinished):
        return OVERHEAD + _action_size(event.action) + _message_size(event.result)
    if isinstance(event, events.RunStarted | events.MessageReceived):
        message = event.goal if isinstance(event, events.RunStarted) else event.message
        return OVERHEAD + (0 if message is None else _message_size(message))
    if isinstance(event, events.RunFinished):
        return OVERHEAD + len(event.answer) + len(repr(event.output))
    return len(event_json(event))


def _message_size(message: Message) -> int:
    files = sum(len(file.data or file.url or "") for file in message.attachments)
    return OVERHEAD + len(message.content) + files


def _action_size(action: Action) -> int:
    return sum(len(repr(value)) for value in action.args.values())
