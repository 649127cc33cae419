"""Work: what a state yields to have it done, streamed and closed while the state waits.

A state yields a :class:`Work`; the Brain does it, streams its text and events, closes it, and
continues the state. An error of the work is raised at the ``yield``::

    call = self.llm.call(messages)
    yield call
    call.text
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Sequence,
)
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

import anyio

from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import NOWHERE, Event, Position
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

if TYPE_CHECKING:
    from agent_brain.memories.runs.work import RunWork
    from agent_brain.states.pipeline import Pipeline


T = TypeVar("T")


TURN_SECONDS = 0.01


@asynccontextmanager
async def closing(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Close a stream at the end: as :func:`contextlib.aclosing`, for any iterator.

    Async generators are closed; an iterator without ``aclose`` is left as it is.
    """
    try:
        yield stream
    finally:
        await close_stream(stream)


async def close_stream(stream: object) -> None:
    """Close an async generator; other iterators are left as they are."""
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()


class Pace:
    """Yields to the event loop regularly, in a loop that may never wait otherwise.

    A loop over a stream whose pieces are all ready would otherwise block every timer, such as the
    time limit of the run.
    """

    __slots__ = ("_turned",)

    def __init__(self) -> None:
        self._turned = anyio.current_time()

    async def keep(self) -> None:
        """Yield to the event loop if it has not run for ``TURN_SECONDS``."""
        now = anyio.current_time()
        if now - self._turned > TURN_SECONDS:
            await anyio.lowlevel.checkpoint()
            self._turned = anyio.current_time()


class OutOfTimeError(Exception):
    """The time of a :class:`Clock` is up."""


class Clock:
    """The time left for a piece of work, without the time of the consumer of its events.

    Args:
        left: Seconds.
        others: Clocks that run whenever this one does.
    """

    __slots__ = ("_left", "_others")

    def __init__(self, left: float, *others: Clock) -> None:
        self._left = left
        self._others = others

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return min([self._left, *(other.left for other in self._others)])

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Return the result of ``awaitable``.

        Raises:
            OutOfTimeError: The time is up; ``awaitable`` was cancelled.
        """
        start = anyio.current_time()
        try:
            with anyio.move_on_after(max(self.left, 0)):
                return await awaitable
        finally:
            self._spend(anyio.current_time() - start)
        raise OutOfTimeError

    def _spend(self, seconds: float) -> None:
        self._left -= seconds
        for other in self._others:
            other._spend(seconds)


class WorkContext(Protocol):
    """What a run provides to the work of its states.

    Attributes:
        at: The step that yielded the work.
        key: The names of the states and branches around the net, which tell it from all others.
        memory: The memory of the run.
        watched: Whether somebody reads all events of the run.
        pauses: Whether a person is asked about calls that may have taken effect before a crash.
        asks: Whether the net can wait for a person: its memory will be found again.
    """

    at: Position
    key: str
    memory: Memory
    watched: bool
    pauses: bool
    asks: bool

    @property
    def hooks(self) -> Pipeline | None:
        """The hooks around model calls and tool calls, if there are any."""

    @property
    def sink(self) -> Callable[[Event], object] | None:
        """Takes the events of tool calls that nobody reads as they happen; None: they are read."""

    def delegate(self, order: Any, *, part: bool = False) -> AsyncGenerator[Event, None]:
        """Run the nets of a :class:`~agent_brain.nets.Delegate`.

        Args:
            order: The nets.
            part: Whether it is part of other work, so its answer is not the answer of the state.
        """
        ...

    def count_unread(self, event: Event) -> None:
        """Count the model calls in an ``event`` that nobody reads any more."""

    def check_budget(self) -> None:
        """Check that another model call may begin.

        Raises:
            LimitReachedError: A limit is reached or a budget used up: the run ends after the step.
        """

    def reserve_calls(self) -> bool:
        """Take places for the tool calls that are requested in the memory.

        Returns:
            Whether :meth:`release_calls` must be called.

        Raises:
            LimitReachedError: There are too few: the run ends after the step.
        """
        ...

    def release_calls(self) -> None:
        """Give back the places of tool calls that did not come to their ends."""


class Work:
    """Base class of what a state yields to have it done while the state waits.

    Attributes:
        clock: Limits the time of the work; None for no limit.
        results_of_it: The attributes that exist once it was done. Reading one of them before is a
            StateDefinitionError.
    """

    clock: Clock | None = None
    results_of_it: ClassVar[frozenset[str]] = frozenset()

    if not TYPE_CHECKING:  # a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name in self.results_of_it:
                raise StateDefinitionError(
                    f"{kind}.{name} was read before there is a result: yield it first, as "
                    "'yield call' in State.run"
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def events(self, context: WorkContext | None = None) -> AsyncGenerator[str | Event, None]:
        """Do the work; yield text and events meanwhile.

        The Brain calls it. Code that calls it by hand must close the generator.

        Args:
            context: The run; None outside of one.
        """
        raise NotImplementedError

    @property
    def result(self) -> Any:
        """The result of the work, for work that consists of several pieces of work."""
        return None


StreamItem: TypeAlias = str | Event | Work
"""What ``State.run`` yields."""


def perform(work: Work, context: WorkContext | None) -> AsyncGenerator[str | Event, None]:
    """Return the events of ``work``, limited by its clock."""
    events = work.events(context)
    return events if work.clock is None else relay(events, work.clock.wait)


def position_of(context: WorkContext | None) -> Position:
    """Return where the work is done."""
    return NOWHERE if context is None else context.at


def run_of(context: WorkContext | None) -> RunWork | None:
    """Return the run for which functions work that are part of the work; None outside of one."""
    return None if context is None else context.memory.run_work


def key_in_step(context: WorkContext, name: str) -> str:
    """Return the key in ``control.ended`` under which work keeps something until the step ends."""
    return "/".join(filter(None, (context.key, context.at.state, name)))


async def next_item(stream: AsyncIterator[T], failed: Exception | None) -> T:
    """Return the next item of a state's stream.

    Args:
        stream: What ``State.run`` returned.
        failed: An error of the work that the state waits for; it is raised at the ``yield``.

    Raises:
        StopAsyncIteration: The stream has ended.
    """
    if failed is None:
        return await anext(stream)
    if not isinstance(stream, AsyncGenerator):
        raise failed
    item: T = await stream.athrow(failed)
    return item


async def relay(
    stream: AsyncIterator[T],
    take: Callable[[Coroutine[Any, Any, T]], Awaitable[T]],
    close: Callable[[object], Awaitable[None]] = close_stream,
) -> AsyncGenerator[T, None]:
    """Yield the items of ``stream``; close it at the end.

    An error that is raised at the ``yield``, of the work that a state waits for, is raised in
    ``stream``.

    Args:
        stream: The items.
        take: Awaits the next item and returns it, such as :meth:`Clock.wait`.
        close: Closes ``stream``.
    """
    failed: Exception | None = None
    try:
        while True:
            try:
                item = await take(next_item(stream, failed))
            except StopAsyncIteration:
                return
            failed = None
            try:
                yield item
            except Exception as error:
                failed = error
    finally:
        await close(stream)


class NestedRun(Protocol):
    """A nested call, and its outcome once the Brain has run it."""

    call_id: str
    memory: Memory
    answer: str
    stop_reason: str | None
    error: Exception | None


OnEnd: TypeAlias = Callable[[Any], Awaitable[Iterable[Event]]]  # takes the NestedRun


class NestedTool(BaseTool):
    """A tool whose calls are branches of the run: events, limits and cancellation reach into them.

    Outside of a run it is a tool like others, through ``execute``.
    """

    nested: ClassVar[bool] = True

    @abstractmethod
    async def prepare(self, name: str, action: Action, memory: Memory) -> NestedRun:
        """A branch that is ready to run, on a memory of its own.

        Args:
            name: The name of the branch in the path of its events.
            action: The call, with arguments that fit the schema.
            memory: The memory of the net that calls.
        """

    @staticmethod
    @abstractmethod
    def order(
        runs: Sequence[NestedRun],
        *,
        beside: AsyncIterator[Event],
        on_end: OnEnd,
        max_concurrency: int | None = None,
    ) -> Work:
        """Return the work that runs the branches; failures are reported on them.

        Args:
            runs: The branches.
            beside: Events of the other calls of the round, which stream meanwhile.
            on_end: Called when a branch has ended; the events that it returns stream then.
            max_concurrency: How many run at once; None for all.
        """
