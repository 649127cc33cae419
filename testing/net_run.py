"""Running a whole net in a test, with a scripted person who decides and answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypedDict, TypeVar, overload

from pydantic import BaseModel
from typing_extensions import Unpack

from agent_brain.common.ids import new_id
from agent_brain.human_input import Decisions
from agent_brain.limits import WAITING, Limits
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.runs.human_requests import HumanRequests
from agent_brain.nets.net import Net, as_net
from agent_brain.result import Result
from agent_brain.run import Run, RunPlan
from agent_brain.states.base import State
from agent_brain.states.events import Event, StateEntered, TextDelta
from agent_brain.stuck import StuckPolicy
from agent_brain.testing.fake_memory import FakeMemory
from agent_brain.tools.toolset import ToolLike

Approval: TypeAlias = bool | str | Iterable[str]
_ONE = (str, Mapping, BaseModel)  # an answer, not several


class Person:
    """The person that a run waits for in a test.

    Args:
        approve: True or False for every call; or names of tools, or IDs of calls, to approve. With
            None nobody decides, and the run waits.
        answers: Answers in the order of the questions, or the only one; when none is left, the run
            waits.
    """

    def __init__(self, approve: Approval | None, answers: object) -> None:
        chosen = [approve] if isinstance(approve, str) else approve
        self._approve = chosen if isinstance(chosen, bool | None) else {*chosen}
        several = isinstance(answers, Iterable) and not isinstance(answers, _ONE)
        self._answers: list[Any] = [*answers] if several else [answers]  # type: ignore[misc]
        if answers is None:
            self._answers = []

    def decide(self, control: Control) -> Decisions | None:
        """Decide about everything that ``control`` waits for; None if something stays open."""
        asked = control.human_requests or HumanRequests()
        if (asked.approvals and self._approve is None) or len(asked.questions) > len(self._answers):
            return None
        names = {call.id: call.name for call in control.waiting_calls()}
        allowed = [i for i in asked.approvals if self._allows(i, names.get(i, ""))]
        replies = {question: self._answers.pop(0) for question in asked.questions}
        return Decisions(
            approve=allowed or None,
            deny=[i for i in asked.approvals if i not in allowed] or None,
            input=replies or None,
        )

    def _allows(self, *names: str) -> bool:
        if isinstance(self._approve, set):
            return not self._approve.isdisjoint(names)
        return bool(self._approve)

    def assert_heard(self) -> None:
        """Check that every answer was used.

        Raises:
            AssertionError: A question was expected that was not asked.
        """
        if self._answers:
            raise AssertionError(f"No question was asked for the answers {self._answers!r}")


M = TypeVar("M", bound=Memory)
E = TypeVar("E", bound=Event)


class LimitOptions(TypedDict, total=False):
    """The fields of :class:`~agent_brain.Limits`."""

    max_steps: int | None
    max_tokens: int | None
    max_cost: float | None
    max_tool_calls: int | None
    max_requests: int | None
    timeout: float | None
    strict: bool


class _Options(LimitOptions, total=False):
    tools: Iterable[ToolLike]
    stuck: StuckPolicy | None
    approve: Approval | None
    answers: object
    check: bool


@dataclass(slots=True)
class NetRun(Generic[M]):
    """The run of a net in a test.

    Attributes:
        memory: The memory it ran on.
        events: Every event, including those of subnets and branches.
        result: The result; None if the run failed.
        error: What it raised, with ``check=False``.
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
        """Return the states entered in a subnet or branch, by the ``path`` of its events."""
        return [str(event.state) for event in self.of(StateEntered) if event.path == inside]

    @property
    def answer(self) -> str:
        """The answer of the result; empty if the run failed."""
        return "" if self.result is None else self.result.answer

    @property
    def chunks(self) -> list[str]:
        """The text it streamed, piece by piece, without thoughts."""
        return [event.text for event in self.of(TextDelta) if not event.thought]

    @property
    def thoughts(self) -> list[str]:
        """The thoughts it streamed, and the text of parallel branches."""
        return [event.text for event in self.of(TextDelta) if event.thought]

    @property
    def text(self) -> str:
        """The text that all states streamed; ``answer`` has only the last one's."""
        return "".join(self.chunks)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


@overload
async def run_net(
    net: Net | Mapping[Any, State],
    memory: M,
    *,
    goal: str | Message | None = None,
    **options: Unpack[_Options],
) -> NetRun[M]: ...


@overload
async def run_net(
    net: Net | Mapping[Any, State], memory: str | Message, **options: Unpack[_Options]
) -> NetRun[FakeMemory]: ...


async def run_net(
    net: Net | Mapping[Any, State],
    memory: Memory | str | Message,
    *,
    goal: str | Message | None = None,
    tools: Iterable[ToolLike] = (),
    stuck: StuckPolicy | None = StuckPolicy(),  # noqa: B008 - frozen
    approve: Approval | None = None,
    answers: object = None,
    check: bool = True,
    **limits: Unpack[LimitOptions],
) -> NetRun[Any]:
    """Run a net as a Brain does.

    For example::

        run = await run_net(react(llm), "What is 1 + 2?", tools=[add])
        assert run.path == ["REASONING", "ACTION", "REASONING", "ANSWER"]
        assert run.answer == "3"

    Args:
        net: A net, or a dict of states by the members of an Enum.
        memory: A memory, or the goal for a new :class:`FakeMemory`. A memory that already has a
            goal is used as it is, including preloaded messages.
        goal: A goal that starts a new turn on ``memory``.
        tools: Tools of the agent, in addition to those of the memory.
        stuck: The stuck policy of the run.
        approve: Approves calls: True or False for all, or names of tools. With None the run waits.
        answers: Answers in the order of the questions; when none is left, the run waits.
        check: Whether to raise what the run raises; otherwise it is kept as ``.error``.
        limits: The fields of :class:`~agent_brain.Limits`, such as ``max_steps=``.

    Raises:
        AssertionError: ``answers`` has answers to questions that were not asked.
        Exception: Whatever the net raises, unless ``check=False``.
    """
    if not isinstance(memory, Memory):
        if goal is not None:
            raise TypeError("run_net() got two goals: pass a memory and goal=, or one goal")
        goal, memory = memory, FakeMemory()
    memory.add_tools(tools)
    checked, control = as_net(net), memory.control
    if goal is None and control.state is None:  # start with what the memory already holds
        control.run_id, control.state = new_id("run"), checked.initial.name
        control.status = "waiting"
    task = None if goal is None else as_message(goal)
    done, person = NetRun(memory), Person(approve, answers)
    try:
        await _run_to_end(
            done, RunPlan(checked, memory, Limits(**limits), stuck, [None]), task, person
        )
    except Exception as error:
        if check:
            raise
        done.error = error
        return done
    if done.result is not None and done.result.stop_reason not in WAITING:
        person.assert_heard()
    return done


async def _run_to_end(
    done: NetRun[Any], plan: RunPlan, task: Message | None, person: Person
) -> None:
    """Run, and resume for as long as the person decides what the run waits for."""
    decisions: Decisions | None = Decisions()
    while decisions is not None:
        async with Run[Any](plan, task, decisions) as run:
            async for event in run:
                done.events.append(event)
        done.result, task = run.result, None
        waits = done.result.stop_reason in WAITING
        decisions = person.decide(plan.memory.control) if waits else None
