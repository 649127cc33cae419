"""Several pieces of work at once inside one state, such as one model call for each of ten ideas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

import anyio

from agent_brain.states.aclosing import closing
from agent_brain.states.background import live
from agent_brain.states.events import Event
from agent_brain.states.model_request import Question
from agent_brain.tools.aio import maybe_await

T = TypeVar("T")
Report: TypeAlias = Callable[[str | Event], None]
Work: TypeAlias = Callable[[Report], Awaitable[T]]


class Together(Generic[T]):
    """Work that is done at once; what the pieces of work report streams as it comes.

    The first that fails cancels the others; what the model calls that had ended by then cost is
    reported all the same.

    Attributes:
        results: The result of each piece, in order, once :meth:`events` has ended.

    Args:
        works: Async functions that are given where to report what is to be streamed.
    """

    def __init__(self, works: Sequence[Work[T]]) -> None:
        self.works = works
        self.results: list[T] = []

    async def events(self) -> AsyncGenerator[str | Event, None]:
        """Do the work, and yield what it reports.

        Raises:
            Exception: The error of the first piece that failed.
        """
        async with closing(live(self._do_all)) as reported:
            async for item in reported:
                yield item

    async def _do_all(self, report: Report) -> None:
        results: dict[int, T] = {}
        errors: list[Exception] = []

        async def do(index: int, work: Work[T]) -> None:
            try:
                results[index] = await work(report)
            except Exception as error:
                errors.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for index, work in enumerate(self.works):
                group.start_soon(do, index, work)
        if errors:
            raise errors[0]
        self.results = [results[index] for index in range(len(self.works))]


async def ask_aside(question: Question[T], report: Report) -> T:
    """The answer to ``question``; what would stream is reported instead."""
    async with closing(question.events()) as events:
        async for event in events:
            report(event)
    return question.answer


settle = maybe_await  # its former name
