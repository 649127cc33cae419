"""Plan and execute: steps in order, a new plan when one fails, an answer at the end."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Brain, Limits, Memory, Net, StopReason, ToolError, tool
from agent_brain.errors import LLMServerError, MalformedOutputError
from agent_brain.memories import Role
from agent_brain.nets import SubnetState, plan_execute, tools_succeeded
from agent_brain.states import Evaluation, Plan, StateDefinitionError, TextDelta
from agent_brain.states.planning import Planned
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Steps
from tests.nets.models import text_of

pytestmark = pytest.mark.anyio

GOAL = "What does the Oslo office cost in dollars?"


@tool
def cost(office: str) -> str:
    """Tell what an office costs in euros."""
    return "1000 euros"


@tool
def rate_from_bank(currency: str) -> float:
    """Tell today's rate, from the bank."""
    raise ToolError("the bank is closed")


@tool
def rate_from_paper(currency: str) -> float:
    """Tell yesterday's rate, from the paper."""
    return 1.1


TOOLS = [cost, rate_from_bank, rate_from_paper]


def plan(*steps: str) -> str:
    return Plan(steps=list(steps)).model_dump_json()


def call(name: str, **args: str) -> list[Action]:
    return [Action(name=name, args=dict(args))]


def failing_bank(*tail: Any) -> list[Any]:
    return [
        plan("find the cost", "ask the bank for the rate", "multiply"),
        call("cost", office="Oslo"),
        "1000 euros",
        call("rate_from_bank", currency="USD"),
        "The bank is closed.",
        *tail,
    ]


NEW_PLAN: list[Any] = [
    plan("take the rate from the paper", "multiply"),
    call("rate_from_paper", currency="USD"),
    "1.1",
    "1100",
    "It costs 1100 dollars.",
]


async def test_it_replans_after_a_failing_tool() -> None:
    llm = ScriptedLLM(failing_bank(*NEW_PLAN))
    result = await Brain(plan_execute(llm, evaluate=tools_succeeded), tools=TOOLS).run(GOAL)
    llm.assert_complete()
    assert (result.answer, result.stop_reason) == ("It costs 1100 dollars.", StopReason.DONE)
    replanning = llm.calls[5].messages
    assert "rate_from_bank failed: the bank is closed" in replanning[-1].content
    assert "1000 euros" in text_of(replanning)


async def test_every_step_is_requested_in_order_and_sees_what_was_found() -> None:
    llm = ScriptedLLM([plan("find the cost", "double it"), "1000", "2000", "2000 euros"])
    await Brain(plan_execute(llm, evaluate=lambda m, a: True), tools=TOOLS).run(GOAL)
    first, second = llm.calls[1].messages, llm.calls[2].messages
    assert (first[-1].role, second[-1].role) == (Role.USER, Role.USER)
    assert "step 1 of the plan, and only that: find the cost" in first[-1].content
    assert "step 2 of the plan, and only that: double it" in second[-1].content
    assert [m.content for m in second[-3:-1]] == [first[-1].content, "1000"]
    assert "rate_from_paper" in text_of(llm.calls[0].messages)


async def test_a_model_may_find_the_plan_obsolete() -> None:
    changed = Evaluation(passed=False, feedback="The office was sold.").model_dump_json()
    llm = ScriptedLLM(
        [plan("find the cost", "convert"), "It was sold.", changed, plan(), "No cost."]
    )
    result = await Brain(plan_execute(llm), tools=TOOLS).run(GOAL)
    llm.assert_complete()
    assert result.answer == "No cost."
    assert "The office was sold." in llm.calls[3].messages[-1].content


async def test_the_reader_sees_only_the_answer() -> None:
    llm = ScriptedLLM([plan("one"), "1000", ["It costs ", "1000."]])
    brain = Brain(plan_execute(llm, evaluate=lambda m, a: True))
    said: dict[bool, list[str]] = {True: [], False: []}
    async with brain.stream(GOAL) as run:
        async for event in run:
            if isinstance(event, TextDelta):
                said[event.thought].append(event.text)
    assert said[False] == ["It costs ", "1000."]
    assert "Plan:\n1. one\n" in said[True]


async def test_no_more_plans_than_allowed() -> None:
    llm = ScriptedLLM([plan("a"), "x", plan("b"), "y", "I could not find out."])
    net = plan_execute(llm, evaluate=lambda m, a: "useless", max_plans=2)
    assert (await Brain(net).run(GOAL)).answer == "I could not find out."
    llm.assert_complete()


async def test_a_net_that_gave_up_plans_again_when_it_runs_again_in_one_run() -> None:
    llm = ScriptedLLM([plan("a"), "x", "no", plan("b"), "y", "no again"])
    net = plan_execute(llm, evaluate=lambda m, a: "useless", max_plans=1)
    outer = Net({Steps.ONE: SubnetState(net, on_done=Steps.TWO), Steps.TWO: SubnetState(net)})
    await Brain(outer).run(GOAL)
    llm.assert_complete()
    assert llm.calls[3].messages[-1].content.startswith("Plan how to reach my goal")


async def test_a_plan_that_is_too_long_is_corrected_once() -> None:
    llm = ScriptedLLM([plan("a", "b", "c"), plan("a"), "x", "done"])
    net = plan_execute(llm, evaluate=lambda m, a: True, max_steps=2)
    assert (await Brain(net).run(GOAL)).answer == "done"
    assert "it has 3 steps, and at most 2 are allowed" in llm.calls[1].messages[-1].content
    with pytest.raises(MalformedOutputError, match="at most 2"):
        await Brain(plan_execute(ScriptedLLM([plan(*"abc")] * 2), max_steps=2)).run(GOAL)


async def test_it_resumes_inside_the_step_where_it_failed() -> None:
    llm = ScriptedLLM(failing_bank(LLMServerError("down"), *NEW_PLAN))
    llm.turns.insert(2, LLMServerError("down"))
    brain = Brain(plan_execute(llm, evaluate=tools_succeeded), tools=TOOLS)
    with pytest.raises(LLMServerError):
        await brain.run(GOAL)
    with pytest.raises(LLMServerError):
        await brain.resume()
    assert (await brain.resume()).answer == "It costs 1100 dollars."
    llm.assert_complete()
    asked = [m.tool_calls[0].name for m in await brain.memory.context() if m.tool_calls]
    assert asked == ["cost", "rate_from_bank", "rate_from_paper"]


async def test_a_limit_keeps_what_was_found() -> None:
    llm = ScriptedLLM([plan("find", "convert"), "1000", "About 1000."])
    net = plan_execute(llm, evaluate=lambda m, a: True, fallback=True)
    brain = Brain(net, limits=Limits(max_steps=4))
    result = await brain.run(GOAL)
    assert (result.stop_reason, result.answer) == (StopReason.MAX_STEPS, "About 1000.")
    assert "1000" in [m.content for m in await brain.memory.context()]
    assert Planned.read(brain.memory).at in (0, 1)


async def test_a_failed_tool_call_that_was_repaired_does_not_fail_the_step() -> None:
    turns: list[Any] = [
        plan("get the rate"),
        call("rate_from_bank", currency="USD"),
        call("rate_from_paper", currency="USD"),
        "1.1",
        "1.1 dollars",
    ]
    llm = ScriptedLLM(turns)
    result = await Brain(plan_execute(llm, evaluate=tools_succeeded), tools=TOOLS).run(GOAL)
    assert result.answer == "1.1 dollars"


async def test_an_earlier_steps_failure_is_not_a_later_ones() -> None:
    seen: list[str] = []

    async def evaluate(memory: Memory, answer: str) -> bool:
        seen.append(await tools_succeeded(memory, answer))
        return True

    llm = ScriptedLLM([plan("a", "b"), call("rate_from_bank", currency="x"), "no", "yes", "end"])
    await Brain(plan_execute(llm, evaluate=evaluate), tools=TOOLS).run(GOAL)
    assert [bool(text) for text in seen] == [True, False]


@pytest.mark.parametrize("bound", ["max_steps", "max_plans"])
def test_bounds_below_one_are_refused(bound: str) -> None:
    with pytest.raises(StateDefinitionError, match="at least 1"):
        plan_execute(ScriptedLLM(), **{bound: 0})  # type: ignore[arg-type]
