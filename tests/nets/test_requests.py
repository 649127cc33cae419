"""The form of every request that the built-in nets and states send to a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Brain, StuckPolicy, react
from agent_brain.memories import Message, Role, TodoMemory, create_memory, memory_names
from agent_brain.nets import create_net
from agent_brain.states import (
    AnswerState,
    EvaluationState,
    PlanningState,
    ReflectionState,
    SelfReflectionState,
    StructuredRequest,
    TextRequest,
    model_summarizer,
)
from agent_brain.states.prompts import UNTRUSTED
from agent_brain.testing import FakeMemory, ModelCall, ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.brain.nets import add
from tests.nets.models import FunctionLLM
from tests.nets.test_answers import CASES, Case, make
from tests.states.helpers import N

pytestmark = pytest.mark.anyio


class Sum(BaseModel):
    value: int


def assert_form(calls: Sequence[ModelCall]) -> None:
    """One system message, first; a user message or tool results last; a schema at most once."""
    assert calls
    for call in calls:
        roles = [message.role for message in call.messages]
        assert Role.SYSTEM not in roles[1:], roles
        assert roles[-1] in (Role.USER, Role.TOOL), roles
        text = "\n".join(message.content for message in call.messages)
        assert text.count("JSON Schema") == (call.output_type is not None), text


def noted(made: list[FunctionLLM], reply: Any, **options: Any) -> FunctionLLM:
    made.append(FunctionLLM(reply, **options))
    return made[-1]


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_every_request_of_every_net(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FunctionLLM] = []
    monkeypatch.setattr("tests.nets.test_answers.FunctionLLM", partial(noted, made))
    brain = make(case)
    for question in ("What is 2 + 2?", "And again?"):
        await brain.run(question)
    assert_form([call for llm in made for call in llm.calls])


@pytest.mark.parametrize("name", memory_names())
async def test_what_memories_add_is_in_the_one_system_message(name: str) -> None:
    llm = ScriptedLLM(["It is 4.", "Still 4."])
    async with create_memory(name, [add]) as memory:
        brain = Brain(react(llm), memory)
        await brain.run("What is 2 + 2?")
        await memory.update([Message.system("Be brief.", pinned=True)])
        await brain.run("And again?")
    assert_form(llm.calls)
    assert "Be brief." in llm.calls[1].messages[0].content


async def test_a_to_do_list_is_no_part_of_the_one_system_message() -> None:
    memory = TodoMemory()
    write = Action(name="add_todo", args={"text": "add them"})
    llm = ScriptedLLM([write, "It is 4."])
    await Brain(react(llm), memory).run("What is 2 + 2?")
    assert_form(llm.calls)
    assert "add them" not in llm.calls[1].messages[0].content
    assert "add them" in llm.calls[1].messages[1].content


@pytest.mark.parametrize(
    ("state", "turn"),
    [
        (lambda llm: AnswerState(llm, ask=True), "4"),
        (lambda llm: AnswerState(llm, output_type=Sum), '{"value": 4}'),
        (lambda llm: EvaluationState(llm, on_pass=None, on_fail=N.ACT), '{"passed": true}'),
        (lambda llm: PlanningState(llm, on_plan=N.ACT, on_nothing=N.ANSWER), '{"steps": []}'),
        (lambda llm: ReflectionState(llm, on_done=N.ACT), '{"on_track": true}'),
        (lambda llm: SelfReflectionState(llm, on_done=N.ACT), "I was wrong."),
    ],
    ids=["answer", "data", "evaluation", "planning", "reflection", "self-reflection"],
)
async def test_every_state_after_an_answer(state: Any, turn: str) -> None:
    llm = ScriptedLLM([turn])
    memory = FakeMemory("2 + 2?", [Message.system("Rules."), Message.assistant("4")], tools=[add])
    await run_state(state(llm), memory)
    assert_form(llm.calls)
    assert "Rules." in llm.calls[0].messages[0].content


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
async def test_a_hint_is_a_user_message(native: bool) -> None:
    same = Action(name="add", args={"a": 1, "b": 1})
    llm = ScriptedLLM([same, same, "2", "2"], native=native)
    policy = StuckPolicy(threshold=2, prompt="HINT")
    await Brain(react(llm), tools=[add], stuck=policy).run("1 + 1?")
    hinted = llm.calls[2].messages[-1]
    assert (hinted.role, hinted.content) == (Role.USER, "HINT")
    assert_form(llm.calls)


async def test_a_correction_keeps_the_form() -> None:
    llm = ScriptedLLM(["no JSON", '{"value": 4}', " ", "4"])
    messages = [Message.user("2 + 2?"), Message.assistant("Hm.")]
    for question in (StructuredRequest(llm, messages, Sum), TextRequest(llm, messages)):
        async for _ in question.events():
            pass
    assert_form(llm.calls)


async def test_a_summary_is_asked_for_in_the_same_form() -> None:
    llm = ScriptedLLM(["So far nothing."])
    await model_summarizer(llm)("", [Message.system("Rules."), Message.user("hi")])
    assert_form(llm.calls)
    assert "Rules." in llm.calls[0].messages[0].content


async def test_the_schema_is_not_in_the_prompt_of_a_model_that_is_sent_it() -> None:
    class Schooled(ScriptedLLM):
        sends_schema = True

    llm = Schooled(['{"value": 4}'])
    await run_state(AnswerState(llm, output_type=Sum), FakeMemory("2 + 2?"))
    [call] = llm.calls
    assert call.output_type is Sum
    assert "JSON Schema" not in "\n".join(m.content for m in call.messages)
    assert [m.role for m in call.messages] == [Role.SYSTEM, Role.USER]


async def test_states_without_tools_mention_results_only_if_there_are_some() -> None:
    llm = ScriptedLLM(['{"steps": ["add"]}', Action(name="add", args={"a": 2, "b": 2}), "4", "4"])
    net = create_net("plan_execute", llm, evaluate=lambda memory, answer: True)
    await Brain(net, tools=[add]).run("2 + 2?")
    told = [UNTRUSTED in call.messages[0].content for call in llm.calls]
    assert told == [False, True, True, True]  # the planner sees none; the others may or do


async def test_a_memory_that_cannot_be_hashed_serves_as_well() -> None:
    @dataclass
    class Own(FakeMemory):
        """Compares by its fields, so it has no hash."""

        def __post_init__(self) -> None:
            super().__init__()

    result = await Brain(react(ScriptedLLM(["yes"])), Own()).run("go")
    assert result.answer == "yes"
