"""What a state is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection
from enum import Enum
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateMutationError
from agent_brain.states.work import StreamItem


class State(ABC):
    """One step of thinking: ``run`` does it and streams, ``next_state`` proposes where to go.

    A state object holds configuration only and serves any number of runs at once; what a run must
    know from step to step belongs in the memory (``memory.control.scratch`` has room for it). Once
    a state is part of a net, assigning to its attributes raises :class:`StateMutationError`. (What
    an attribute refers to is not watched: give states tuples rather than lists.)
    """

    parallel: bool = False  # it delegates to several branches at once

    async def on_enter(self, memory: Memory) -> None:
        """Called before ``run``. Default: nothing."""

    @abstractmethod
    def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Do the work, as an async generator.

        Yield text as it comes and, if there is more to tell, events. Never start work that outlives
        the generator, and never yield inside a task group or a cancel scope opened here.
        """

    async def on_exit(self, memory: Memory) -> None:
        """Called after ``run``, also when it raised. Default: nothing."""

    @abstractmethod
    async def next_state(self, memory: Memory) -> Enum | None:
        """Propose the next state; None ends the run, as ``memory.done = True`` does.

        The return annotation tells the net the edges: ``Literal[Net.A, Net.B]`` exactly these, with
        ``None`` in it also the end; ``Enum`` leaves it to the parameters of the state.
        """

    async def costs_nothing(self, memory: Memory) -> bool:
        """Return whether running the state now takes neither a model call nor a tool call.

        Such a state runs although a limit on tokens or cost is reached: it passes on what is there
        already. The default is False.
        """
        return False

    def targets(self) -> Collection[Enum | None] | None:
        """Every proposal that ``next_state`` can make; override it where nothing else tells.

        The default, None, has the net read it from the annotation and the parameters.
        """
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_sealed"):
            raise StateMutationError(type(self).__name__, name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if self.__dict__.get("_sealed"):
            raise StateMutationError(type(self).__name__, name)
        object.__delattr__(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self


def seal(state: State) -> None:
    """From now on, refuse assignments to the attributes of ``state``."""
    object.__setattr__(state, "_sealed", True)
