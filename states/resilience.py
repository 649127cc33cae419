"""A state with hooks, a time limit and retries around it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from contextlib import aclosing
from enum import Enum
from typing import TypeAlias

import anyio

from agent_brain.common.aio import maybe_await
from agent_brain.common.errors import FinalError
from agent_brain.common.values import is_amount, is_count, takes
from agent_brain.memories.base import Memory
from agent_brain.states.base import State, Target, seal
from agent_brain.states.errors import (
    LLMAuthenticationError,
    LLMBadRequestError,
    LLMRefusalError,
    Refused,
    StateDefinitionError,
    StateTimeoutError,
)
from agent_brain.states.events import Event, ResponseStarted, UsageReported
from agent_brain.states.work import (
    Clock,
    OutOfTimeError,
    StreamItem,
    Work,
    WorkContext,
    closing,
    next_item,
    perform,
)
from agent_brain.tools.errors import InputNeeded, SleepNeeded

Hook: TypeAlias = Callable[[Memory], Awaitable[None] | None]
RetryOn: TypeAlias = (
    type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool | Awaitable[bool]]
)
ErrorHook: TypeAlias = Callable[[Memory, Exception], bool | Awaitable[bool | None] | None]


NOT_RETRIED: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    InputNeeded,
    LLMAuthenticationError,
    LLMBadRequestError,
    LLMRefusalError,
    LookupError,
    NameError,
    NotImplementedError,
    Refused,
    SleepNeeded,
    StateDefinitionError,
    TypeError,
)
"""Errors that a retry does not fix: bugs, and requests that a provider always refuses."""


class GuardedState(State):
    """A wrapper around a state, with the same edges.

    ::

        GuardedState(ReasoningState(llm, …), timeout=30, retries=2)

    Args:
        wrapped: The state.
        before: Called before it runs.
        after: Called after it ran without an error.
        on_error: Called when it raised; if it returns True, the error is ignored and the run
            continues as the state proposes.
        timeout: Maximum time in seconds, excluding the time of the consumer.
        retries: Number of retries if it raised before it streamed anything but the usage of model
            calls. What it has written to the memory stays, so states should write last, as the
            built-in ones do.
        retry_on: The errors to retry after: classes of errors, or a function of the error, sync or
            async, that returns whether to retry. Default: all but :data:`NOT_RETRIED`.
        backoff: Seconds before the first retry, doubled each time.

    Raises:
        StateTimeoutError: While running: the time is up.
    """

    def __init__(
        self,
        wrapped: State,
        *,
        before: Hook | None = None,
        after: Hook | None = None,
        on_error: ErrorHook | None = None,
        timeout: float | None = None,
        retries: int = 0,
        retry_on: RetryOn | None = None,
        backoff: float = 0.5,
    ) -> None:
        if not isinstance(wrapped, State):
            raise StateDefinitionError(f"GuardedState takes a state, not {wrapped!r}")
        for option, hook in (("before", before), ("after", after), ("on_error", on_error)):
            given = ("memory", "error") if option == "on_error" else ("memory",)
            if hook is not None and not (_is_function(hook) and takes(hook, *given)):
                raise StateDefinitionError(
                    f"{option}={hook!r}: give a function of the {' and the '.join(given)}, or None"
                )
        if timeout is not None and not is_amount(timeout):
            raise StateDefinitionError(f"timeout={timeout!r} must be above 0 seconds, or None")
        if not is_count(retries, least=0) or not is_amount(backoff, zero=True):
            raise StateDefinitionError("retries= and backoff= must be numbers of at least 0")
        if retry_on is not None and not (_are_errors(retry_on) or _is_function(retry_on)):
            raise StateDefinitionError(
                f"retry_on={retry_on!r}: give a class of errors, a tuple of them, or a function of "
                "an error"
            )
        self.wrapped = wrapped
        self.before = before
        self.after = after
        self.on_error = on_error
        self.timeout = timeout
        self.retries = retries
        self.retry_on = retry_on
        self.backoff = backoff
        self.parallel = wrapped.parallel
        seal(wrapped)

    @property
    def subnets(self) -> object:
        """The nets inside the wrapped state."""
        return getattr(self.wrapped, "subnets", {})

    @property
    def output_type(self) -> object:
        """The output type of the wrapped state."""
        return getattr(self.wrapped, "output_type", None)

    async def on_enter(self, memory: Memory) -> None:
        """Enter the wrapped state."""
        await self.wrapped.on_enter(memory)

    async def on_exit(self, memory: Memory) -> None:
        """Exit the wrapped state."""
        await self.wrapped.on_exit(memory)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the wrapped state."""
        if self.before is not None:
            await maybe_await(self.before(memory))
        asked = memory.control.asked
        for attempt in range(self.retries + 1):
            clock = None if self.timeout is None else Clock(self.timeout)
            failed: Exception | None = None
            streamed = False
            try:
                async with closing(self.wrapped.run(memory)) as items:
                    while True:
                        try:
                            item = await self._next(items, failed, clock)
                        except StopAsyncIteration:
                            break
                        failed = None
                        try:
                            yield item
                        except Exception as error:  # of the work that the state waits for
                            failed = error
                        streamed = streamed or _has_streamed(item)
                break
            except FinalError:
                raise
            except Exception as error:
                left = attempt < self.retries and not streamed
                if left and await self._is_retried(error):
                    await anyio.sleep(self.backoff * 2**attempt)
                    memory.control.asked = asked  # it begins again with its first question
                elif (
                    self.on_error is None
                    or await maybe_await(self.on_error(memory, error)) is not True
                ):
                    raise
                else:
                    return
        if self.after is not None:
            await maybe_await(self.after(memory))

    async def _next(
        self, items: AsyncIterator[StreamItem], failed: Exception | None, clock: Clock | None
    ) -> StreamItem:
        """Return the next item of the wrapped state, within the time limit."""
        try:
            if clock is None:
                item = await next_item(items, failed)
            elif isinstance(failed, OutOfTimeError) and clock.left <= 0:
                raise failed
            else:
                item = await clock.wait(next_item(items, failed))
        except OutOfTimeError as error:
            raise StateTimeoutError(type(self.wrapped).__name__, self.timeout or 0) from error
        return _Watched(item, clock) if isinstance(item, Work) else item

    async def _is_retried(self, error: Exception) -> bool:
        retry_on = self.retry_on
        if retry_on is None:
            return not isinstance(error, NOT_RETRIED)
        if isinstance(retry_on, type | tuple):
            return isinstance(error, retry_on)
        return bool(await maybe_await(retry_on(error)))

    async def costs_nothing(self, memory: Memory) -> bool:
        """Return what the wrapped state returns."""
        return await self.wrapped.costs_nothing(memory)

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return what the wrapped state proposes."""
        return await self.wrapped.next_state(memory)

    def targets(self) -> Collection[Target] | None:
        """Return the targets of the wrapped state."""
        return self.wrapped.targets()


class _Watched(Work):
    """The work of a guarded state, within its time limit; records whether it has streamed."""

    def __init__(self, work: Work, clock: Clock | None = None) -> None:
        self.work = work
        self.clock = clock
        self.streamed = False

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[str | Event, None]:
        async with aclosing(perform(self.work, context)) as events:
            async for event in events:
                self.streamed = self.streamed or _has_streamed(event)
                yield event


def _has_streamed(item: StreamItem) -> bool:
    """Return whether ``item`` is more than a report of a model call."""
    if isinstance(item, _Watched):
        return item.streamed
    return not isinstance(item, ResponseStarted | UsageReported)


def _are_errors(value: object) -> bool:
    kinds = value if isinstance(value, tuple) else (value,)
    return bool(kinds) and all(isinstance(k, type) and issubclass(k, Exception) for k in kinds)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type)
