"""Values by key that are opened when needed and closed when unused. Private."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

logger = logging.getLogger(__name__)

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
        group: Returns the group of a key; None if it is in none.
        most: Maximum number of values; exceeded only while all of them are in use.
        most_of_group: Maximum number of values of a group; exceeded in the same way.
        idle: Seconds after which an unused value is closed by :meth:`expire`; None keeps it.
    """

    def __init__(
        self,
        close: Callable[[T], Awaitable[None]],
        group: Callable[[K], Hashable | None],
        *,
        most: int,
        most_of_group: int,
        idle: float | None,
    ) -> None:
        self._close = close
        self._group = group
        self._most = most
        self._most_of_group = most_of_group
        self._idle = idle
        self._places: OrderedDict[K, _Place[T]] = OrderedDict()
        self._used: Counter[Hashable | None] = Counter()  # places with a user, by group

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

    def is_used(self, key: K) -> bool:
        """Return whether the value of ``key`` has a user."""
        place = self._places.get(key)
        return place is not None and place.users > 0

    def unused(self) -> list[K]:
        """Return the keys of values without a user, least recently used first."""
        return [key for key, place in self._places.items() if not place.users]

    @property
    def used(self) -> int:
        """The number of values with a user."""
        return self._used.total()

    def used_of(self, group: Hashable) -> int:
        """Return the number of values of ``group`` with a user."""
        return self._used[group]

    @asynccontextmanager
    async def take(self, key: K, make: Callable[[], Awaitable[T]]) -> AsyncIterator[T]:
        """Yield the value of ``key``, which ``make`` opens if it is not open."""
        place = self._places.setdefault(key, _Place())
        self._places.move_to_end(key)
        self._used[self._group(key)] += not place.users
        place.users += 1  # before others are evicted
        try:
            async with place.lock:
                opens = place.value is None
                if place.value is None:
                    place.value = await make()
                value = place.value
            for other in self._surplus(key if opens else None):
                await self.evict(other)
            yield value
        finally:
            place.users -= 1
            place.used_at = anyio.current_time()
            if not place.users:
                self._count_leaving(self._group(key))
                await self._left(key, place)

    def _count_leaving(self, group: Hashable | None) -> None:
        self._used[group] -= 1
        if not self._used[group]:
            del self._used[group]

    def _surplus(self, opened: K | None) -> list[K]:
        """Return what is to be evicted, now that ``opened`` was opened: first of its group."""
        surplus: list[K] = []
        group = None if opened is None else self._group(opened)
        if group is not None:
            own = [key for key in self._places if self._group(key) == group]
            unused = [key for key in own if not self._places[key].users]
            surplus = unused[: max(0, len(own) - self._most_of_group)]
        more = len(self._places) - len(surplus) - self._most
        if more > 0:
            surplus += [key for key in self.unused() if key not in surplus][:more]
        return surplus

    async def _left(self, key: K, place: _Place[T]) -> None:
        """Remove a place without users that never opened, or close one that was discarded."""
        if self._places.get(key) is place:
            if place.value is None and not place.lock.locked():
                del self._places[key]
        elif place.value is not None:
            value, place.value = place.value, None
            await self._close_quietly(value)

    def discard(self, key: K) -> None:
        """Forget the value of ``key``: it is closed when its last user leaves."""
        self._places.pop(key, None)

    async def evict(self, key: K) -> None:
        """Close the value of ``key``, unless somebody uses it."""
        place = self._places.get(key)
        if place is None:
            return
        async with place.lock:
            if place.users:
                return
            value, place.value = place.value, None
            try:
                if value is not None:
                    await self._close_quietly(value)
            finally:
                if not place.users and self._places.get(key) is place:
                    del self._places[key]

    async def _close_quietly(self, value: T) -> None:
        """Close a value; an error is logged, as it is not the error of whoever comes by."""
        try:
            with anyio.CancelScope(shield=True):
                await self._close(value)
        except Exception:
            logger.exception("%r could not be closed", value)

    async def expire(self) -> None:
        """Close the values that are unused for too long."""
        if self._idle is None:
            return
        before = anyio.current_time() - self._idle
        for key in self.unused():
            place = self._places.get(key)  # others may be evicted meanwhile
            if place is not None and place.used_at <= before:
                await self.evict(key)

    async def aclose(self) -> None:
        """Close all values, used or not."""
        while self._places:
            _, place = self._places.popitem()
            value, place.value = place.value, None
            if value is not None:
                await self._close_quietly(value)
