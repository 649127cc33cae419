"""Work on many messages without stopping the event loop meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Generic, Self, TypeVar

import anyio.lowlevel
import anyio.to_thread

T = TypeVar("T")
S = TypeVar("S", bound=Sized)

SLICE = 500  # items between two checkpoints
ON_LOOP = 500  # more items are for a worker thread
ON_LOOP_LETTERS = 100_000  # a longer text is too


class in_slices(Generic[T]):  # noqa: N801 - used as a function
    """Iterate over ``items``; let other tasks run from time to time.

    No generator, which a loop that an error ends would have to close.
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(list(items))
        self._left = SLICE  # items until the next checkpoint

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if not self._left:
            self._left = SLICE
            await anyio.lowlevel.checkpoint()
        self._left -= 1
        for item in self._items:
            return item
        raise StopAsyncIteration


async def in_thread_if_many(items: S, work: Callable[[S], T], most: int = ON_LOOP) -> T:
    """Return ``work(items)``, called in a worker thread if there are more than ``most`` items."""
    if len(items) <= most:
        return work(items)
    return await anyio.to_thread.run_sync(work, items)


async def in_thread_if_much(lines: Sequence[str], work: Callable[..., T], *args: Any) -> T:
    """Return ``work(*args)``, called in a worker thread if ``lines`` are many, or long together."""
    if len(lines) <= ON_LOOP and sum(map(len, lines)) <= ON_LOOP_LETTERS:
        return work(*args)
    return await anyio.to_thread.run_sync(work, *args)
