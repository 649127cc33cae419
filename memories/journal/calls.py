"""The calls of a journal in threads; those on a session run one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from agent_brain.memories.errors import JournalError

T = TypeVar("T")


@dataclass
class _Loop:
    """What orders the calls of one event loop."""

    limiter: CapacityLimiter
    turns: WeakValueDictionary[str, anyio.Lock] = field(default_factory=WeakValueDictionary)


class Calls:
    """Runs the calls of a journal in threads, on any event loop.

    A call that is cancelled has either finished or never starts, before the next call on the same
    session does anything.

    Args:
        most: How many of an event loop run at once.
        closed: What the error of a call says that comes after :meth:`close`.
    """

    def __init__(self, most: int, closed: str) -> None:
        self._most = most
        self._error = closed
        self._count = 0  # of those that run
        self._ended = threading.Condition()
        self._closed = False
        self._loop: RunVar[_Loop] = RunVar(f"journal_calls_{id(self)}")
        self._running: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()  # of the dictionary

    async def run(self, work: Callable[[], T], session: str | None = None) -> T:
        """Run ``work`` in a thread, after other calls on the same session."""
        loop = self._loop.get(None)
        if loop is None:
            self._loop.set(loop := _Loop(CapacityLimiter(self._most)))
        if session is None:
            return await to_thread.run_sync(self._count_in, work, limiter=loop.limiter)
        async with loop.turns.setdefault(session, anyio.Lock()):
            return await self._run_alone(work, session, loop.limiter)

    async def _run_alone(self, work: Callable[[], T], session: str, limiter: CapacityLimiter) -> T:
        # A task that asyncio cancels does not wait for its thread, and there may be other loops.
        with self._guard:
            running = self._running.setdefault(session, threading.Lock())
        abandoned = False

        def run() -> T:
            with running:
                if abandoned:
                    raise JournalError("The call was cancelled before it began")
                return self._count_in(work)

        try:
            return await to_thread.run_sync(run, limiter=limiter)
        except BaseException:
            abandoned = True
            raise

    def _count_in(self, work: Callable[[], T]) -> T:
        with self._ended:
            if self._closed:
                raise self.is_closed()
            self._count += 1
        try:
            return work()
        finally:
            with self._ended:
                self._count -= 1
                self._ended.notify_all()

    def close(self, patience: float) -> None:
        """Begin no call any more, and wait for the end of those that run.

        Args:
            patience: How long to wait, in seconds.
        """
        with self._ended:
            self._closed = True
            self._ended.wait_for(lambda: not self._count, patience)

    def is_closed(self) -> JournalError:
        """Return the error of a call that comes too late."""
        return JournalError(f"The {self._error}")
