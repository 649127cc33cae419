"""What a reader sees of every built-in net: ``answer()`` yields ``Result.answer``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits, StopReason
from agent_brain.demo import DemoLLM, demo_tools
from agent_brain.memories import Role
from agent_brain.nets import create_net, net_names
from agent_brain.nets.library.graph_of_thoughts import OneThought, Rating
from agent_brain.nets.library.router import RouteName
from agent_brain.nets.library.thought_tree import Value
from agent_brain.nets.library.tree_of_thoughts import Thoughts
from agent_brain.nets.library.voting import Choice
from agent_brain.states import (
    LLM,
    ActionRequested,
    Event,
    Finish,
    Plan,
    Reflection,
    TextDelta,
    UsageReported,
)
from agent_brain.states.evaluation import Evaluation
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.brain.nets import add
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio


class Sum(BaseModel):
    value: int


class Result(BaseModel):
    result: float


FILLED: dict[Any, Any] = {
    Choice: Choice(number=1),
    Evaluation: Evaluation(passed=True, score=1),
    OneThought: OneThought(thought='{"value":4}'),
    Plan: Plan(steps=["add"]),
    Rating: Rating(score=0.5),
    Reflection: Reflection(on_track=False, remark="Go on."),
    RouteName: RouteName(name="react"),
    Sum: Sum(value=4),
    Thoughts: Thoughts(thoughts=["2 + 2", '{"value":4}']),
    Value: Value(score=0.5),
}


def talkative(call: ModelCall) -> Any:
    """Remarks on its calls, answers in two chunks, and fills every shape."""
    if call.output_type is not None:
        return FILLED.get(call.output_type) or '{"value": 4}'
    if any(m.role is Role.TOOL or m.content.startswith("Result of") for m in call.messages):
        return ["It ", "is 4.", Finish("stop")]
    action = Action(name="add", args={"a": 2, "b": 2})
    if call.tools:
        return ["Let me ", "add.", action, Finish("tool_calls")]
    return ["It ", "is 4."]


def textual(call: ModelCall) -> Any:
    """The same, for a model that does not call tools natively."""
    said = talkative(call)
    asked = "Tools, as JSON" in call.messages[0].content
    seen = any(m.content.startswith("Result of") for m in call.messages)
    return 'I add. {"name": "add", "args": {"a": 2, "b": 2}}' if asked and not seen else said


def another(_: bool = True) -> LLM:
    return FunctionLLM(talkative)


@dataclass(frozen=True)
class Case:
    net: str
    options: Callable[[], dict[str, Any]] = dict
    native: bool = True
    label: str = ""

    def __str__(self) -> str:
        return f"{self.net} {self.label}{'' if self.native else ' text'}"


def _with_options(name: str) -> list[Case]:
    shaped = [] if name == "router" else [Case(name, lambda: {"output_type": Sum}, label="shaped")]
    plain = [Case(name), Case(name, native=False)]
    return [*plain, *shaped, *(Case(c.net, c.options, False, c.label) for c in shaped)]


MORE = [
    *(
        Case(name, lambda o=options: {k: v() for k, v in o.items()}, label=label)  # type: ignore[misc]
        for name in ("react", "refact")
        for label, options in {
            "answer_llm": {"answer_llm": another},
            "answer_llm and shaped": {"answer_llm": another, "output_type": lambda: Sum},
            "mode text": {"mode": lambda: "text"},
            "int": {"output_type": lambda: int},
            "fallback": {"fallback": lambda: True},
        }.items()
    ),
    Case("refact", lambda: {"reflect_llm": another()}, label="reflect_llm"),
    Case("reflexion", lambda: {"evaluate": lambda memory, answer: True}, label="function"),
    Case("reflexion", lambda: {"evaluate": another(), "fallback": True}, label="model"),
    Case("plan_execute", lambda: {"plan_llm": another(), "fallback": True}, label="plan_llm"),
    Case("self_consistency", lambda: {"vote": another()}, label="judged"),
    Case("self_consistency", lambda: {"vote": lambda memory, answers: answers[-1]}, label="chosen"),
    Case("tree_of_thoughts", lambda: {"propose": "sample", "evaluate": "vote"}, label="votes"),
    Case("tree_of_thoughts", lambda: {"strategy": "dfs", "fallback": True}, label="dfs"),
    Case("graph_of_thoughts", lambda: {"fallback": True}, label="fallback"),
    Case("debate", lambda: {"moderator": another(), "fallback": True}, label="moderator"),
    Case("router", lambda: {"choose": lambda memory: "plan_execute"}, label="function"),
]
CASES = [*(case for name in net_names() for case in _with_options(name)), *MORE]


def make(case: Case, **options: Any) -> Brain:
    llm = FunctionLLM(talkative if case.native else textual, native=case.native)
    if case.label == "mode text":
        llm = FunctionLLM(textual)
    return Brain(create_net(case.net, llm, **case.options()), tools=[add], **options)


def remarks_of(events: list[Event]) -> list[str]:
    """The words of responses that asked for calls, in order."""
    asked = {e.response_id for e in events if isinstance(e, ActionRequested)}
    words: dict[str | None, str] = {}
    for event in events:
        if isinstance(event, TextDelta) and not event.thought and event.response_id in asked:
            words[event.response_id] = words.get(event.response_id, "") + event.text
    return list(words.values())


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_answer_yields_remarks_and_then_the_answer(case: Case) -> None:
    events: list[Event] = []
    async with make(case).stream("What is 2 + 2?") as run:
        async for event in run:
            events.append(event)
    seen = "".join([chunk async for chunk in make(case).answer("What is 2 + 2?")])

    assert run.result.stop_reason is StopReason.DONE
    assert run.result.answer in ("It is 4.", '{"value":4}', "4")
    assert seen == "\n\n".join([*remarks_of(events), run.result.answer])


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_every_piece_names_its_response_and_every_call_is_reported_once(case: Case) -> None:
    brain = make(case)
    texts: list[TextDelta] = []
    reports: list[UsageReported] = []
    async with brain.stream("What is 2 + 2?") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                texts.append(event)
            elif isinstance(event, UsageReported):
                reports.append(event)
    ids = [report.response_id for report in reports]
    assert None not in ids
    assert len(set(ids)) == len(ids) == run.result.usage.requests
    assert {text.response_id for text in texts} - {None} <= set(ids)


STOPPED = [case for case in CASES if "fallback" in case.options()]


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("case", STOPPED, ids=str)
async def test_a_run_stopped_by_a_limit_agrees_too(case: Case, steps: int) -> None:
    limits = Limits(max_steps=steps)
    result = await make(case, limits=limits).run("What is 2 + 2?")
    seen = "".join([chunk async for chunk in make(case, limits=limits).answer("What is 2 + 2?")])

    assert seen.split("\n\n")[-1] == result.answer


@pytest.mark.parametrize("options", [{"answer_llm": DemoLLM()}, {"output_type": Result}])
async def test_the_demo_model_answers_the_question_and_not_the_request_to_answer(
    options: dict[str, Any],
) -> None:
    net = create_net("react", DemoLLM(), **options)
    result = await Brain(net, tools=demo_tools()).run("What is 17 times 23?")
    assert "391" in result.answer


async def test_a_typed_answer_is_streamed_once() -> None:
    llm = FunctionLLM(lambda call: '{"n": 4}' if call.output_type else "It is four.")
    brain = Brain("react", llm=llm, output_type=dict[str, int])
    assert [chunk async for chunk in brain.answer("2 + 2?")] == ['{"n":4}']
