"""Reflexion: a failed attempt is reflected on, and the next attempt sees the reflection."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits, Memory, MessagesMemory, Net, StopReason
from agent_brain.errors import LLMServerError
from agent_brain.memories import Role
from agent_brain.nets import SubnetState, reflexion
from agent_brain.states import (
    AnswerState,
    Evaluation,
    EvaluationState,
    StateDefinitionError,
    TellState,
    TextDelta,
    best_answer,
)
from agent_brain.states.evaluation import Trials
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.brain.nets import Steps, add
from tests.nets.models import text_of

pytestmark = pytest.mark.anyio

GOAL = "Which is the largest planet but one?"
LESSON = "I named the largest. I must take the second in the order of size."


def judge(memory: Memory, answer: str) -> str:
    return "" if "Saturn" in answer else "That is not the second largest."


async def test_it_corrects_itself_on_the_second_attempt() -> None:
    llm = ScriptedLLM(["Jupiter", LESSON, "Saturn"])
    result = await Brain(reflexion(llm, evaluate=judge)).run(GOAL)
    llm.assert_complete()
    assert (result.answer, result.stop_reason) == ("Saturn", StopReason.DONE)


async def test_the_reflection_is_the_last_thing_that_the_second_attempt_sees() -> None:
    llm = ScriptedLLM(["Jupiter", LESSON, "Saturn"])
    await Brain(reflexion(llm, evaluate=judge)).run(GOAL)
    assert LESSON not in text_of(llm.calls[0].messages)
    last = llm.calls[2].messages[-1]
    assert last.role is Role.USER
    assert LESSON in last.content
    assert "That is not the second largest." in last.content
    assert "Jupiter" in text_of(llm.calls[2].messages)


async def test_the_answer_streams_as_text_and_everything_else_as_thoughts() -> None:
    llm = ScriptedLLM(["Jupiter", LESSON, "Saturn"])
    said: dict[bool, str] = {True: "", False: ""}
    async with Brain(reflexion(llm, evaluate=judge)).stream(GOAL) as run:
        async for event in run:
            if isinstance(event, TextDelta):
                said[event.thought] += event.text
    assert said[False] == "Saturn"
    assert all(
        text in said[True] for text in ("Jupiter", LESSON, "That is not the second largest.")
    )


async def test_a_model_judges_where_no_function_is_given() -> None:
    no = Evaluation(passed=False, score=0.2, feedback="Wrong planet.").model_dump_json()
    yes = Evaluation(passed=True, score=1).model_dump_json()
    llm, judge_llm = ScriptedLLM(["Jupiter", LESSON, "Saturn"]), ScriptedLLM([no, yes])
    result = await Brain(reflexion(llm, evaluate=judge_llm)).run(GOAL)
    judge_llm.assert_complete()
    assert result.answer == "Saturn"
    assert "Jupiter" in judge_llm.calls[0].messages[-2].content
    assert "Wrong planet." in text_of(llm.calls[1].messages)


async def test_after_the_last_attempt_the_best_one_is_answered() -> None:
    scores = iter([0.2, 0.7, 0.4])

    async def score(memory: Memory, answer: str) -> float:
        return next(scores)

    llm = ScriptedLLM(["bad", "r", "best", "r", "middling"])
    result = await Brain(reflexion(llm, evaluate=score, attempts=3)).run("go")
    llm.assert_complete()
    assert result.answer == "best"
    assert result.messages[-1].content == "best"


async def test_of_equally_bad_attempts_the_last_is_the_answer() -> None:
    llm = ScriptedLLM(["first", "r", "second"])
    result = await Brain(reflexion(llm, evaluate=lambda m, a: False, attempts=2)).run("go")
    assert result.answer == "second"


async def test_attempts_are_counted_separately_when_the_net_runs_twice_in_one_run() -> None:
    llm = ScriptedLLM(["a", "r", "b", "c", "r", "d"])
    net = reflexion(llm, evaluate=lambda m, a: False, attempts=2)
    outer = Net({Steps.ONE: SubnetState(net, on_done=Steps.TWO), Steps.TWO: SubnetState(net)})
    assert (await Brain(outer).run("go")).answer == "d"
    llm.assert_complete()


async def test_an_answer_that_is_recorded_already_is_not_recorded_twice() -> None:
    result = await Brain(reflexion(ScriptedLLM(["Saturn"]), evaluate=judge)).run(GOAL)
    assert [m.content for m in result.messages] == [GOAL, "Saturn"]


@pytest.mark.parametrize(
    ("judged", "passed", "score", "feedback"),
    [
        (True, True, 1.0, ""),
        (False, False, 0.0, ""),
        (1.0, True, 1.0, ""),
        (0.6, False, 0.6, ""),
        ("", True, 1.0, ""),
        ("no", False, 0.0, "no"),
        (Evaluation(passed=True, score=0.3, feedback="f"), True, 0.3, "f"),
    ],
)
async def test_what_an_evaluating_function_may_return(
    judged: Any, passed: bool, score: float, feedback: str
) -> None:
    state = EvaluationState(lambda memory, answer: judged, on_pass=Steps.ONE, on_fail=Steps.TWO)
    done = await run_state(state, FakeMemory("go"))
    assert done.next_state is (Steps.ONE if passed else Steps.TWO)
    expected = Evaluation(passed=passed, score=score, feedback=feedback)
    assert Trials.read(done.memory).trials[0].evaluation == expected


async def test_a_score_may_pass_below_one() -> None:
    net = reflexion(ScriptedLLM(["x"]), evaluate=lambda memory, answer: 0.6, threshold=0.5)
    assert (await Brain(net).run("go")).answer == "x"


async def test_attempts_with_tools_answer_in_the_output_type() -> None:
    class Sum(BaseModel):
        value: int

    turns: list[Any] = [[Action(name="add", args={"a": 2, "b": 2})], "4", '{"value": 4}']
    net = reflexion(ScriptedLLM(turns), evaluate=lambda m, a: "4" in a, output_type=Sum)
    result = await Brain(net, tools=[add]).run("2 + 2?")
    assert result.output == Sum(value=4)


async def test_it_resumes_inside_the_attempt_where_it_failed() -> None:
    call = Action(name="add", args={"a": 1, "b": 1})
    llm = ScriptedLLM(["Jupiter", LESSON, [call], LLMServerError("down"), "Saturn"])
    brain = Brain(reflexion(llm, evaluate=judge), tools=[add])
    with pytest.raises(LLMServerError):
        await brain.run(GOAL)
    result = await brain.resume()
    llm.assert_complete()
    assert result.answer == "Saturn"
    assert len(Trials.read(brain.memory).trials) == 2


async def test_a_limit_ends_it_with_the_best_attempt_if_it_may() -> None:
    llm = ScriptedLLM(["Jupiter", LESSON])
    net = reflexion(llm, evaluate=judge, fallback=True)
    result = await Brain(net, limits=Limits(max_steps=4)).run(GOAL)
    assert (result.stop_reason, result.answer) == (StopReason.MAX_STEPS, "Jupiter")


async def test_the_next_turn_starts_from_the_beginning() -> None:
    llm = ScriptedLLM(["Jupiter", LESSON, "Saturn", "Neptune", "r", "Saturn!"])
    brain = Brain(reflexion(llm, evaluate=judge, attempts=2), MessagesMemory())
    await brain.run(GOAL)
    assert (await brain.run("Again?")).answer == "Saturn!"
    llm.assert_complete()


def test_no_attempts_are_refused() -> None:
    with pytest.raises(StateDefinitionError, match="at least 1"):
        reflexion(ScriptedLLM(), attempts=0)


class Draft(Enum):
    WRITE = "write"
    JUDGE = "judge"
    ANSWER = "answer"


def drafts(llm: ScriptedLLM, evaluate: Any, **options: Any) -> Net:
    return Net(
        {
            Draft.WRITE: AnswerState(llm, ask=True, as_thoughts=True, on_done=Draft.JUDGE),
            Draft.JUDGE: EvaluationState(
                evaluate, on_pass=Draft.ANSWER, on_fail=Draft.WRITE, attempts=3, **options
            ),
            Draft.ANSWER: TellState(best_answer),
        }
    )


async def test_the_writer_is_told_what_the_judge_found_wrong() -> None:
    llm = ScriptedLLM(["Jupiter", "Saturn"])
    result = await Brain(drafts(llm, judge)).run(GOAL)
    last = llm.calls[1].messages[-1]
    assert (last.role, result.answer) == (Role.USER, "Saturn")
    assert "That is not the second largest." in last.content


async def test_the_feedback_may_be_worded_or_left_out() -> None:
    llm = ScriptedLLM(["Jupiter", "Saturn"])
    await Brain(drafts(llm, judge, feedback="No: {feedback}")).run(GOAL)
    assert llm.calls[1].messages[-1].content == "No: That is not the second largest."

    llm = ScriptedLLM(["Jupiter", "Saturn"])
    await Brain(drafts(llm, judge, feedback=None)).run(GOAL)
    assert "second largest." not in text_of(llm.calls[1].messages)


async def test_the_reader_gets_the_accepted_draft_alone() -> None:
    llm = ScriptedLLM(["Jupiter", "Saturn"])
    brain = Brain(drafts(llm, judge))
    assert "".join([chunk async for chunk in brain.answer(GOAL)]) == "Saturn"


async def test_the_reader_gets_the_best_draft_if_none_passes() -> None:
    scores = iter([0.2, 0.7, 0.4])
    llm = ScriptedLLM(["bad", "best", "middling"])
    memory = MessagesMemory()
    result = await Brain(drafts(llm, lambda memory, answer: next(scores)), memory).run(GOAL)
    assert result.answer == "best"
    assert [m.content for m in await memory.dump() if m.role is Role.ASSISTANT][-1] == "best"
    asked = [m for m in await memory.dump() if m.cause_by == "EvaluationState"]
    assert len(asked) == 2  # nothing is asked for after the last attempt


async def test_a_judge_that_returns_nothing_is_named() -> None:
    with pytest.raises(StateDefinitionError, match="evaluate returned None; it returns a bool"):
        await Brain(drafts(ScriptedLLM(["Jupiter"]), lambda memory, answer: None)).run(GOAL)


async def test_blank_feedback_passes() -> None:
    result = await Brain(drafts(ScriptedLLM(["Jupiter"]), lambda memory, answer: " ")).run(GOAL)
    assert result.answer == "Jupiter"


def test_feedback_is_a_text() -> None:
    with pytest.raises(StateDefinitionError, match="feedback=False"):
        drafts(ScriptedLLM(), judge, feedback=False)
