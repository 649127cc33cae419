"""Closing async streams, and yielding to the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

T = TypeVar("T")

TURN_SECONDS = 0.01


@asynccontextmanager
async def closing(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a stream at the end: as :func:`contextlib.aclosing`, for any iterator.

    Async generators are closed; an iterator without ``aclose`` is left as it is.
    """
    try:
        yield stream
    finally:
        await close_stream(stream)


async def close_stream(stream: object) -> None:
    """Close an async generator; other iterators are left as they are."""
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()


class Pace:
    """Yields to the event loop regularly, in a loop that may never wait otherwise.

    A loop over a stream whose pieces are all ready would otherwise block every timer, such as the
    time limit of the run.
    """

    __slots__ = ("_turned",)

    def __init__(self) -> None:
        self._turned = anyio.current_time()

    async def keep(self) -> None:
        """Yield to the event loop if it has not run for ``TURN_SECONDS``."""
        now = anyio.current_time()
        if now - self._turned > TURN_SECONDS:
            await anyio.lowlevel.checkpoint()
            self._turned = anyio.current_time()
