"""How many calls of a tool may run at once, and how many may begin in a span of time."""

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
    """``"10/min"``, ``"3/10s"`` or ``(calls, seconds)`` as calls and seconds.

    Raises:
        ValueError: It is neither, or not above 0.
    """
    if isinstance(rate, str):
        match = _RATE.fullmatch(rate.strip())
        if match is None:
            raise ValueError(f"rate={rate!r} is no rate: write it as '10/min' or '3/10s'")
        rate = int(match[1]), float(match[2] or 1) * _SECONDS[match[3]]
    calls, seconds = rate
    if calls < 1 or not seconds > 0:
        raise ValueError(f"rate={rate!r}: at least one call in more than 0 seconds")
    return calls, float(seconds)


class Limiter:
    """``async with limiter:`` waits until another call may run.

    One limiter counts for the whole process: calls on several event loops and in several threads
    share it. Who waits longest goes first.

    Args:
        max_concurrency: How many calls may run at once.
        rate: How many calls may begin in so many seconds (any span of that length).
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
        """The moment at which a call that is asked for ``now`` may begin; it counts from then on.

        A call that is cancelled while it waits has used up its turn.
        """
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
            if not gone:  # the place was given to this call just before it was cancelled
                self._give_place()
            raise

    def _give_place(self) -> None:
        """Hand the place to the call that has waited longest, or put it back."""
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
    """Let the waiter on the loop of ``token`` go on; False if that loop is no more."""
    if token == current_token():
        turn.set()
        return True
    native = token.native_token
    call = getattr(native, "call_soon_threadsafe", None) or getattr(native, "run_sync_soon", None)
    try:
        assert call is not None
        call(turn.set)
    except RuntimeError:  # it was closed: nobody waits there any more
        return False
    return True
