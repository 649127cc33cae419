"""Concurrent work inside one state, such as one model call for each of ten ideas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import anyio

from agent_brain.common.aio import is_stray_cancellation
from agent_brain.common.pool import work_off
from agent_brain.common.values import check_count
from agent_brain.memories.runs.work import work_here
from agent_brain.states.aclosing import close_stream
from agent_brain.states.background import live
from agent_brain.states.errors import (
    LimitReachedError,
    StateCancelledError,
    StateDefinitionError,
)
from agent_brain.states.events import Event
from agent_brain.states.work import Work, WorkContext, perform, position_of, run_of
from agent_brain.tools.stubborn import ended_when_cancelled

T = TypeVar("T")
Report: TypeAlias = Callable[[str | Event], None]
Piece: TypeAlias = Work | Callable[[Report], Awaitable[T]]


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

        def count(item: str | Event | _Paced) -> None:
            event = item.event if isinstance(item, _Paced) else item
            if context is not None and isinstance(event, Event):
                context.count_unread(event)

        self.results = []
        items = live(partial(self._do_all, context), unread=count)
        try:
            async for item in items:
                if isinstance(item, _Paced):
                    yield item.event
                    item.read.set()
                else:
                    yield item
        finally:
            await items.aclose()

    async def _do_all(
        self, context: WorkContext | None, report: Callable[[str | Event | _Paced], None]
    ) -> None:
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


class _Paced:
    """An event, and whether it was read."""

    __slots__ = ("event", "read")

    def __init__(self, event: str | Event) -> None:
        self.event = event
        self.read = anyio.Event()


async def _do(
    work: Piece[T],
    context: WorkContext | None,
    report: Callable[[str | Event | _Paced], None],
) -> T:
    if not isinstance(work, Work):
        given = work(report)
        if not isinstance(given, Awaitable):
            raise StateDefinitionError(f"Together([{work!r}]): the function is not async")
        name = getattr(work, "__name__", type(work).__name__)
        doing = ended_when_cancelled(given, f"function {name!r}")
        return await work_here(run_of(context), doing)
    events = perform(work, context)
    try:
        async for event in events:
            paced = _Paced(event)
            report(paced)
            await paced.read.wait()
    finally:
        await close_stream(events)
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
