"""A lock that outlives event loops."""

from __future__ import annotations

from collections import deque

import anyio


class Lock:
    """A fair lock, used with ``async with``.

    Unlike an :class:`anyio.Lock` it may be used in several event loops, one after the other, as
    ``Brain.run_sync`` uses a memory. A lock that is free is taken without a turn of the event loop.
    """

    __slots__ = ("_held", "_waiting")

    def __init__(self) -> None:
        self._held = False
        self._waiting: deque[anyio.Event] = deque()

    async def __aenter__(self) -> None:
        if not self._held:
            self._held = True
            return
        turn = anyio.Event()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():  # it was given the lock, and is cancelled
                self._pass_on()
            else:
                self._waiting.remove(turn)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._held = False
