"""Handing work to other nets: a state says what is to be run, and the Brain runs it.

A state that needs another net yields a :class:`Delegate` and finds the outcome in its branches when
it goes on. Whatever runs a state (the Brain, ``run_state`` in tests) does this in the same way, so
events, limits, cancellation and resuming reach into every branch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from agent_brain.memories.base import Memory
from agent_brain.nets.net import Net
from agent_brain.states.answering import last_answer
from agent_brain.states.events import Event
from agent_brain.states.work import Work


@dataclass(slots=True, eq=False)
class Branch:
    """One net to be run over one memory, and what came of it.

    Attributes:
        name: What it is called in the ``path`` of its events.
        net: What is run.
        memory: Over which memory: a fork of its own, or the memory of the state that delegates.
        answer: What its last state that said anything said.
        stop_reason: Why it ended; None if it failed or was cancelled.
        error: What it raised.
        finish_reason: Why the model response that gave the answer ended, if one did.
    """

    name: str
    net: Net
    memory: Memory
    answer: str = ""
    stop_reason: str | None = None
    error: Exception | None = None
    finish_reason: str | None = None

    @property
    def ended(self) -> bool:
        """It came to an end of its own: no error, limit or question to a person stopped it."""
        return self.stop_reason in ("done", "stuck")


OnEnd: TypeAlias = Callable[[Branch], Awaitable[Iterable[Event]]]


@dataclass(frozen=True, slots=True)
class Delegate(Work):
    """Yield it from ``State.run`` to have nets run here and now.

    One branch is run as part of the state: what it says is what the state says, unless it is run
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
    """

    kind: ClassVar[Literal["delegate"]] = "delegate"
    branches: Sequence[Branch] = field(default_factory=tuple)
    on_error: Literal["cancel", "report"] = "cancel"
    aside: bool = False
    until: Literal["all", "first"] = "all"
    beside: AsyncIterator[Event] | None = None
    on_end: OnEnd | None = None


async def answer_of(branch: Branch) -> str:
    """What a branch came to: what it said last, or else the closing words in its memory.

    What a branch that a limit stopped said last may be no answer; what it recorded as one is.
    """
    return (branch.answer if branch.ended else "") or await last_answer(branch.memory)
