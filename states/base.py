"""The base classes of states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from enum import Enum
from typing import Any, TypeAlias

from agent_brain.common.aio import maybe_await
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.states.errors import StateDefinitionError, StateMutationError
from agent_brain.states.work import StreamItem

Target: TypeAlias = Enum | Callable[..., Any] | None


class State(ABC):
    """Base class for states: ``run`` does a step and streams, ``next_state`` proposes the next one.

    ::

        class Translate(State):
            def __init__(self, llm: LLM) -> None:
                self.llm = llm

            async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
                prompt = Message.system("Translate into French.")
                call = self.llm.call([prompt, *await memory.goal()])
                yield call
                await memory.update([Message.assistant(call.text)])

            async def next_state(self, memory: Memory) -> None:
                return None

    A state object holds configuration only and serves any number of runs at once; data of a run
    belongs in the memory, for example in ``memory.control.scratch``. Once a state is part of a net,
    assigning to its attributes raises :class:`StateMutationError`. (Objects that its attributes
    refer to are not protected: give states tuples rather than lists.)
    """

    parallel: bool = False  # it runs several branches at once

    async def on_enter(self, memory: Memory) -> None:
        """Called before ``run``. Does nothing by default.

        Once, when the state is entered: not again where a run continues that waited in the state.
        """

    @abstractmethod
    def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Do the step, as an async generator.

        Yield text, events, and :class:`Work` such as ``llm.call(…)``, which is done while the state
        waits at its ``yield``. Never start anything that outlives the generator, and never yield
        inside a task group or a cancel scope opened here.
        """

    async def on_exit(self, memory: Memory) -> None:
        """Called after ``run``, also if it raised. Does nothing by default.

        Not where the run begins to wait in the state, which is then not left.
        """

    @abstractmethod
    async def next_state(self, memory: Memory) -> Enum | None:
        """Propose the next state; None ends the run, as ``memory.done = True`` does.

        The return annotation declares the edges: ``Literal[Net.A, Net.B]`` exactly these, with
        ``None`` also the end; with ``Enum`` they are the Enum-valued parameters of the state.
        """

    async def costs_nothing(self, memory: Memory) -> bool:
        """Return whether the state would now make neither a model call nor a tool call.

        Such a state runs although a limit on tokens or cost is reached. The default is False.
        """
        return False

    def targets(self) -> Collection[Target] | None:
        """Return everything that ``next_state`` may propose.

        A function stands for what its return annotation declares, as that of ``next_state`` does.
        None, the default, means that the annotation and the parameters declare it.
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
    """Refuse assignments to the attributes of ``state`` from now on."""
    object.__setattr__(state, "_sealed", True)


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
