"""Limits on the concurrency and the rate of calls, and of what they use."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from dataclasses import dataclass

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
    try:
        calls, seconds = rate
        enough = calls >= 1 and seconds > 0
    except (TypeError, ValueError):
        raise ValueError(f"rate={rate!r} is not a rate: write '10/min' or '3/10s'") from None
    if not enough:
        raise ValueError(f"rate={rate!r}: at least one call in more than 0 seconds")
    return calls, float(seconds)


@dataclass(slots=True, eq=False)
class Turn:
    """A turn of a call: when it may begin, on the clock of :func:`time.monotonic`.

    Attributes:
        moment: The time.
        amount: What it uses of the rate: 1 call, or a number of tokens.
    """

    moment: float
    amount: int


class Limiter:
    """``async with limiter:`` waits until another call may run.

    Calls on all event loops and threads of the process share it, first come, first served.

    Args:
        max_concurrency: How many may run at once; None for any number.
        rate: How much may begin within a number of seconds, as :func:`read_rate` returns it.
    """

    def __init__(
        self, max_concurrency: int | None = None, rate: tuple[int, float] | None = None
    ) -> None:
        self._free = max_concurrency
        self._rate = rate
        self._turns: deque[Turn] = deque()  # those to come, and those that still count
        self._waiting: deque[tuple[EventLoopToken, anyio.Event]] = deque()
        self._lock = threading.Lock()

    async def __aenter__(self) -> None:
        if self._free is not None:
            await self._take_place()
        try:
            await self.take_turn()
        except BaseException:
            self.leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    async def take_turn(self, amount: int = 1) -> Turn | None:
        """Wait for a turn of the rate; a call that is cancelled before its turn gives it back."""
        if self._rate is None:
            return None
        turn = self.reserve(time.monotonic(), amount)
        try:
            await anyio.sleep(max(0.0, turn.moment - time.monotonic()))
        except BaseException:
            self._give_back(turn)
            raise
        return turn

    def _give_back(self, turn: Turn) -> None:
        with self._lock:
            if turn.moment > time.monotonic():
                self._turns.remove(turn)

    def reserve(self, now: float, amount: int = 1) -> Turn:
        """Reserve a turn: the first in which so much is left of the rate, or all of it."""
        assert self._rate is not None
        most, seconds = self._rate
        with self._lock:
            turns = self._turns
            while turns and turns[0].moment + seconds <= now:
                turns.popleft()
            moment, used = max(now, turns[-1].moment) if turns else now, amount
            for before in reversed(turns):
                used += before.amount
                if used > most:
                    moment = max(moment, before.moment + seconds)
                    break
            turn = Turn(moment, amount)
            turns.append(turn)
        return turn

    def correct(self, turn: Turn, amount: int) -> None:
        """Set what a turn has used, once that is known."""
        with self._lock:
            turn.amount = amount

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
                self.leave()
            raise

    def leave(self) -> None:
        """End a call: pass its place to the one that has waited longest, or free it."""
        if self._free is None:
            return
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                token, turn = self._waiting.popleft()
            if wake(token, turn):
                return


def wake(token: EventLoopToken, turn: anyio.Event) -> bool:
    """Set an event on the loop of ``token``; return False if that loop has been closed."""
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
