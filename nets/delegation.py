"""Other nets as work of a state: the Brain runs them while the state waits.

A state that needs another net yields a :class:`Delegate`, then reads the outcome from its branches.
The Brain, and ``run_state`` in tests, run them, so events, limits, cancellation and resuming reach
into every branch.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agent_brain.memories.base import Memory
from agent_brain.nets.net import Net
from agent_brain.states.answering import last_answer
from agent_brain.states.events import Event
from agent_brain.states.hook_chain import HookChain
from agent_brain.states.work import Work, WorkContext


@dataclass(slots=True, eq=False)
class Branch:
    """One net to run over one memory, and its outcome.

    Attributes:
        name: What it is called in the ``path`` of its events.
        net: What is run.
        memory: Over which memory: a fork of its own, or the memory of the state that delegates.
        answer: What its last state that said anything said.
        stop_reason: Why it ended; None if it failed or was cancelled.
        error: What it raised.
        finish_reason: Why the model response that gave the answer ended, if one did.
        hooks: The hooks around the net, if not those of the run.
        prepare: Makes the memory when the branch begins; it is closed when the branch has ended.
    """

    name: str
    net: Net
    memory: Memory
    answer: str = ""
    stop_reason: str | None = None
    error: Exception | None = None
    finish_reason: str | None = None
    hooks: HookChain | None = None
    prepare: Callable[[], Awaitable[Memory]] | None = None

    @property
    def ended(self) -> bool:
        """It came to an end of its own: no error, limit or question to a person stopped it."""
        return self.stop_reason in ("done", "stuck")


OnEnd: TypeAlias = Callable[[Branch], Awaitable[Iterable[Event]]]


@dataclass(eq=False)
class Delegate(Work):
    """Nets to run now; yield it from ``State.run``.

    One branch runs as part of the state: what it says is what the state says, unless it is run
    ``aside``. Several run at once, on memories of their own; what they say streams as thoughts, as
    it comes.

    Attributes:
        branches: What to run.
        on_error: A branch that fails cancels the others and the run, or is only reported, as
            ``branch.error``.
        until: Run until all branches have ended, or until the first has come to its end; the
            others are then cancelled.
        aside: What a single branch says streams as thoughts too, and the state does not say it.
        beside: Events of the state's own that stream while the branches run.
        on_end: Called when a branch has ended, however it did; the events that it returns, which
            are the state's own, stream then.
        max_concurrency: How many branches run at once, begun in their order; None for all.
    """

    branches: Sequence[Branch] = field(default_factory=tuple)
    on_error: Literal["cancel", "report"] = "cancel"
    aside: bool = False
    until: Literal["all", "first"] = "all"
    beside: AsyncIterator[Event] | None = None
    on_end: OnEnd | None = None
    max_concurrency: int | None = None

    def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Have ``context`` run the nets.

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
    """What a branch came to: what it said last, or else the closing words in its memory.

    What a branch that a limit stopped said last may be no answer; what it recorded as one is.
    """
    return (branch.answer if branch.ended else "") or await last_answer(branch.memory)
