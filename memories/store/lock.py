"""A lock that outlives event loops."""

from __future__ import annotations

import anyio


class Lock:
    """A fair lock, used with ``async with``.

    Unlike an :class:`anyio.Lock` it may be used in several event loops, one after the other, as
    ``Brain.run_sync`` uses a memory: it is created again whenever nobody holds it.

    Attributes:
        users: How many hold it or wait for it.
    """

    def __init__(self) -> None:
        self.users = 0
        self._lock: anyio.Lock | None = None

    async def __aenter__(self) -> None:
        if self._lock is None:
            self._lock = anyio.Lock(fast_acquire=True)
        self.users += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self.users -= 1
            self._lock = self._lock if self.users else None
            raise

    async def __aexit__(self, *_: object) -> None:
        assert self._lock is not None
        self._lock.release()
        self.users -= 1
        self._lock = self._lock if self.users else None
