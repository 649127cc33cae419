"""Limits on the concurrency and the rate of a tool's calls."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from types import TracebackType

import anyio
from anyio.lowlevel import EventLoopToken, current_token

_RATE = re.compile(r"(\d+)\s*(?:/|per)\s*(\d+(?:\.\d+)?)?\s*(s|sec|second|min|minute|h|hour|day)s?")
_SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_SECONDS["day"] = 86_400


def read_rate(rate: str | tuple[int, float]) -> tuple[int, float]:
    """Return ``"10/min"``, ``"3/10s"`` or ``(calls, seconds)`` as calls and seconds."""
    if isinstance(rate, str):
        match = _RATE.fullmatch(rate.strip())
        if match is None:
            raise ValueError(f"rate={rate!r} is not a rate: write '10/min' or '3/10s'")
        rate = int(match[1]), float(match[2] or 1) * _SECONDS[match[3]]
    calls, seconds = rate
    if calls < 1 or not seconds > 0:
        raise ValueError(f"rate={rate!r}: at least one call in more than 0 seconds")
    return calls, float(seconds)


class Limiter:
    """``async with limiter:`` waits until another call may run.

    Calls on all event loops and threads of the process share it, first come, first served.
    """

    def __init__(
        self, max_concurrency: int | None = None, rate: tuple[int, float] | None = None
    ) -> None:
        self._free = max_concurrency
        self._rate = rate
        self._begun: deque[float] = deque(maxlen=rate[0] if rate else 0)
        self._waiting: deque[tuple[EventLoopToken, anyio.Event]] = deque()
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        if self._free is not None:
            await self._take_place()
        if self._rate is not None:
            try:
                await anyio.sleep(max(0.0, self.reserve(time.monotonic()) - time.monotonic()))
            except BaseException:
                self._give_place()
                raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._give_place()

    def reserve(self, now: float) -> float:
        """Reserve a turn, which a cancelled call does not give back, and return when it begins."""
        assert self._rate is not None
        calls, seconds = self._rate
        with self._lock:
            full = len(self._begun) == calls
            moment = max(now, self._begun[0] + seconds) if full else now
            self._begun.append(moment)
        return moment

    async def _take_place(self) -> None:
        assert self._free is not None
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            turn = anyio.Event()
            waiter = (current_token(), turn)
            self._waiting.append(waiter)
        try:
            await turn.wait()
        except BaseException:
            with self._lock:
                gone = waiter in self._waiting
                if gone:
                    self._waiting.remove(waiter)
            if not gone:  # this call got its place just before it was cancelled
                self._give_place()
            raise

    def _give_place(self) -> None:
        """Pass the place to the call that has waited longest, or free it."""
        if self._free is None:
            return
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                token, turn = self._waiting.popleft()
            if _wake(token, turn):
                return


def _wake(token: EventLoopToken, turn: anyio.Event) -> bool:
    """Wake the waiter on the loop of ``token``; return False if that loop has been closed."""
    if token == current_token():
        turn.set()
        return True
    native = token.native_token
    call = getattr(native, "call_soon_threadsafe", None) or getattr(native, "run_sync_soon", None)
    try:
        assert call is not None
        call(turn.set)
    except RuntimeError:  # closed
        return False
    return True
