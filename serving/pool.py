"""Values by key that are opened when needed and closed when unused."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Generic, TypeVar

import anyio

from agent_brain.common.secrets import get_logger

logger = get_logger(__name__)

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Place(Generic[T]):
    lock: anyio.Lock = field(default_factory=anyio.Lock)  # held while the value opens or closes
    value: T | None = None
    users: int = 0
    used_at: float = 0.0


@dataclass(eq=False, repr=False)
class Pool(Generic[K, T]):
    """Values by key: each is opened once, shared by its users, and closed when it is evicted.

    Args:
        open: Returns the value of a key.
        close: Closes a value.
        most: Maximum number of values; exceeded only while all of them are in use.
        idle: Seconds after which an unused value is closed by :meth:`expire`; None keeps it.
        group: Returns the group of a key; None if it is in none.
        most_of_group: Maximum number of values of a group; exceeded in the same way.
    """

    open: Callable[[K], Awaitable[T]]
    close: Callable[[T], Awaitable[None]]
    _: KW_ONLY
    most: int
    idle: float | None
    group: Callable[[K], Hashable | None] = lambda key: None
    most_of_group: int = 1
    _places: OrderedDict[K, _Place[T]] = field(default_factory=OrderedDict)
    _places_of: Counter[Hashable] = field(default_factory=Counter)
    _used_of: Counter[Hashable] = field(default_factory=Counter)
    used: int = 0

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

    def used_of(self, group: Hashable) -> int:
        """Return the number of values of ``group`` with a user."""
        return self._used_of[group]

    @asynccontextmanager
    async def take(
        self, key: K, make: Callable[[K], Awaitable[T]] | None = None
    ) -> AsyncIterator[T]:
        """Yield the value of ``key``, which is opened if it is not open: by ``make``, if given."""
        place = self._place(key)
        group = self.group(key)
        if not place.users:
            self._count_used(group, 1)
        place.users += 1  # before others are evicted
        try:
            value = place.value
            if value is None:  # or it is being closed
                async with place.lock:
                    if place.value is None:
                        place.value = await (make or self.open)(key)
                    value = place.value
                for other in self._surplus(group):
                    await self.evict(other)
            yield value
        finally:
            place.users -= 1
            place.used_at = anyio.current_time()
            if not place.users:
                self._count_used(group, -1)
                await self._left(key, place)

    def _count_used(self, group: Hashable | None, change: int) -> None:
        self.used += change
        self._used_of[group] += change
        if not self._used_of[group]:
            del self._used_of[group]

    def _surplus(self, group: Hashable | None) -> list[K]:
        """Return what is to be evicted when a value of ``group`` was opened: first of its own."""
        own = 0 if group is None else self._places_of[group] - self.most_of_group
        surplus = [*islice(self._unused(group), own)] if own > 0 else []
        more = len(self._places) - len(surplus) - self.most
        if more > 0:
            surplus += islice((key for key in self._unused() if key not in surplus), more)
        return surplus

    def _unused(self, group: Hashable | None = None) -> Iterator[K]:
        """Yield the keys of values without a user, the least recently used first."""
        for key, place in self._places.items():
            if not place.users and (group is None or self.group(key) == group):
                yield key

    def _place(self, key: K) -> _Place[T]:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place()
            self._places_of[self.group(key)] += 1
        self._places.move_to_end(key)
        return place

    def _remove(self, key: K) -> None:
        del self._places[key]
        group = self.group(key)
        self._places_of[group] -= 1
        if not self._places_of[group]:
            del self._places_of[group]

    async def _left(self, key: K, place: _Place[T]) -> None:
        """Remove a place without users that never opened, or close one that was discarded."""
        if self._places.get(key) is place:
            if place.value is None and not place.lock.locked():
                self._remove(key)
        elif place.value is not None:
            value, place.value = place.value, None
            await self._close_quietly(value)

    def discard(self, key: K) -> None:
        """Forget the value of ``key``: it is closed when its last user leaves."""
        if key in self._places:
            self._remove(key)

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
                    self._remove(key)

    async def _close_quietly(self, value: T) -> None:
        """Close a value; an error is logged, as it is not the error of whoever comes by."""
        try:
            with anyio.CancelScope(shield=True):
                await self.close(value)
        except Exception:
            logger.exception("%r could not be closed", value)

    async def expire(self) -> None:
        """Close the values that are unused for too long."""
        if self.idle is None:
            return
        before = anyio.current_time() - self.idle
        for key in [*self._unused()]:
            place = self._places.get(key)  # others may be evicted meanwhile
            if place is not None and place.used_at <= before:
                await self.evict(key)

    async def aclose(self) -> None:
        """Close all values, used or not."""
        while self._places:
            key, place = next(iter(self._places.items()))
            self._remove(key)
            value, place.value = place.value, None
            if value is not None:
                await self._close_quietly(value)
