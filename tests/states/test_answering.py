"""AnswerState: passing on closing text, and requesting text or data."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field, RootModel

from agent_brain import Brain, react
from agent_brain.memories import Message
from agent_brain.states import (
    AnswerState,
    MalformedOutputError,
    StateDefinitionError,
    TellState,
    Thought,
    Usage,
    UsageReported,
)
from agent_brain.states.output_types import shape_of
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.states.helpers import N

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int = Field(ge=0)


OSLO = City(name="Oslo", people=700_000)
CALL = Action(name="add")


async def test_closing_text_is_passed_on_and_no_model_is_asked():
    llm = ScriptedLLM()
    memory = FakeMemory("What?", [Message.assistant("Oslo.")])
    done = await run_state(AnswerState(llm), memory)

    assert (done.text, memory.updates, llm.calls) == ("", [], [])
    assert done.next_state is None


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message.user("More.")],
        [Message.assistant("", [CALL]), Message.tool("3", CALL)],
        [Message.assistant("Let me see.", [CALL])],
        [Message.assistant("Hm.", metadata={"thought": True})],
        [Message.assistant("")],
    ],
)
async def test_without_closing_text_the_model_is_asked(messages):
    llm = ScriptedLLM([["Os", "lo."]])
    memory = FakeMemory("What?", messages)
    done = await run_state(AnswerState(llm), memory)

    assert done.chunks == ["Os", "lo."]
    [[message]] = memory.updates
    assert (message.content, message.cause_by) == ("Oslo.", "AnswerState")
    llm.assert_complete()


async def test_the_answer_of_an_earlier_turn_does_not_answer_this_one():
    llm = ScriptedLLM(["Bergen."])
    memory = FakeMemory("What?", [Message.assistant("Oslo.")])
    await memory.set_goal("And then?")
    done = await run_state(AnswerState(llm), memory)

    assert done.text == "Bergen."


async def test_ask_asks_although_there_is_closing_text():
    llm = ScriptedLLM(["Oslo!"])
    memory = FakeMemory("What?", [Message.assistant("Oslo.")])

    assert (await run_state(AnswerState(llm, ask=True), memory)).text == "Oslo!"


async def test_without_a_model_what_was_said_is_the_answer():
    done = await run_state(AnswerState(), FakeMemory("What?"))

    assert (done.text, done.next_state) == ("", None)


async def test_the_goal_is_in_the_prompt_and_no_tools_are_offered():
    llm = ScriptedLLM(["Oslo."])
    await run_state(AnswerState(llm), FakeMemory("Which city?"))

    assert "Goal: Which city?" in llm.calls[0].messages[0].content
    assert llm.calls[0].tools == ()


async def test_thoughts_and_usage_stream_and_are_not_part_of_the_answer():
    llm = ScriptedLLM([[Thought("Hm."), "Oslo.", Usage(1, 2)]])
    memory = FakeMemory("What?")
    done = await run_state(AnswerState(llm), memory)

    assert (done.thoughts, done.text) == (["Hm."], "Oslo.")
    [reported] = done.of(UsageReported)
    assert reported.usage == Usage(1, 2)
    assert memory.updates[0][0].content == "Oslo."


async def test_an_empty_answer_goes_back_once():
    llm = ScriptedLLM([" ", "Oslo."])
    memory = FakeMemory("What?")
    await run_state(AnswerState(llm), memory)

    assert "empty" in llm.calls[1].messages[-1].content
    assert [m.content for m in memory.updates[0]] == ["Oslo."]


async def test_an_answer_that_is_empty_twice_is_an_error():
    memory = FakeMemory("What?")

    with pytest.raises(MalformedOutputError):
        await run_state(AnswerState(ScriptedLLM(["", [CALL]])), memory)
    assert memory.updates == []


async def test_with_a_place_to_go_the_run_is_not_over():
    memory = FakeMemory("What?", [Message.assistant("Oslo.")])
    done = await run_state(AnswerState(on_done=N.REASON), memory)

    assert done.next_state is N.REASON


@pytest.mark.parametrize("options", [{"ask": True}, {"output_type": City}])
def test_something_to_ask_and_no_model_is_refused(options):
    with pytest.raises(StateDefinitionError, match="llm"):
        AnswerState(**options)


async def test_plain_models_are_shown_text():
    llm = ScriptedLLM(["Oslo."], native=False)
    memory = FakeMemory("What?", [Message.assistant("", [CALL]), Message.tool("3", CALL)])
    await run_state(AnswerState(llm), memory)

    assert llm.calls[0].messages[-1].content == "Result of add: <data>3</data>"


# -- data ------------------------------------------------------------------------------------------


async def test_an_output_that_fits_is_the_runs_output():
    llm = ScriptedLLM([[OSLO.model_dump_json()]])
    memory = FakeMemory("What?", [Message.assistant("Oslo.")])
    done = await run_state(AnswerState(llm, output_type=City), memory)

    assert memory.control.output == OSLO
    assert done.text == memory.updates[0][0].content == '{"name":"Oslo","people":700000}'
    assert llm.calls[0].output_type is City


async def test_the_prompt_has_the_schema():
    llm = ScriptedLLM([OSLO.model_dump_json()])
    await run_state(AnswerState(llm, output_type=City), FakeMemory("What?"))

    assert any('"people"' in m.content for m in llm.calls[0].messages)


async def test_nothing_is_shown_before_it_is_valid():
    llm = ScriptedLLM([["{", "nonsense"], OSLO.model_dump_json()])
    done = await run_state(AnswerState(llm, output_type=City), FakeMemory("What?"))

    assert done.chunks == [OSLO.model_dump_json()]


async def test_an_output_that_does_not_fit_goes_back_once_with_every_fault():
    wrong = '{"people": -1}'
    llm = ScriptedLLM([wrong, OSLO.model_dump_json()])
    memory = FakeMemory("What?")
    await run_state(AnswerState(llm, output_type=City), memory)

    said, told = llm.calls[1].messages[-2:]
    assert said.content == wrong
    assert "name: Field required" in told.content
    assert "people: Input should be greater than or equal to 0" in told.content
    assert memory.control.output == OSLO
    assert len(memory.updates) == 1


async def test_an_output_that_does_not_fit_twice_is_an_error():
    memory = FakeMemory("What?")
    llm = ScriptedLLM(["no JSON", '{"people": 1}'], model="m")

    with pytest.raises(MalformedOutputError, match="City: name: Field required") as caught:
        await run_state(AnswerState(llm, output_type=City), memory)
    assert (caught.value.output, caught.value.model) == ('{"people": 1}', "m")
    assert memory.control.output is None
    assert memory.updates == []


GOOD = OSLO.model_dump_json()


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"Here it is: {GOOD}. Anything else?",
        f'For example {{"name": "Rome"}}. {GOOD}',
        f"<think>maybe {{Oslo}} or [x]</think>{GOOD}",
        GOOD.replace('"', "'"),
        GOOD.replace("}", ",}"),
        f"[{GOOD}]"[1:-1] + "\n",
    ],
)
async def test_json_among_other_words_is_found(text):
    memory = FakeMemory("What?")
    await run_state(AnswerState(ScriptedLLM([text]), output_type=City), memory)

    assert memory.control.output == OSLO


class Pay(BaseModel):
    to: str
    amount: int


class Payments(BaseModel):
    payments: list[Pay]
    note: str = ""


ANN, BOB = '{"to":"Ann","amount":12500}', '{"to":"Bob","amount":7}'


@pytest.mark.parametrize(
    ("cut", "whole", "output_type"),
    [
        (ANN[:-3], ANN, Pay),
        (f"Here it is:\n```json\n{ANN[:-3]}", ANN, Pay),
        (f"Here it is:\n```json\n{ANN[:-3]}\n```", ANN, Pay),
        (ANN[:-3].replace('"', "'"), ANN, Pay),
        (f"For example {BOB}. So: {ANN[:-3]}", ANN, Pay),
        (f'{{"payments": [{ANN}, {BOB[:-5]}', f'{{"payments": [{ANN}, {BOB}]}}', Payments),
        (f'{{"payments": [{ANN}, {BOB}', f'{{"payments": [{ANN}, {BOB}]}}', Payments),
        (f'{{"payments": [{ANN}, ...]}}', f'{{"payments": [{ANN}, {BOB}]}}', Payments),
        (f"[{ANN}, {BOB}", f"[{ANN}, {BOB}]", list[Pay]),
        (f"[{ANN}, {BOB}", f"[{ANN}, {BOB}]", tuple[Pay, ...]),
        ('{"value": "half of i', '{"value": "half of it"}', str),
        ("```\n125", "```\n12500\n```", int),
    ],
)
async def test_data_that_was_cut_is_not_completed_and_asked_again_once(
    cut: str, whole: str, output_type: Any
):
    llm = ScriptedLLM([cut, whole])
    memory = FakeMemory("What?")
    await run_state(AnswerState(llm, output_type=output_type), memory)

    assert memory.control.output == shape_of(output_type).read(whole)
    llm = ScriptedLLM([cut, cut])
    with pytest.raises(MalformedOutputError):
        await run_state(AnswerState(llm, output_type=output_type), FakeMemory("What?"))
    assert len(llm.calls) == 2


async def test_the_model_reads_that_its_data_was_cut():
    llm = ScriptedLLM([ANN[:-3], ANN])
    await run_state(AnswerState(llm, output_type=Pay), FakeMemory("What?"))

    assert "the JSON is not complete" in llm.calls[1].messages[-1].content


@pytest.mark.parametrize("text", ["[1, 2]", "```json\n[1, 2]\n```", "These: [1, 2]"])
async def test_the_output_may_be_a_list(text):
    memory = FakeMemory("What?")
    state = AnswerState(ScriptedLLM([text]), output_type=RootModel[list[int]])
    await run_state(state, memory)

    assert memory.control.output.root == [1, 2]


async def test_the_output_is_recorded_as_the_schema_names_its_fields():
    class Aliased(BaseModel):
        city_name: str = Field(alias="cityName")

    memory = FakeMemory("What?")
    llm = ScriptedLLM(['{"cityName": "Oslo"}'])
    await run_state(AnswerState(llm, output_type=Aliased), memory)

    assert memory.updates[0][0].content == '{"cityName":"Oslo"}'


async def test_an_empty_text_is_an_output_too():
    llm = ScriptedLLM([Action(name="final_result", args={"value": ""})])
    result = await Brain(react(llm, output_type=str)).run("What is left?")
    assert (result.output, result.answer, len(llm.calls)) == ("", "", 1)


@pytest.mark.parametrize(("kind", "output"), [(str, ""), (str | None, ""), (int | None, None)])
async def test_an_empty_text_that_is_told_is_data_where_text_is(kind, output):
    memory = FakeMemory("What?")
    done = await run_state(TellState(lambda memory: "", output_type=kind), memory)
    assert (memory.control.output, done.text) == (output, "")
