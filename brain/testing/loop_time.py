"""Virtual time on an asyncio event loop that already runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import anyio.to_thread


class LoopTime:
    """Stands in for ``loop.time``: real time plus what was skipped, or standing still.

    It stays on the loop when the fake clock is left, as timers set meanwhile count by it: time
    then runs on from where it stands.
    """

    def __init__(self, real: Callable[[], float]) -> None:
        self._real = real
        self._offset = 0.0
        self._stopped: float | None = None

    def __call__(self) -> float:
        """Seconds, as ``loop.time`` tells them."""
        return self._real() + self._offset if self._stopped is None else self._stopped

    @property
    def stopped(self) -> bool:
        """Whether time stands still."""
        return self._stopped is not None

    def stop(self) -> None:
        """Stand still."""
        self._stopped = self()

    def go_on(self) -> None:
        """Run on at the real pace, from here."""
        if self._stopped is not None:
            self._offset = self._stopped - self._real()
            self._stopped = None

    def advance(self, seconds: float) -> None:
        """Skip ``seconds``."""
        if self._stopped is None:
            self._offset += seconds
        else:
            self._stopped += seconds


@contextmanager
def faked_loop(loop: asyncio.AbstractEventLoop, threshold: float) -> Iterator[LoopTime]:
    """Have time on ``loop`` stand still, and jump to the next timer when the loop would wait.

    The loop asks its selector to wait for I/O no longer than until the next timer; that is where
    it is told that this time has passed.

    Raises:
        RuntimeError: Not an event loop of the standard library, or its time is faked already.
    """
    selector: Any = getattr(loop, "_selector", None)
    if not isinstance(loop, asyncio.BaseEventLoop) or not hasattr(selector, "select"):
        raise RuntimeError(
            f"fake_clock() does not know {type(loop).__name__}: use asyncio's own event loop in "
            "tests of timeouts"
        )
    now: Any = loop.time
    if not isinstance(now, LoopTime):
        now = LoopTime(loop.time)
        loop.time = now  # type: ignore[method-assign]
    if now.stopped:
        raise RuntimeError("fake_clock() is entered already on this event loop")
    threads, wait = _Threads(loop), selector.select

    def select(timeout: float | None = None) -> Any:
        if timeout is None or timeout <= 0:
            return wait(timeout)
        if threads.at_work():
            began = time.monotonic()
            events = wait(timeout)
            now.advance(time.monotonic() - began)
            return events
        events = wait(min(threshold, timeout))
        if not events:
            now.advance(timeout)
        return events

    now.stop()
    selector.select = select
    try:
        with threads:
            yield now
    finally:
        del selector.select
        now.go_on()


class _Threads:
    """Knows whether functions run in worker threads: anyio's, or those of ``run_in_executor``."""

    def __init__(self, loop: Any) -> None:
        self._limiter = anyio.to_thread.current_default_thread_limiter()
        self._loop = loop
        self._run = loop.run_in_executor
        self._count = 0

    def at_work(self) -> bool:
        return self._count > 0 or self._limiter.borrowed_tokens > 0

    def __enter__(self) -> Self:
        self._loop.run_in_executor = self._counted
        return self

    def __exit__(self, *exc: object) -> None:
        del self._loop.run_in_executor

    def _counted(self, *args: Any) -> Any:
        future = self._run(*args)
        self._count += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        self._count -= 1
