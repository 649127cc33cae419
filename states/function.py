"""A function as a state."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import TypeAlias

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states.aclosing import closing
from agent_brain.states.answering import last_answer
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.work import StreamItem
from agent_brain.tools.stubborn import ended_when_cancelled

StateFunction: TypeAlias = Callable[[Memory], Awaitable[str | None] | AsyncIterator[StreamItem]]


class FunctionState(State):
    """A state that calls an async function of the memory and streams what it returns or yields.

    Text that the function returns is recorded as an assistant message; what it yields is not.

    ::

        async def price(memory):
            return "12 euros" if "express" in (await memory.goal())[-1].content else "4 euros"

        FunctionState(price, on_done=Step.REPLY)

    Args:
        function: ``async def f(memory)`` that returns text or None, or an async generator function
            that yields text and events.
        on_done: The next state; None ends the run.
        choose: Returns the next state, from the memory. Declare its targets in the net's
            ``transitions=``; otherwise every state is one.

    Raises:
        StateDefinitionError: The function is not async or takes other arguments than the memory, or
            ``on_done`` and ``choose`` are both given.
    """

    def __init__(
        self,
        function: StateFunction,
        *,
        on_done: Enum | None = None,
        choose: Callable[[Memory], Enum | None] | None = None,
    ) -> None:
        if not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
            raise StateDefinitionError(
                f"FunctionState needs an async function of the memory, not {function!r}: write it "
                "as async def"
            )
        if not _takes_one_argument(function):
            raise StateDefinitionError(
                f"FunctionState calls {function!r} with the memory only: write it as "
                "async def f(memory)"
            )
        if on_done is not None and choose is not None:
            raise StateDefinitionError("Give FunctionState either on_done= or choose=, not both")
        self.function = function
        self.on_done = on_done
        self.choose = choose

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Call the function."""
        made = self.function(memory)
        if isinstance(made, AsyncIterator):
            async with closing(made) as items:
                async for item in items:
                    yield item
        else:
            name = getattr(self.function, "__name__", "")
            text = await ended_when_cancelled(made, f"function {name!r}")
            if text:
                yield text
                if text != await last_answer(memory):  # the function may have recorded it
                    await memory.update([Message.assistant(text, cause_by=type(self).__name__)])

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return what ``choose`` returns, else ``on_done``."""
        return self.on_done if self.choose is None else self.choose(memory)

    def targets(self) -> tuple[Enum | None, ...] | None:
        """Return ``on_done``; with ``choose``, None for every state of the net."""
        return (self.on_done,) if self.choose is None else None


def _takes_one_argument(function: StateFunction) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    return True
