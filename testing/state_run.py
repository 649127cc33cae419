"""Running a single state in a test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from agent_brain.common.ids import new_id
from agent_brain.engine import Engine
from agent_brain.errors import ScratchError, StateDefinitionError, TransitionError
from agent_brain.limits import Limits, waits_on
from agent_brain.memories.base import Memory
from agent_brain.memory_calls import MemoryCalls
from agent_brain.nets.delegation import Delegate
from agent_brain.nets.edges import known_targets
from agent_brain.nets.validation import check_state
from agent_brain.states.base import State, seal
from agent_brain.states.events import (
    NOWHERE,
    ApprovalRequested,
    Event,
    InputRequested,
    SleepRequested,
    TextDelta,
    UsageReported,
)
from agent_brain.states.function import FunctionState, StateFunction, is_state_function
from agent_brain.states.models.llm import Thought
from agent_brain.states.work import StreamItem, Work, closing, next_item, perform
from agent_brain.stuck import StuckPolicy
from agent_brain.testing.net_run import Approval, Person
from agent_brain.usage.budget import Budget

M = TypeVar("M", bound=Memory)
E = TypeVar("E", bound=Event)


@dataclass(slots=True)
class StateRun(Generic[M]):
    """The run of a state in a test.

    Attributes:
        memory: The memory it ran on.
        chunks: The text it streamed, piece by piece, without thoughts.
        thoughts: The thoughts it streamed, and the text of parallel branches.
        events: The events it yielded, and those of nets that it delegated to, with their ``path``:
            the class of the state, then the name of the branch.
        next_state: The state it proposed; also None while it waits for a person.
        waits: Whether it waits for an answer, so that ``next_state`` was not called.
    """

    memory: M
    chunks: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    next_state: Enum | None = None
    waits: bool = False

    @property
    def text(self) -> str:
        """The text it streamed."""
        return "".join(self.chunks)

    @property
    def finish_reason(self) -> str | None:
        """The finish reason of its last model call; None if unknown."""
        calls = self.of(UsageReported)
        return calls[-1].finish_reason if calls else None

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


async def run_state(
    state: State | StateFunction,
    memory: M,
    *,
    input: object = None,  # noqa: A002 - as in Brain.resume
    approve: Approval | None = None,
) -> StateRun[M]:
    """Enter a state, run it, exit it and call its ``next_state``.

    For example::

        run = await run_state(Greet(llm), FakeMemory("Hello"))
        assert (run.text, run.next_state) == ("Welcome!", Shop.SELL)

    The rules of a net apply: assigning to attributes of the state raises. Subnets and parallel
    branches run as in a Brain with default limits. A state that asks a person runs again with the
    answer, as in ``Brain.resume``.

    Args:
        state: The state, or a function that is one in a net.
        memory: The memory it runs on.
        input: The answer to its question, or a list of answers in the order of the questions.
        approve: Approves calls: True or False for all, or names of tools.

    Raises:
        AssertionError: ``input`` has answers to questions that the state did not ask.
        StateDefinitionError: A method of the state is not async, or ``run`` does not yield.
        TransitionError: ``next_state`` returned what is not a state, or not declared.
        Exception: Whatever the state raises, after ``on_exit``.
    """
    if not isinstance(state, State):
        given: object = state
        if not is_state_function(given):
            raise StateDefinitionError(
                f"run_state({given!r:.100}): pass a state, or an async function of the memory"
            )
        return await run_state(FunctionState(given), memory, input=input, approve=approve)
    name = type(state).__name__
    problems = [str(problem) for problem in check_state(state, name)]
    if problems:
        raise StateDefinitionError("\n".join(problems))
    seal(state)
    person, done = Person(approve, input), StateRun(memory)
    control = memory.control
    context = _Context(state, memory)
    left = True  # a state that waits is not
    try:
        await state.on_enter(memory)
        while True:
            await _run_once(state, done, context)
            control.check_notes(name)
            if not done.waits:
                break
            decisions = None if control.wake_at is not None else person.decide(control)
            if decisions is None:
                left = False
                return done
            control.status = "waiting"
            decisions.write(control, memory.available_tools)
            control.resume()
            done.waits = False
    except ScratchError as error:
        error.state = error.state or name
        raise
    finally:
        if left:
            await state.on_exit(memory)
    memory._drop_kept_branches()
    person.assert_heard()
    done.next_state = proposed = await state.next_state(memory)
    _check_proposal(state, proposed, memory)
    control.human_requests, control.ended, control.asked = None, {}, {}  # of the step
    return done


def _check_proposal(state: State, proposed: object, memory: Memory) -> None:
    if proposed is None and memory.done:
        return
    members = [proposed] if isinstance(proposed, Enum) else []
    known = known_targets(state, members)
    if known is not None:
        allowed = ["the end (None)" if t is None else str(t) for t in known]
        valid = any(proposed is target for target in known)
    else:
        allowed = ["members of the Enum of its net", "the end (None)"]
        valid = bool(members) or proposed is None
    if not valid:
        raise TransitionError(type(state).__name__, proposed, allowed)


async def _run_once(state: State, done: StateRun[M], context: _Context) -> None:
    running: object = state.run(done.memory)
    if not isinstance(running, AsyncIterator):
        raise TypeError(
            f"{type(state).__name__}.run() returned an object of type "
            f"{type(running).__name__}: write it as an async generator, 'async def' with "
            "'yield'"
        )
    failed: Exception | None = None
    async with closing(running) as stream:
        while True:
            try:
                item = await next_item(stream, failed)
            except StopAsyncIteration:
                return
            failed = None
            if not isinstance(item, Work):
                _keep(done, item)
                continue
            try:
                async with aclosing(perform(item, context)) as events:
                    async for event in events:
                        _keep(done, event)
            except Exception as error:
                failed = error
            if done.waits or waits_on(done.memory.control) is not None:
                done.waits = True  # and the state runs again, as in a Brain
                return


class _Context:
    """The context of the work of a single state."""

    at, key = NOWHERE, ""
    hooks = sink = None
    pauses = False
    asks = watched = True

    def __init__(self, state: State, memory: Memory) -> None:
        self._path = (type(state).__name__,)
        self._run_id = memory.control.run_id or new_id("run")
        self.memory = memory

    def delegate(self, order: Delegate, *, part: bool = False) -> AsyncGenerator[Event, None]:
        """Run the nets as a Brain does, with its default limits."""
        budget = Budget(Limits())
        budget.start(NOWHERE, self.memory)
        outer = Engine(
            order.branches[0].net,
            MemoryCalls(self.memory, None, budget),
            StuckPolicy(),
            run_id=self._run_id,
            path=self._path,
            key=self._path[0],
        )
        return outer.delegate(order, part=part)

    def count_unread(self, event: Event) -> None:
        """Do nothing: a single state has no limits to count for."""

    def check_budget(self) -> None:
        """Do nothing: a single state has no budget."""

    def reserve_calls(self) -> bool:
        """Return False: a single state has no limits."""
        return False

    release_calls = check_budget


def _keep(done: StateRun[M], item: StreamItem) -> None:
    if isinstance(item, str):
        (done.thoughts if isinstance(item, Thought) else done.chunks).append(item)
        return
    if not isinstance(item, Event):
        raise TypeError(
            f"The state yielded {item!r}: yield text, an event from agent_brain.states, or work "
            "such as llm.call(…)"
        )
    done.events.append(item)
    if isinstance(item, TextDelta):
        (done.thoughts if item.thought else done.chunks).append(item.text)
    elif isinstance(item, SleepRequested):
        done.waits = True
        done.memory.control.sleep(item.until)
    elif isinstance(item, ApprovalRequested | InputRequested):
        if item.at is not NOWHERE:  # of a net inside, which has recorded it
            return
        done.waits = True
        control = done.memory.control
        if isinstance(item, ApprovalRequested):
            control.request_approval(item.actions)
        else:
            control.request_input(item.id, item.prompt, item.schema)
