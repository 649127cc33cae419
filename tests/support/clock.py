"""A clock that jumps to the next timer when the event loop is idle, for tests of timeouts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import anyio
import anyio.to_thread

from agent_brain.common.aio import in_trio


class FakeClock:
    """The clock of an event loop inside a :func:`fake_clock` block."""

    def __init__(self, jump: Callable[[float], object]) -> None:
        self._jump = jump
        self._start = anyio.current_time()

    def time(self) -> float:
        """Return the time of the event loop in seconds."""
        return anyio.current_time()

    @property
    def elapsed(self) -> float:
        """Seconds since the block was entered."""
        return self.time() - self._start

    def advance(self, seconds: float) -> None:
        """Advance the time; timers that are due run when the caller next awaits."""
        if seconds < 0:
            raise ValueError(f"Time does not go backwards: advance({seconds!r})")
        self._jump(seconds)


@contextmanager
def fake_clock(*, threshold: float = 0.0) -> Iterator[FakeClock]:
    """Stop time while there is work, and jump to the next timer when there is none.

    Sleeps, timeouts and deadlines of the running event loop take no real time; ``time.time()`` and
    ``time.monotonic()`` do not change. On asyncio it patches the running loop; while functions run
    in worker threads, time passes normally. On trio the run must use a :func:`clock_backend`, and
    time stands still while functions run in worker threads.

    Args:
        threshold: Real seconds of idleness before time jumps, for tests with sockets or
            subprocesses.
    """
    if in_trio():
        with _on_trio(threshold) as clock:
            yield clock
    else:
        with faked_loop(asyncio.get_running_loop(), threshold) as loop_time:
            yield FakeClock(loop_time.advance)


@contextmanager
def _on_trio(threshold: float) -> Iterator[FakeClock]:
    import trio
    from trio.testing import MockClock

    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, MockClock):
        raise RuntimeError(
            "On trio, fake_clock() needs MockClock: let anyio_backend return clock_backend(…)"
        )
    before = clock.rate, clock.autojump_threshold
    run_sync, jump, running = anyio.to_thread.run_sync, clock._autojump, 0

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal running
        running += 1
        try:
            return await run_sync(*args, **options)
        finally:
            running -= 1

    def jump_if_idle() -> None:
        if not running:
            jump()

    anyio.to_thread.run_sync = counted  # type: ignore[assignment]
    clock._autojump = jump_if_idle  # type: ignore[method-assign]
    clock.rate, clock.autojump_threshold = 0.0, threshold
    try:
        yield FakeClock(clock.jump)
    finally:
        clock.rate, clock.autojump_threshold = before
        del clock._autojump
        anyio.to_thread.run_sync = run_sync


def clock_backend(name: str) -> tuple[str, dict[str, Any]]:
    """Return what the fixture ``anyio_backend`` must return for tests with :func:`fake_clock`."""
    if name != "trio":
        return name, {}
    from trio.testing import MockClock

    return name, {"clock": MockClock(rate=1)}


class LoopTime:
    """A replacement for ``loop.time`` that can be stopped and advanced.

    It stays on the loop after the block, because timers set inside use its time.
    """

    def __init__(self, real: Callable[[], float]) -> None:
        self._real = real
        self._offset = 0.0
        self._stopped: float | None = None

    def __call__(self) -> float:
        return self._real() + self._offset if self._stopped is None else self._stopped

    @property
    def stopped(self) -> bool:
        return self._stopped is not None

    def stop(self) -> None:
        self._stopped = self()

    def resume(self) -> None:
        if self._stopped is not None:
            self._offset = self._stopped - self._real()
            self._stopped = None

    def advance(self, seconds: float) -> None:
        if self._stopped is None:
            self._offset += seconds
        else:
            self._stopped += seconds


@contextmanager
def faked_loop(loop: asyncio.AbstractEventLoop, threshold: float) -> Iterator[LoopTime]:
    """Patch the selector: waiting for I/O until the next timer advances the time instead."""
    selector: Any = getattr(loop, "_selector", None)
    if not isinstance(loop, asyncio.BaseEventLoop) or not hasattr(selector, "select"):
        raise RuntimeError(f"fake_clock() does not support {type(loop).__name__}")
    now: Any = loop.time
    if not isinstance(now, LoopTime):
        now = LoopTime(loop.time)
        loop.time = now  # type: ignore[method-assign]
    if now.stopped:
        raise RuntimeError("fake_clock() is already active on this event loop")
    threads, wait = _Threads(loop), selector.select

    def select(timeout: float | None = None) -> Any:
        if timeout is None or timeout <= 0:
            return wait(timeout)
        if threads.busy():
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
        now.resume()


class _Threads:
    """Counts functions in worker threads: anyio's, and those of ``run_in_executor``."""

    def __init__(self, loop: Any) -> None:
        self._limiter = anyio.to_thread.current_default_thread_limiter()
        self._loop = loop
        self._run = loop.run_in_executor
        self._count = 0

    def busy(self) -> bool:
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
