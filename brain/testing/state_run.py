"""Run one state alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from agent_brain.budget import Budget
from agent_brain.engine import Engine
from agent_brain.errors import ScratchError
from agent_brain.limits import Limits
from agent_brain.memories.base import Memory
from agent_brain.nets.delegation import Delegate
from agent_brain.states.aclosing import closing
from agent_brain.states.base import State, seal
from agent_brain.states.events import (
    NOWHERE,
    ApprovalRequested,
    Event,
    InputRequested,
    TextDelta,
    UsageReported,
)
from agent_brain.states.models.llm import Thought
from agent_brain.states.work import StreamItem, Work, next_item, perform
from agent_brain.stuck import StuckPolicy
from agent_brain.testing.person import Approval, person
from agent_brain.tools.ids import new_id

M = TypeVar("M", bound=Memory)
E = TypeVar("E", bound=Event)


@dataclass(slots=True)
class StateRun(Generic[M]):
    """What a state did.

    Attributes:
        memory: The memory it ran on.
        chunks: The text it streamed, piece by piece, thoughts left out.
        thoughts: The thoughts it streamed, piece by piece, and what parallel branches said.
        events: The events it yielded itself, and those of the nets it had run, with their
            ``path``: the class of the state, then what the branch is called.
        next_state: Where it proposed to go; None too while it waits for a person.
        waits: It asked a person something that was not answered, and was not asked where to go.
    """

    memory: M
    chunks: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    next_state: Enum | None = None
    waits: bool = False

    @property
    def text(self) -> str:
        """All the text it streamed."""
        return "".join(self.chunks)

    @property
    def finish_reason(self) -> str | None:
        """Why the response of its last model call ended; None if that is not known."""
        calls = self.of(UsageReported)
        return calls[-1].finish_reason if calls else None

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


async def run_state(
    state: State,
    memory: M,
    *,
    input: str | Iterable[str] | None = None,  # noqa: A002 - what it is
    approve: Approval | None = None,
) -> StateRun[M]:
    """Enter ``state``, run it over ``memory``, leave it, and ask it where to go.

    The state is held to the same rules as in a net: assigning to its attributes raises. Nets that
    it hands work to (subnets, parallel branches) are run as a Brain would, within its default
    limits. A state that asks a person is run again with what they said, as by ``Brain.resume``.

    Args:
        state: The state.
        memory: What it runs on.
        input: The answer to its question, or answers in the order of the questions.
        approve: Whether calls that need approval may run: True, False, or the names of the tools
            whose calls may.

    Raises:
        AssertionError: ``input`` has answers to questions that the state did not ask.
        Exception: Whatever the state raises; ``on_exit`` was called then too.
    """
    seal(state)
    someone = person(approve, input)
    done = StateRun(memory)
    control = memory.control
    while True:
        await _run_once(state, done)
        control.check_notes(type(state).__name__)
        if not done.waits:
            break
        decisions = someone.decide(control)
        if decisions is None:
            return done
        control.status = "waiting"
        decisions.write(control)
        control.status, done.waits = "running", False
    someone.assert_heard()
    done.next_state = await state.next_state(memory)
    control.human_requests = None
    return done


async def _run_once(state: State, done: StateRun[M]) -> None:
    memory = done.memory
    context = _Context(state, memory)
    try:
        try:
            await state.on_enter(memory)
            async with closing(state.run(memory)) as stream:
                failed: Exception | None = None
                while True:
                    try:
                        item = await next_item(stream, failed)
                    except StopAsyncIteration:
                        break
                    failed = None
                    if isinstance(item, Work):
                        try:
                            async with aclosing(perform(item, context)) as events:
                                async for event in events:
                                    _keep(done, event)
                        except Exception as error:
                            failed = error
                    else:
                        _keep(done, item)
        finally:
            await state.on_exit(memory)
    except ScratchError as error:
        error.state = error.state or type(state).__name__
        raise


class _Context:
    """What the work of a state that is run alone can use."""

    at = NOWHERE
    hooks = None

    def __init__(self, state: State, memory: Memory) -> None:
        self._path = (type(state).__name__,)
        self.memory = memory

    def delegate(self, order: Delegate, *, part: bool = False) -> AsyncGenerator[Event, None]:
        """Run the nets as a Brain does, within its default limits."""
        budget = Budget(Limits())
        budget.start(self.memory.control)
        run_id = self.memory.control.run_id or new_id("run")
        outer = Engine(
            order.branches[0].net,
            self.memory,
            budget,
            StuckPolicy(),
            run_id=run_id,
            path=self._path,
            key=self._path[0],
        )
        return outer.delegate(order, part=part)


def _keep(done: StateRun[M], item: StreamItem) -> None:
    if isinstance(item, str):
        (done.thoughts if isinstance(item, Thought) else done.chunks).append(item)
        return
    if not isinstance(item, Event):
        raise TypeError(
            f"The state yielded {item!r}: yield text, or an event from agent_brain.states"
        )
    done.events.append(item)
    if isinstance(item, TextDelta):
        (done.thoughts if item.thought else done.chunks).append(item.text)
    elif isinstance(item, ApprovalRequested | InputRequested):
        _note_question(done, item)


def _note_question(done: StateRun[M], event: ApprovalRequested | InputRequested) -> None:
    """Write down what a person is asked, as a Brain does."""
    control = done.memory.control
    done.waits = True
    if isinstance(event, ApprovalRequested):
        control.request_approval(event.actions)
    else:
        control.request_input(event.id, event.prompt)
