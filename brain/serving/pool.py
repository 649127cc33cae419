"""Values by key that are opened when needed and closed when unused. Private."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from agent_brain.tools.secrets import get_logger

logger = get_logger(__name__)
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Place(Generic[T]):
    lock: anyio.Lock = field(default_factory=anyio.Lock)  # held while the value opens or closes
    value: T | None = None
    users: int = 0
    used_at: float = 0.0


class Pool(Generic[K, T]):
    """Values by key: each is opened once, shared by its users, and closed when it is evicted.

    Args:
        close: Closes a value.
        most: Maximum number of values; exceeded only while all of them are in use.
        idle: Seconds after which an unused value is closed by :meth:`expire`; None keeps it.
    """

    def __init__(
        self, close: Callable[[T], Awaitable[None]], *, most: int, idle: float | None
    ) -> None:
        self._close = close
        self._most = most
        self._idle = idle
        self._places: OrderedDict[K, _Place[T]] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: K) -> T | None:
        """Return the value, if it is open."""
        place = self._places.get(key)
        return None if place is None else place.value

    def values(self) -> Iterator[T]:
        """Yield the open values."""
        return (place.value for place in [*self._places.values()] if place.value is not None)

    @property
    def room(self) -> bool:
        """Whether another value can be opened within the limit."""
        return len(self._places) < self._most or self._oldest_unused() is not None

    def _oldest_unused(self) -> K | None:
        """Return the key of the least recently used value without a user."""
        unused = (key for key, place in self._places.items() if not place.users)
        return next(unused, None)

    @asynccontextmanager
    async def take(self, key: K, make: Callable[[], Awaitable[T]]) -> AsyncIterator[T]:
        """Yield the value of ``key``, which ``make`` opens if it is not open."""
        place = self._places.setdefault(key, _Place())
        self._places.move_to_end(key)
        place.users += 1  # before others are evicted
        try:
            async with place.lock:
                if place.value is None:
                    place.value = await make()
                value = place.value
            while len(self._places) > self._most and (other := self._oldest_unused()) is not None:
                await self.evict(other)
            yield value
        finally:
            place.users -= 1
            place.used_at = anyio.current_time()
            if not place.users:
                await self._left(key, place)

    async def _left(self, key: K, place: _Place[T]) -> None:
        """Remove a place without users that never opened, or close one that was discarded."""
        if self._places.get(key) is place:
            if place.value is None and not place.lock.locked():
                del self._places[key]
        elif place.value is not None:
            value, place.value = place.value, None
            with anyio.CancelScope(shield=True):
                await self._close(value)

    def discard(self, key: K) -> None:
        """Forget the value of ``key``: it is closed when its last user leaves."""
        self._places.pop(key, None)

    async def evict(self, key: K) -> None:
        """Close the value of ``key``, unless somebody uses it; log an error of closing it."""
        place = self._places.get(key)
        if place is None:
            return
        async with place.lock:
            if place.users:
                return
            value, place.value = place.value, None
            try:
                if value is not None:
                    with anyio.CancelScope(shield=True):
                        await self._close(value)
            except Exception:  # whoever opens another value has nothing to do with it
                logger.warning("%r could not be closed", key, exc_info=True)
            finally:
                if not place.users and self._places.get(key) is place:
                    del self._places[key]

    async def expire(self) -> None:
        """Close the values that are unused for too long."""
        if self._idle is None:
            return
        before = anyio.current_time() - self._idle
        unused = [key for key, place in self._places.items() if not place.users]
        for key in unused:
            place = self._places.get(key)
            if place is not None and place.used_at <= before:
                await self.evict(key)

    async def aclose(self) -> None:
        """Close all values, used or not."""
        while self._places:
            _, place = self._places.popitem()
            if place.value is not None:
                await self._close(place.value)
