"""Run one net alone, to its end, and look at everything it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

from typing_extensions import Unpack

from agent_brain.human_input import Decisions
from agent_brain.limits import WAITING, Limits
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, as_message
from agent_brain.nets.net import Net, as_net
from agent_brain.result import Result
from agent_brain.run import Plan, Run
from agent_brain.states.base import State
from agent_brain.states.events import Event, StateEntered, TextDelta
from agent_brain.stuck import StuckPolicy
from agent_brain.testing.fake_memory import FakeMemory
from agent_brain.testing.options import LimitOptions
from agent_brain.testing.person import Approval, Person, person
from agent_brain.tools.ids import new_id
from agent_brain.tools.toolset import ToolLike

M = TypeVar("M", bound=Memory)
E = TypeVar("E", bound=Event)


@dataclass(slots=True)
class NetRun(Generic[M]):
    """What a net did.

    Attributes:
        memory: The memory it ran on.
        events: Every event, those of subnets and branches included.
        result: How it ended, and with what; None if it failed.
        error: What it raised, where ``check=False`` let it.
    """

    memory: M
    events: list[Event] = field(default_factory=list)
    result: Result[Any] | None = None
    error: Exception | None = None

    @property
    def path(self) -> list[str]:
        """The states of the net in the order they were entered, without those of subnets."""
        return self.path_of()

    def path_of(self, *inside: str) -> list[str]:
        """The states entered in a subnet or branch, by the ``path`` of its events."""
        entered = (event for event in self.of(StateEntered) if event.path == inside)
        return [str(event.state) for event in entered]

    @property
    def answer(self) -> str:
        """As ``result.answer``; empty if it failed."""
        return "" if self.result is None else self.result.answer

    @property
    def chunks(self) -> list[str]:
        """The text it streamed, piece by piece, thoughts left out."""
        return [event.text for event in self.of(TextDelta) if not event.thought]

    @property
    def thoughts(self) -> list[str]:
        """The thoughts it streamed, and what parallel branches said."""
        return [event.text for event in self.of(TextDelta) if event.thought]

    @property
    def text(self) -> str:
        """All the text it streamed, from every state; ``result.answer`` has the last one's."""
        return "".join(self.chunks)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


@overload
async def run_net(
    net: Net | Mapping[Any, State],
    memory: M,
    *,
    goal: str | Message | None = None,
    tools: Iterable[ToolLike] = (),
    stuck: StuckPolicy | None = ...,
    approve: Approval | None = None,
    answers: str | Iterable[str] | None = None,
    check: bool = True,
    **limits: Unpack[LimitOptions],
) -> NetRun[M]: ...


@overload
async def run_net(
    net: Net | Mapping[Any, State],
    memory: str | Message,
    *,
    tools: Iterable[ToolLike] = (),
    stuck: StuckPolicy | None = ...,
    approve: Approval | None = None,
    answers: str | Iterable[str] | None = None,
    check: bool = True,
    **limits: Unpack[LimitOptions],
) -> NetRun[FakeMemory]: ...


async def run_net(
    net: Net | Mapping[Any, State],
    memory: Memory | str | Message,
    *,
    goal: str | Message | None = None,
    tools: Iterable[ToolLike] = (),
    stuck: StuckPolicy | None = StuckPolicy(),  # noqa: B008 - frozen
    approve: Approval | None = None,
    answers: str | Iterable[str] | None = None,
    check: bool = True,
    **limits: Unpack[LimitOptions],
) -> NetRun[Any]:
    """Run ``net`` to its end, as a Brain does.

    Args:
        net: A net, or a dict of states by the members of an Enum.
        memory: A memory, or the goal, for a :class:`FakeMemory` of that goal. A memory that has a
            goal already is taken up as it stands, what it was preloaded with included.
        goal: Starts a new turn on ``memory``.
        tools: What the agent may call, besides the memory's own.
        stuck: As in a Brain.
        approve: Whether calls that need a person's approval may run: True, False, or the names of
            the tools whose calls may. None: the run waits, and ends there.
        answers: What a person answers, question by question; with none left, the run waits.
        check: Raise what the run raises; False keeps it as ``.error``.
        limits: As in :class:`~agent_brain.Limits`: ``max_steps=``, ``timeout=``, …

    Raises:
        AssertionError: There are answers to questions that the net did not ask.
        Exception: Whatever the net raises, unless ``check=False``.
    """
    if not isinstance(memory, Memory):
        if goal is not None:
            raise TypeError("run_net() was given two goals: pass a memory and goal=, or one goal")
        goal, memory = as_message(memory), FakeMemory()
    memory.add_tools(tools)
    checked = as_net(net)
    if goal is None:
        _stand_before(checked, memory)
    task = None if goal is None else as_message(goal)
    done = NetRun(memory)
    someone = person(approve, answers)
    try:
        await _run_to_end(done, Plan(checked, memory, Limits(**limits), stuck), task, someone)
    except Exception as error:
        if check:
            raise
        done.error = error
        return done
    if done.result is not None and done.result.stop_reason not in WAITING:
        someone.assert_heard()
    return done


async def _run_to_end(done: NetRun[Any], plan: Plan, task: Message | None, someone: Person) -> None:
    """Run, and go on for as long as the person decides what the run waits for."""
    decisions: Decisions | None = Decisions()
    while decisions is not None:
        async with Run[Any](plan, task, decisions) as run:
            async for event in run:
                done.events.append(event)
        done.result = run.result
        waits = done.result.stop_reason in WAITING
        decisions, task = someone.decide(plan.memory.control) if waits else None, None


def _stand_before(net: Net, memory: Memory) -> None:
    """Have a run stand before its first step, with everything else in the memory as it is."""
    control = memory.control
    if control.state is None:
        control.run_id, control.state, control.status = new_id("run"), net.initial.name, "waiting"
