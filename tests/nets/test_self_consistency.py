"""Self-consistency: the answer of most paths outvotes a wrong one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits, Memory, StopReason
from agent_brain.errors import LLMServerError, MalformedOutputError
from agent_brain.nets import final_answer, majority, self_consistency
from agent_brain.nets.library.voting import Candidates, Choice, VoteState
from agent_brain.states import StateDefinitionError, TextDelta
from agent_brain.testing import FakeMemory, ModelCall, ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.brain.nets import add
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio

GOAL = "If there are 3 cars and 2 more arrive, how many are there?"
WRONG = "3 times 2 is 6. The answer is 6."
PATHS = [WRONG, "3 + 2 = 5. The answer is 5.", "Two more make **5**.\n\nThe answer is $5.00"]


def each_once(answers: Sequence[Any]) -> FunctionLLM:
    given = iter(answers)
    return FunctionLLM(lambda call: next(given))


async def test_a_wrong_path_is_outvoted() -> None:
    llm = each_once(PATHS)
    brain = Brain(self_consistency(llm, paths=3))
    result = await brain.run(GOAL)
    assert final_answer(result.answer) == "5"
    assert (result.stop_reason, len(llm.calls)) == (StopReason.DONE, 3)
    assert sorted(Candidates.read(brain.memory).answers) == sorted(PATHS)


async def test_paths_run_concurrently_and_do_not_see_each_other() -> None:
    here, all_here = itertools.count(1), anyio.Event()

    class Meeting(FunctionLLM):
        async def stream(self, messages: Any, **options: Any) -> Any:
            if next(here) == 3:
                all_here.set()
            await all_here.wait()
            async for piece in super().stream(messages, **options):
                yield piece

    llm = Meeting(lambda call: "The answer is 5.")
    with anyio.fail_after(60):
        await Brain(self_consistency(llm, paths=3)).run(GOAL)
    assert len({tuple(m.content for m in call.messages) for call in llm.calls}) == 1


async def test_only_the_winner_is_recorded_and_streamed_as_text() -> None:
    brain = Brain(self_consistency(each_once(PATHS), paths=3))
    said: dict[bool, str] = {True: "", False: ""}
    async with brain.stream(GOAL) as run:
        async for event in run:
            if isinstance(event, TextDelta):
                said[event.thought] += event.text
    assert said[False] == run.result.answer
    assert [m.content for m in run.result.messages] == [GOAL, run.result.answer]
    assert WRONG in said[True]
    assert "2 × '5', 1 × '6'" in said[True]


async def test_a_single_path_is_not_repeated() -> None:
    result = await Brain(self_consistency(each_once([WRONG]), paths=1)).run(GOAL)
    assert result.answer == WRONG


async def test_a_model_may_judge_instead() -> None:
    def reply(call: ModelCall) -> Any:
        if call.output_type is not Choice:
            return next(answers)
        options = call.messages[-1].content.split("Number ")[1:]
        return Choice(number=next(n for n, text in enumerate(options, 1) if WRONG in text))

    answers = iter(PATHS)
    llm = FunctionLLM(reply)
    result = await Brain(self_consistency(llm, paths=3, vote=llm)).run(GOAL)
    assert (result.answer, len(llm.calls)) == (WRONG, 4)


async def test_an_invalid_choice_is_corrected_once() -> None:
    memory = FakeMemory(GOAL)
    Candidates(answers=["one", "two"]).write(memory)
    llm = ScriptedLLM(['{"number": 3}', '{"number": 2}'])
    assert (await run_state(VoteState(llm), memory)).text == "two"
    assert "there are only 2 options" in llm.calls[1].messages[-1].content
    with pytest.raises(MalformedOutputError, match="only 2"):
        await run_state(VoteState(ScriptedLLM(['{"number": 3}'] * 2)), memory)


async def test_a_function_may_judge_instead() -> None:
    async def longest(memory: Memory, answers: Sequence[str]) -> str:
        return max(answers, key=len)

    result = await Brain(self_consistency(each_once(PATHS), paths=3, vote=longest)).run(GOAL)
    assert result.answer == max(PATHS, key=len)


async def test_a_path_that_fails_has_no_vote() -> None:
    llm = each_once([LLMServerError("down"), *PATHS[1:]])
    assert final_answer((await Brain(self_consistency(llm, paths=3)).run(GOAL)).answer) == "5"


async def test_if_every_path_fails_the_run_fails_and_can_be_resumed() -> None:
    llm = each_once([LLMServerError("down")] * 2 + PATHS[1:])
    brain = Brain(self_consistency(llm, paths=2))
    with pytest.raises(LLMServerError):
        await brain.run(GOAL)
    assert final_answer((await brain.resume()).answer) == "5"


async def test_a_failed_judgement_is_resumed_without_thinking_again() -> None:
    judge = ScriptedLLM([LLMServerError("down"), '{"number": 1}'])
    llm = each_once(["only this"])
    brain = Brain(self_consistency(llm, paths=1, vote=judge))
    with pytest.raises(LLMServerError):
        await brain.run(GOAL)
    assert (await brain.resume()).answer == "only this"
    assert len(llm.calls) == 1


async def test_paths_use_tools_and_answer_in_the_output_type() -> None:
    class Sum(BaseModel):
        value: int

    def reply(call: ModelCall) -> Any:
        if call.output_type is Sum:
            return Sum(value=int(call.messages[-3].content))
        if call.messages[-1].role == "tool":
            return call.messages[-1].content
        return Action(name="add", args={"a": 3, "b": 2})

    net = self_consistency(FunctionLLM(reply), paths=3, output_type=Sum)
    brain = Brain(net, tools=[add])
    result = await brain.run(GOAL)
    assert (result.output, result.answer) == (Sum(value=5), '{"value":5}')
    assert [m.role for m in result.messages] == ["user", "assistant"]


async def test_a_limit_reached_on_the_paths_ends_the_run_with_their_answers_kept() -> None:
    llm = FunctionLLM(lambda call: "The answer is 5.")
    brain = Brain(self_consistency(llm, paths=3), limits=Limits(max_steps=2))
    result = await brain.run(GOAL)
    assert result.stop_reason is StopReason.MAX_STEPS
    assert len(Candidates.read(brain.memory).answers) == 3
    assert [m.content for m in result.messages] == [GOAL]
    brain.limits = Limits()
    assert final_answer((await brain.resume()).answer) == "5"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is 5.", "5"),
        ("so it is\nAnswer: **$1,234.50**", "1234.5"),
        ("#### 18", "18"),
        ("I think the answer is yes!", "yes"),
        ("Paris", "paris"),
        ("one line\n\n The last line.  ", "the last line"),
        ("The answer is 5.0", "5"),
        ("First the answer is 4, no: the answer is 5", "5"),
        ("", ""),
        ("NaN", "nan"),
        ("1e3", "1000"),
    ],
)
async def test_equal_answers_are_equal_texts(text: str, answer: str) -> None:
    assert final_answer(text) == answer


async def test_of_equal_votes_the_first_answer_wins() -> None:
    assert majority(["b", "a", "A", "B"]) == "b"
    assert majority([]) == ""


def test_wrong_options_are_refused() -> None:
    with pytest.raises(StateDefinitionError, match="at least 1"):
        self_consistency(ScriptedLLM(), paths=0)
    with pytest.raises(StateDefinitionError, match="'majority'"):
        self_consistency(ScriptedLLM(), vote="best")
