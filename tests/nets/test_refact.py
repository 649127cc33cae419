"""ReAct with reflection: a remark is part of the next call, and changes nothing else."""

from __future__ import annotations

import pytest

from agent_brain import Brain, Limits, StopReason
from agent_brain.errors import LLMServerError, MalformedOutputError
from agent_brain.memories import Role
from agent_brain.nets import refact
from agent_brain.states import Reflection, ReflectionState
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.brain.nets import Steps, add

pytestmark = pytest.mark.anyio

WRONG = Action(name="add", args={"a": 1, "b": 1})
RIGHT = Action(name="add", args={"a": 2, "b": 2})
OFF = Reflection(on_track=False, remark="You were asked for 2 + 2.").model_dump_json()
ON = Reflection(on_track=True).model_dump_json()


async def test_a_remark_reaches_the_next_reasoning_call() -> None:
    llm = ScriptedLLM([[WRONG], OFF, [RIGHT], ON, "It is 4."])
    result = await Brain(refact(llm), tools=[add]).run("2 + 2?")
    llm.assert_complete()
    assert result.answer == "It is 4."
    last = llm.calls[2].messages[-1]
    assert (last.role, last.content) == (Role.USER, "You were asked for 2 + 2.")


async def test_a_good_step_leaves_nothing_in_the_record() -> None:
    llm = ScriptedLLM(
        [[RIGHT], Reflection(on_track=True, remark="Well done.").model_dump_json(), "4"]
    )
    result = await Brain(refact(llm), tools=[add]).run("2 + 2?")
    assert [m.content for m in result.messages] == ["2 + 2?", "", "4", "4"]


async def test_the_reader_sees_the_answer_alone() -> None:
    llm = ScriptedLLM([[WRONG], OFF, [RIGHT], ON, ["It ", "is 4."]])
    brain = Brain(refact(llm), tools=[add])
    assert [chunk async for chunk in brain.answer("2 + 2?")] == ["It ", "is 4."]


async def test_the_request_to_judge_comes_after_the_results() -> None:
    llm = ScriptedLLM([[RIGHT], ON, "4"])
    await Brain(refact(llm, reflect_prompt="Watch {goal}"), tools=[add]).run("2 + 2?")
    first, *_, result, request = llm.calls[1].messages
    assert first.content.startswith("Watch 2 + 2?")
    assert (result.role, request.content) == (
        Role.TOOL,
        "Judge the last step.",
    )
    assert "on_track" in first.content
    assert llm.calls[1].output_type is Reflection


async def test_unreadable_data_is_requested_once_more() -> None:
    state = ReflectionState(ScriptedLLM(["hm", OFF]), on_done=Steps.TWO)
    done = await run_state(state, FakeMemory("go"))
    assert done.memory.updates[0][0].content == "You were asked for 2 + 2."
    state = ReflectionState(ScriptedLLM(["hm", "hm"]), on_done=Steps.TWO)
    with pytest.raises(MalformedOutputError, match="does not fit Reflection"):
        await run_state(state, FakeMemory("go"))


async def test_a_limit_keeps_finished_steps_and_resume_continues() -> None:
    llm = ScriptedLLM([[WRONG], OFF, LLMServerError("down"), [RIGHT], ON, "It is 4."])
    brain = Brain(refact(llm), tools=[add], limits=Limits(max_steps=2))
    assert (await brain.run("2 + 2?")).stop_reason is StopReason.MAX_STEPS
    brain.limits = Limits()
    with pytest.raises(LLMServerError):
        await brain.resume()
    result = await brain.resume()
    llm.assert_complete()
    assert (result.answer, result.stop_reason) == ("It is 4.", StopReason.DONE)
    assert [m.content for m in result.messages].count("You were asked for 2 + 2.") == 1
