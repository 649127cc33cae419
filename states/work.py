"""What a state yields to have the Brain do something while the state waits."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import anyio

from agent_brain.states.aclosing import closing
from agent_brain.states.events import Event

T = TypeVar("T")


class OutOfTimeError(Exception):
    """The time of a :class:`Clock` is up."""


class Clock:
    """The time that is left for a piece of work; the time of whoever reads its events is free.

    Args:
        left: Seconds.
        others: Clocks that run as well while this one does.
    """

    __slots__ = ("_left", "_others")

    def __init__(self, left: float, *others: Clock) -> None:
        self._left = left
        self._others = others

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return min([self._left, *(other.left for other in self._others)])

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Return what ``awaitable`` gives.

        Raises:
            OutOfTimeError: The time is up; ``awaitable`` was cancelled.
        """
        start = anyio.current_time()
        try:
            with anyio.move_on_after(max(self.left, 0)):
                return await awaitable
        finally:
            self._spend(anyio.current_time() - start)
        raise OutOfTimeError

    def _spend(self, seconds: float) -> None:
        self._left -= seconds
        for other in self._others:
            other._spend(seconds)


@dataclass(frozen=True, slots=True)
class Work(Event):
    """Base class of what the Brain does for a state that waits at its ``yield``.

    An error of the work is raised there.

    Attributes:
        clock: Limits the time of the work, if there is a limit.
    """

    clock: Clock | None = dataclasses.field(default=None, kw_only=True)


async def next_item(stream: AsyncIterator[T], failed: Exception | None) -> T:
    """Return what a state yields next.

    Args:
        stream: What its ``run`` returned.
        failed: An error of the work that it waits for; it is raised where the state waits.

    Raises:
        StopAsyncIteration: It has ended.
    """
    if failed is None:
        return await anext(stream)
    if not isinstance(stream, AsyncGenerator):
        raise failed
    item: T = await stream.athrow(failed)
    return item


class Resumed(Generic[T]):
    """What a state yields after an error was raised where it waits.

    Args:
        stream: What its ``run`` returned.
        failed: The error.
    """

    __slots__ = ("_failed", "_stream")

    def __init__(self, stream: AsyncIterator[T], failed: Exception) -> None:
        self._stream = stream
        self._failed: Exception | None = failed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        failed, self._failed = self._failed, None
        return await next_item(self._stream, failed)


async def within_time(stream: AsyncIterator[T], clock: Clock) -> AsyncGenerator[T, None]:
    """Yield the items of ``stream`` as long as ``clock`` has time left.

    Raises:
        OutOfTimeError: The time is up.
    """
    async with closing(stream) as items:
        while True:
            try:
                item = await clock.wait(anext(items))
            except StopAsyncIteration:
                return
            yield item
