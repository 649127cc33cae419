"""Other nets as work of a state: the Brain runs them while the state waits.

A state that needs another net yields a :class:`Delegate`, then reads the outcome from its branches.
The Brain, and ``run_state`` in tests, run them, so events, limits, cancellation and resuming reach
into every branch.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.nets.net import Net
from agent_brain.states.answering import last_answer
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event
from agent_brain.states.hooks import Hook
from agent_brain.states.work import Work, WorkContext


@dataclass(slots=True, eq=False)
class Branch:
    """One net to run over one memory, and its outcome.

    Attributes:
        name: The name in the ``path`` of its events.
        net: The net.
        memory: The memory it runs on: a fork, or the memory of the state that delegates.
        answer: The text of its last state that said anything.
        output: The data of its answer, if the net has an ``output_type``.
        has_output: Whether it has made an output, which may be None.
        stop_reason: Why it ended; None if it failed or was cancelled.
        error: The exception that it raised.
        finish_reason: The finish reason of the model response with the answer.
        hooks: Hooks around the net, besides those of the run.
        limits: :class:`agent_brain.Limits` of the branch itself, within those of the run.
        own_limit: Whether it ended at one of these, so that the run continues.
        call_id: ID of the tool call that runs the net, if one does.
        prepare: Makes the memory when the branch begins; it is closed when the branch has ended.
    """

    name: str
    net: Net
    memory: Memory
    answer: str = ""
    output: Any = None
    stop_reason: str | None = None
    error: Exception | None = None
    finish_reason: str | None = None
    hooks: Sequence[Hook] = ()
    limits: Any = None  # of a package above this one
    own_limit: bool = False
    call_id: str = ""
    prepare: Callable[[], Awaitable[Memory]] | None = None
    has_output: bool = False

    def __post_init__(self) -> None:
        given: object = self.net
        if not isinstance(given, Net):
            raise StateDefinitionError(
                f"Branch({self.name!r}, net={given!r}): pass a net, such as Net({{…}})"
            )

    @property
    def completed(self) -> bool:
        """Whether it finished, rather than stopping at an error, a limit or a question."""
        return self.stop_reason in ("done", "stuck")


def check_choice(option: str, value: object, *allowed: str) -> None:
    """Refuse a value that is none of those an option has.

    Raises:
        StateDefinitionError: It is none.
    """
    if value not in allowed:
        uses = " or ".join(map(repr, allowed))
        raise StateDefinitionError(f"{option}={value!r}: use {uses}")


OnEnd: TypeAlias = Callable[[Branch], Awaitable[Iterable[Event]]]


@dataclass(eq=False)
class Delegate(Work):
    """Nets to run now; yield it from ``State.run``.

    One branch runs as part of the state, and its text is that of the state, unless ``as_thoughts``
    is set. Several branches run concurrently, each on its own memory, and their text streams as
    thoughts.

    Attributes:
        branches: The branches to run.
        on_error: Whether a branch that fails cancels the others and the run, or is only reported as
            ``branch.error``.
        until: Whether to run until all branches have ended, or until the first has finished; the
            others are then cancelled.
        as_thoughts: Whether the text of a single branch streams as thoughts, too.
        beside: Events of the state itself, which stream while the branches run.
        on_end: Called when a branch has ended in any way; the events that it returns are streamed
            as events of the state.
        max_concurrency: The maximum number of concurrent branches, started in order; None for all.

    Raises:
        StateDefinitionError: An option has a value that is not one of these.
    """

    branches: Sequence[Branch] = field(default_factory=tuple)
    on_error: Literal["cancel", "report"] = "cancel"
    as_thoughts: bool = False
    until: Literal["all", "first"] = "all"
    beside: AsyncIterator[Event] | None = None
    on_end: OnEnd | None = None
    max_concurrency: int | None = None

    def __post_init__(self) -> None:
        given: object = self.branches
        if not isinstance(given, Sequence) or not all(isinstance(b, Branch) for b in given):
            raise StateDefinitionError(
                f"Delegate(branches={given!r}): pass a list of Branch objects"
            )
        check_choice("Delegate.on_error", self.on_error, "cancel", "report")
        check_choice("Delegate.until", self.until, "all", "first")
        check_count(StateDefinitionError, "max_concurrency", self.max_concurrency, optional=True)

    def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Let ``context`` run the nets.

        Raises:
            RuntimeError: There is no run to be part of.
        """
        if context is None:
            raise RuntimeError("A Delegate needs a run: yield it from State.run")
        return context.delegate(self)

    @property
    def result(self) -> Sequence[Branch]:
        """The branches."""
        return self.branches


async def answer_of(branch: Branch) -> str:
    """Return the answer of a branch: its last text, or else the last answer in its memory.

    If a limit stopped the branch, only an answer that it recorded counts.
    """
    return (branch.answer if branch.completed else "") or await last_answer(branch.memory)
