"""The base class of states that go to one state, or to the one that a function chooses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeAlias

from agent_brain.common.aio import maybe_await
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.states.base import State, Target
from agent_brain.states.errors import StateDefinitionError

Choose: TypeAlias = Callable[[Memory], Enum | Awaitable[Enum | None] | None]


class RoutedState(State):
    """Base class for states that continue with ``on_done``, or with what ``choose`` returns.

    Args:
        on_done: The next state; None ends the run.
        choose: Returns the next state, from the memory; sync or async. Its return annotation
            declares the edges, as that of :meth:`State.next_state` does; without one, or with
            ``Enum``, they are all states of the net and the end, or those of ``transitions=``.

    Raises:
        StateDefinitionError: Both are given, ``choose`` is not a function of the memory, or
            ``on_done`` is a function.
    """

    on_done: Enum | None = None
    choose: Choose | None = None

    def __init__(self, on_done: Enum | None = None, choose: Choose | None = None) -> None:
        kind = type(self).__name__
        if choose is not None and on_done is not None:
            raise StateDefinitionError(f"Give {kind} either on_done= or choose=, not both")
        if callable(on_done):
            raise StateDefinitionError(
                f"{kind}(on_done={on_done!r}): it must be a state of the net; a function of the "
                "memory that returns one is given as choose="
            )
        check_function(StateDefinitionError, "choose", choose, "memory", optional=True)
        self.on_done = on_done
        if choose is not None:
            self.choose = choose

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return ``on_done``, or what ``choose`` returns."""
        return self.on_done if self.choose is None else await maybe_await(self.choose(memory))

    def targets(self) -> tuple[Target, ...]:
        """Return ``on_done``, or ``choose``."""
        return (self.on_done if self.choose is None else self.choose,)
