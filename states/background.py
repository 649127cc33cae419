"""Background tasks whose reports a generator yields.

An async generator must not hold a task group or a cancel scope open across a ``yield``: whoever
iterates may stop at any item, continue in another task, or never return. So the work runs in a task
of its own on the event loop; the generator only waits for it, and ends it when it is closed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import anyio

from agent_brain.common.aio import in_trio

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
Report: TypeAlias = Callable[[T], None]

BACKLOG = 256  # items that wait to be taken before any is dropped

_running: set[asyncio.Task[None]] = set()  # the loop itself keeps weak references only


class BackgroundTask:
    """A task that is independent of the task that started it and is ended by its owner.

    Args:
        work: What it does.

    Attributes:
        error: What ``work`` raised, once it has ended.
    """

    __slots__ = ("_ended", "_scope", "_work", "error")

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self.error: BaseException | None = None
        EventLoop().spawn(self._run)

    @property
    def ended(self) -> bool:
        """Whether the work has ended."""
        return self._ended.is_set()

    async def aclose(self) -> None:
        """Cancel the work if it still runs, and wait until it has ended."""
        if not self.ended:
            self._scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._ended.wait()

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._work()
        except BaseException as error:  # raised again where the work is waited for
            self.error = error
        finally:
            self._ended.set()


class EventLoop:
    """The running event loop, asyncio's or trio's: start tasks on it, and call it from threads."""

    __slots__ = ("_loop", "_thread", "_trio")

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._trio: Any = None
        if in_trio():
            import trio

            self._trio = trio.lowlevel.current_trio_token()
        else:
            import asyncio

            self._loop = asyncio.get_running_loop()

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start ``work``, which must not raise, as a task; call it on the loop's own thread."""
        if self._loop is None:
            import trio

            trio.lowlevel.spawn_system_task(work, context=copy_context())
        else:
            task = self._loop.create_task(work())
            _running.add(task)
            task.add_done_callback(_running.discard)

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call ``function`` on the loop; from any thread.

        Raises:
            RuntimeError: The loop is closed.
        """
        if self._loop is None:
            self._trio.run_sync_soon(function)
        else:
            self._loop.call_soon_threadsafe(function)

    @property
    def here(self) -> bool:
        """Whether this is the thread of the loop."""
        return threading.get_ident() == self._thread


async def live(
    work: Callable[[Report[T]], Awaitable[None]],
    *,
    may_drop: Callable[[T], bool] | None = None,
    unread: Callable[[T], None] | None = None,
) -> AsyncGenerator[T, None]:
    """Run ``work`` in its own task; yield what it reports as it is reported.

    Closing the generator cancels the work and waits until it has ended.

    Args:
        work: Takes a function that reports an item. The function never blocks and may be called
            from any thread; what it is given is kept until it is asked for.
        may_drop: Returns whether an item may be dropped, oldest first, when more than ``BACKLOG``
            wait.
        unread: Called with each item that was reported and not yielded when it is closed.

    Raises:
        BaseException: What ``work`` raised, after everything that it reported; also while it is
            closed.
    """
    reports = _Reports[T](may_drop)

    async def perform() -> None:
        try:
            await work(reports.add)
        finally:
            reports.wake()

    task = BackgroundTask(perform)
    try:
        while True:
            reports.sleep()
            for item in reports.take():
                yield item
            if task.ended and not reports.items:
                break
            await reports.wait()
    except GeneratorExit:
        await task.aclose()
        if isinstance(task.error, Exception):
            raise task.error from None
        raise
    finally:
        await task.aclose()
        if unread is not None:
            for item in reports.take():
                unread(item)
    if task.error is not None:
        raise task.error


class _Reports(Generic[T]):
    """Items that were reported and not yet taken."""

    __slots__ = ("_event", "_lock", "_loop", "_may_drop", "items")

    def __init__(self, may_drop: Callable[[T], bool] | None) -> None:
        self.items: deque[T] = deque()
        self._may_drop = may_drop
        self._loop = EventLoop()
        self._lock = threading.Lock()
        self._event = anyio.Event()

    def add(self, item: T) -> None:
        with self._lock:
            if len(self.items) >= BACKLOG and self._may_drop is not None and self._may_drop(item):
                self._drop_oldest(self._may_drop)
            self.items.append(item)
        self.wake()

    def _drop_oldest(self, may_drop: Callable[[T], bool]) -> None:
        for index, item in enumerate(self.items):
            if may_drop(item):
                del self.items[index]
                return

    def take(self) -> Iterator[T]:
        while self.items:
            with self._lock:
                item = self.items.popleft()
            yield item

    def wake(self) -> None:
        if self._loop.here:
            self._event.set()
        else:
            self._loop.call_soon(self._wake_here)

    def _wake_here(self) -> None:
        self._event.set()

    def sleep(self) -> None:
        """From now on, :meth:`wait` waits for what is reported next."""
        if self._event.is_set():
            self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()
