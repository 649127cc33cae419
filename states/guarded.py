"""A state with something around it: hooks, a limit of time, another try."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from enum import Enum
from typing import TypeAlias

import anyio

from agent_brain.memories.base import Memory
from agent_brain.states.base import State, seal
from agent_brain.states.errors import StateDefinitionError, StateTimeoutError
from agent_brain.states.events import Event
from agent_brain.states.streams import closing

Hook: TypeAlias = Callable[[Memory], Awaitable[None] | None]
ErrorHook: TypeAlias = Callable[[Memory, Exception], bool | Awaitable[bool | None] | None]


class GuardedState(State):
    """Another state, guarded. It has the same edges, and is the same state to the net's picture.

    Args:
        wrapped: The state.
        before: Called before it runs.
        after: Called after it ran without an error.
        on_error: Called when it raised; returning True swallows the error and the run goes on as
            the state proposes.
        timeout: Seconds that it may take, consumers' time not counted.
        retries: How often to try again when it raised before it had streamed anything; what it
            wrote to the memory until then stays, so states should write last, as the built-in ones
            do.
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
        backoff: float = 0.5,
    ) -> None:
        if timeout is not None and timeout <= 0:
            raise StateDefinitionError(f"timeout={timeout!r}: above 0 seconds, or None")
        if retries < 0 or backoff < 0:
            raise StateDefinitionError("retries= and backoff= must not be below 0")
        self.wrapped = wrapped
        self.before = before
        self.after = after
        self.on_error = on_error
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.parallel = wrapped.parallel
        seal(wrapped)

    @property
    def subnets(self) -> object:
        """The nets inside the wrapped state."""
        return getattr(self.wrapped, "subnets", {})

    async def on_enter(self, memory: Memory) -> None:
        """As the wrapped state."""
        await self.wrapped.on_enter(memory)

    async def on_exit(self, memory: Memory) -> None:
        """As the wrapped state."""
        await self.wrapped.on_exit(memory)

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Run the wrapped state with all that is around it."""
        if self.before is not None:
            await _call(self.before(memory))
        for attempt in range(self.retries + 1):
            streamed = False
            try:
                async with closing(self._timed(memory)) as items:
                    async for item in items:
                        streamed = True
                        yield item
                break
            except Exception as error:
                if not streamed and attempt < self.retries:
                    await anyio.sleep(self.backoff * 2**attempt)
                elif self.on_error is None or await _call(self.on_error(memory, error)) is not True:
                    raise
                else:
                    return
        if self.after is not None:
            await _call(self.after(memory))

    async def _timed(self, memory: Memory) -> AsyncIterator[str | Event]:
        async with closing(self.wrapped.run(memory)) as items:
            if self.timeout is None:
                async for item in items:
                    yield item
                return
            left = self.timeout
            while True:
                part: str | Event | None = None
                start = anyio.current_time()
                with anyio.move_on_after(left) as scope:
                    part = await anext(items, None)
                if scope.cancelled_caught:
                    raise StateTimeoutError(type(self.wrapped).__name__, self.timeout)
                if part is None:
                    return
                left -= anyio.current_time() - start
                yield part

    async def costs_nothing(self, memory: Memory) -> bool:
        """As the wrapped state."""
        return await self.wrapped.costs_nothing(memory)

    async def next_state(self, memory: Memory) -> Enum | None:
        """As the wrapped state."""
        return await self.wrapped.next_state(memory)

    def targets(self) -> Collection[Enum | None] | None:
        """As the wrapped state."""
        return self.wrapped.targets()


async def _call(result: object) -> object:
    return await result if inspect.isawaitable(result) else result
