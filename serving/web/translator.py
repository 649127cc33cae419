"""What all protocols have in common: events of a run in, bytes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from agent_brain.serving.event_log import SessionEvent
from agent_brain.states.events import AgentEvent

PartT = TypeVar("PartT")


class Frames(Protocol):
    """Turns the events of one run into bytes; it awaits nothing."""

    def frames(self, item: SessionEvent, /) -> bytes:
        """Return what the client is sent for an event; empty for nothing."""
        ...

    def failed(self, error: Exception) -> bytes:
        """Return what ends a stream that has begun, after an error that may not be an event."""
        ...

    @property
    def last(self) -> bytes:
        """What follows everything else."""
        ...

    @property
    def enough(self) -> bool:
        """Whether the client is sent no more text, so that the run should be cancelled."""
        ...


class Translator(ABC, Generic[PartT]):
    """Frames of a protocol that are made of parts, such as its own events.

    Attributes:
        last: What follows everything else.
        enough: Whether the client is sent no more text.
    """

    last: bytes = b""
    enough = False

    @abstractmethod
    def translate(self, event: AgentEvent) -> list[PartT]:
        """Return the parts for an event of the run."""

    @abstractmethod
    def fail(self, error: Exception) -> list[PartT]:
        """Return the parts that end a stream after an error, unless it has ended."""

    @abstractmethod
    def encode(self, part: PartT) -> bytes:
        """Return a part as the client is sent it."""

    def frames(self, item: SessionEvent) -> bytes:
        """Return what the client is sent for an event; empty for nothing."""
        return b"".join([self.encode(part) for part in self.translate(item.event)])

    def failed(self, error: Exception) -> bytes:
        """Return what ends a stream that has begun."""
        return b"".join([self.encode(part) for part in self.fail(error)])
