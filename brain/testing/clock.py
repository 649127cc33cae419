"""Time that passes when nobody has anything else to do, so that tests of timeouts take none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from agent_brain.testing.loop_time import faked_loop


class FakeClock:
    """The clock of an event loop, for the length of a :func:`fake_clock` block."""

    def __init__(self, jump: Callable[[float], object]) -> None:
        self._jump = jump
        self._start = anyio.current_time()

    def time(self) -> float:
        """Seconds, as the event loop counts them."""
        return anyio.current_time()

    @property
    def elapsed(self) -> float:
        """Seconds that have passed since the block was entered."""
        return self.time() - self._start

    def advance(self, seconds: float) -> None:
        """Let time pass at once; what is due then runs when the caller next awaits.

        Raises:
            ValueError: Time does not go backwards.
        """
        if seconds < 0:
            raise ValueError(f"Time does not go backwards: advance({seconds!r})")
        self._jump(seconds)


@contextmanager
def fake_clock(*, threshold: float = 0.0) -> Iterator[FakeClock]:
    """Inside, time stands still while there is work, and then jumps to the next timer.

    Enter it in an async test: ``with fake_clock() as clock: …``. Sleeps, timeouts and deadlines of
    the running event loop (anyio's, asyncio's, trio's) take no real time; ``time.time()``,
    ``time.monotonic()`` and the dates of messages are not changed.

    On asyncio it works on the loop that runs, whoever started it: pytest-asyncio, anyio's plugin,
    ``asyncio.run``. While functions run in worker threads, as sync tools do, time passes as it
    really does. On trio the run must have been started with a clock that can be changed: see
    :func:`clock_backend`.

    Args:
        threshold: Real seconds in which nothing may happen before time jumps. Raise it for tests
            with sockets or subprocesses, which answer in real time, and on trio for tests with
            worker threads: 0.05, say.

    Raises:
        RuntimeError: The clock of this event loop cannot be changed, with what to do.
    """
    if _in_trio():
        with _on_trio(threshold) as clock:
            yield clock
    else:
        with faked_loop(asyncio.get_running_loop(), threshold) as loop_time:
            yield FakeClock(loop_time.advance)


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_task()


@contextmanager
def _on_trio(threshold: float) -> Iterator[FakeClock]:
    import trio
    from trio.testing import MockClock

    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, MockClock):
        raise RuntimeError(
            "fake_clock() needs a trio run with trio.testing.MockClock: with anyio's pytest plugin "
            'let the fixture anyio_backend return clock_backend("trio"), otherwise run '
            "trio.run(…, clock=MockClock(rate=1))"
        )
    before = clock.rate, clock.autojump_threshold
    clock.rate, clock.autojump_threshold = 0.0, threshold
    try:
        yield FakeClock(clock.jump)
    finally:
        clock.rate, clock.autojump_threshold = before


def clock_backend(name: str) -> tuple[str, dict[str, Any]]:
    """What anyio's fixture ``anyio_backend`` returns so that :func:`fake_clock` works in its tests.

    On trio the run gets a clock that goes as the real one does until ``fake_clock`` is entered; on
    asyncio nothing is needed. Make a new one for each test::

        @pytest.fixture(params=["asyncio", "trio"])
        def anyio_backend(request):
            return clock_backend(request.param)

    Args:
        name: ``"asyncio"`` or ``"trio"``.
    """
    if name != "trio":
        return name, {}
    from trio.testing import MockClock

    return name, {"clock": MockClock(rate=1)}
