"""A function as a state."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import Any, TypeAlias

from typing_extensions import TypeIs

from agent_brain.common.values import takes
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states.base import Choose, RoutedState, Target
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.work import StreamItem, closing
from agent_brain.tools.stubborn import ended_when_cancelled

StateFunction: TypeAlias = Callable[
    [Memory], Awaitable[str | Enum | None] | AsyncIterator[StreamItem | Enum | None]
]


class FunctionState(RoutedState):
    """A state that calls an async function of the memory and streams what it returns or yields.

    Text that the function returns is recorded as an assistant message; what it yields is not. A
    member of the net's Enum is the next state: returned, or yielded as the last thing. Its return
    annotation then declares the edges, and the net takes the function itself::

        async def triage(memory) -> Literal[Step.URGENT, Step.LATER]:
            return Step.URGENT if "now" in (await memory.goal())[-1].content else Step.LATER

        async def write(memory) -> AsyncIterator[StreamItem | Literal[Step.TRIAGE] | None]:
            call = llm.call(await memory.context())
            yield call
            yield Step.TRIAGE if "?" in call.text else None

        Net({Step.WRITE: write, Step.TRIAGE: triage, …})

    Args:
        function: ``async def f(memory)`` that returns text, the next state or None, or an async
            generator function that yields text, events and work, and the next state as the last.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).

    Raises:
        StateDefinitionError: The function is not async or takes other arguments than the memory, or
            more than one of its annotation, ``on_done`` and ``choose`` says what comes next.
    """

    def __init__(
        self, function: StateFunction, *, on_done: Enum | None = None, choose: Choose | None = None
    ) -> None:
        if not is_state_function(function):
            raise StateDefinitionError(
                f"FunctionState needs an async function of the memory, not {function!r}: write it "
                "as async def"
            )
        if not takes(function, "memory"):
            raise StateDefinitionError(
                f"FunctionState calls {function!r} with the memory only: write it as "
                "async def f(memory)"
            )
        super().__init__(on_done, choose)
        self.function = function
        self._routes = on_done is None and choose is None and _names_states(function)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Call the function."""
        memory.control.proposed = None
        made = self.function(memory)
        if isinstance(made, AsyncIterator):
            chosen = False
            async with closing(made) as items:
                async for item in items:
                    if chosen:
                        raise self._error("yields something behind the next state")
                    if item is None or self._is_state(item):
                        chosen = True
                        self._propose(memory, item)
                    else:
                        yield item
            return
        name = getattr(self.function, "__name__", "")
        before = (await memory.turn())[-1:]
        result = await ended_when_cancelled(made, f"function {name!r}")
        if self._is_state(result):
            self._propose(memory, result)
        elif isinstance(result, str):
            if result:
                yield result
                last = (await memory.turn())[-1:]
                if last == before or last[0].content != result:  # else the function has recorded it
                    message = Message.assistant(result, cause_by=type(self).__name__)
                    await memory.update([message])
        elif result is not None:
            raise self._error(f"returned {result!r}, which is neither text nor a state")

    def _is_state(self, item: object) -> TypeIs[Enum]:
        return isinstance(item, Enum) and (self._routes or not isinstance(item, str))

    def _propose(self, memory: Memory, state: Any) -> None:
        if not self._routes:
            raise self._error(
                f"gives the next state, {state}, and on_done= or choose= gives another, or its "
                "return annotation does not declare it: write '-> Literal[…]'"
            )
        memory.control.proposed = state

    def _error(self, problem: str) -> StateDefinitionError:
        return StateDefinitionError(f"The function {self.function!r} {problem}")

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return what the function has chosen, else what ``choose`` returns, else ``on_done``."""
        return memory.control.proposed if self._routes else await super().next_state(memory)

    def targets(self) -> tuple[Target, ...]:
        """Return the function if it chooses, else ``on_done`` or ``choose``."""
        return (self.function,) if self._routes else super().targets()


def is_state_function(function: object) -> TypeIs[StateFunction]:
    """Return whether a function can be a state: it is async."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


_TEXT = frozenset({"", "None", "str", "str | None", "None | str", "Optional[str]", "Any"})


def _names_states(function: StateFunction) -> bool:
    """Return whether the return annotation declares states, rather than text."""
    told = getattr(function, "__annotations__", {}).get("return", "")
    if inspect.isasyncgenfunction(function):
        return "Literal" in str(told)
    name = told if isinstance(told, str) else getattr(told, "__name__", str(told))
    return name.replace("typing.", "") not in _TEXT and told is not None
