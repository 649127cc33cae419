"""Concurrent work: several pieces inside one state, and tasks whose reports a generator yields.

An async generator must not hold a task group or a cancel scope open across a ``yield``: whoever
iterates may stop at any item, continue in another task, or never return. So the work runs in a task
of its own on the event loop; the generator only waits for it, and ends it when it is closed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import anyio

from agent_brain.common.aio import in_trio, is_stray_cancellation, work_off
from agent_brain.common.values import check_count
from agent_brain.memories.runs.work import work_here
from agent_brain.states.errors import LimitReachedError, StateCancelledError, StateDefinitionError
from agent_brain.states.events import Event
from agent_brain.states.work import Work, WorkContext, perform, position_of, run_of
from agent_brain.tools.stubborn import ended_when_cancelled

if TYPE_CHECKING:
    import asyncio


T = TypeVar("T")
Report: TypeAlias = Callable[[str | Event], None]
Piece: TypeAlias = Work | Callable[[Report], Awaitable[T]]
_Item: TypeAlias = tuple[str | Event, anyio.Event | None]  # set when it was read: the piece waits


class Together(Work, Generic[T]):
    """Concurrent work. Yield it from ``State.run``, then read ``results``.

    ::

        calls = [StructuredRequest(self.llm, [*messages, idea], Rating) for idea in ideas]
        together = Together(calls)
        yield together
        best = max(together.results, key=lambda rating: rating.score)

    All pieces stream while they run, and wait until their events are read. The first one that fails
    cancels the others, and its error is raised at the ``yield``; the usage of their model calls is
    still counted. At a limit of the run, those that run are completed, and no other begins.

    Attributes:
        results: The result of each piece, in order, once all have ended: the ``result`` of work,
            and what a function returned.

    Args:
        works: Work, such as ``llm.call(…)``, or async functions, which are given a function that
            streams text or an event. Nets run at once need memories of their own.
        max_concurrency: Maximum number of pieces at once, started in order; None for all of them.

    Raises:
        StateDefinitionError: Something that is not work or a function, or a wrong number.
    """

    results: list[T]
    results_of_it = frozenset({"results"})

    def __init__(self, works: Sequence[Piece[T]], *, max_concurrency: int | None = None) -> None:
        given: object = works
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise StateDefinitionError(f"Together({given!r}): pass a list of work or functions")
        for work in given:
            if not isinstance(work, Work) and (isinstance(work, type) or not callable(work)):
                raise StateDefinitionError(
                    f"Together([{work!r}]): pass work, such as llm.call(…), or async functions"
                )
        check_count(StateDefinitionError, "max_concurrency", max_concurrency, optional=True)
        self.works = works
        self.max_concurrency = max_concurrency

    @property
    def result(self) -> list[T]:
        """The results."""
        return self.results

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[str | Event, None]:
        """Do the work; yield its text and events."""

        def count(item: _Item) -> None:
            if context is not None and isinstance(item[0], Event):
                context.count_unread(item[0])

        self.results = []
        async with aclosing(live(partial(self._do_all, context), unread=count)) as items:
            async for event, read in items:
                yield event
                if read is not None:
                    read.set()

    async def _do_all(self, context: WorkContext | None, report: Callable[[_Item], None]) -> None:
        results: dict[int, T] = {}
        errors: list[Exception] = []

        async def do_one(place: tuple[int, Piece[T]]) -> None:
            index, work = place
            try:
                results[index] = await _do(work, context, report)
            except BaseException as error:
                failure = failure_of(error, position_of(context).state, type(work).__name__)
                if not isinstance(failure, Exception):
                    raise
                errors.append(failure)
                if not isinstance(failure, LimitReachedError):
                    scope.cancel()

        try:
            with anyio.CancelScope() as scope:
                await work_off(
                    enumerate(self.works),
                    do_one,
                    at_once=self.max_concurrency,
                    may_begin=lambda: not errors,  # at a limit those that run are completed
                )
        finally:
            if errors:
                raise errors[0]
        self.results = [results[index] for index in range(len(self.works))]


async def _do(work: Piece[T], context: WorkContext | None, report: Callable[[_Item], None]) -> T:
    if not isinstance(work, Work):
        given = work(lambda event: report((event, None)))
        if not isinstance(given, Awaitable):
            raise StateDefinitionError(f"Together([{work!r}]): the function is not async")
        name = getattr(work, "__name__", type(work).__name__)
        doing = ended_when_cancelled(given, f"function {name!r}")
        return await work_here(run_of(context), doing)
    async with aclosing(perform(work, context)) as events:
        async for event in events:
            read = anyio.Event()
            report((event, read))
            await read.wait()
    result: T = work.result
    return result


def failure_of(error: BaseException, state: str | None, kind: str) -> BaseException:
    """Return ``error``, or what to raise for a cancellation that is not meant for the run.

    Args:
        error: The error.
        state: Name of the state in the net.
        kind: What was running, for the message.
    """
    if isinstance(error, Exception) or not is_stray_cancellation(error):
        return error
    failure = StateCancelledError(state or "", kind)
    failure.__cause__ = error
    return failure


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
    work: Callable[[Callable[[T], None]], Awaitable[None]],
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
            may_drop = self._may_drop
            if len(self.items) >= BACKLOG and may_drop is not None and may_drop(item):
                oldest = next((at for at, each in enumerate(self.items) if may_drop(each)), None)
                if oldest is not None:
                    del self.items[oldest]
            self.items.append(item)
        self.wake()

    def take(self) -> Iterator[T]:
        while self.items:
            with self._lock:
                item = self.items.popleft()
            yield item

    def wake(self) -> None:
        if self._loop.here:
            self._event.set()
        else:
            self._loop.call_soon(self.wake)

    def sleep(self) -> None:
        """From now on, :meth:`wait` waits for what is reported next."""
        if self._event.is_set():
            self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()
