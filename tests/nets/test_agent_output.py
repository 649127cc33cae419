"""The prompt of an agent holds for each of its calls, and data comes in its own call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from agent_brain import Brain, MessagesMemory, Net, tool
from agent_brain.errors import MalformedOutputError, StateDefinitionError
from agent_brain.nets import HandoffAgent, handoff, react, refact, reflexion, self_consistency
from agent_brain.states import TextDelta
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.asyncio

RULE = "Above 7 points, block the card. Never reveal account numbers."


class Flight(BaseModel):
    number: str
    price: int = Field(ge=0)


class NoFlight(BaseModel):
    """No flight fits."""


class Refusal(BaseModel):
    why: str


class Findings(BaseModel):
    topic: str = ""
    facts: list[str] = []


class Report(BaseModel):
    findings: list[Findings] = []


@tool
def look_up(city: str) -> str:
    """Look up flights."""
    return "LH1 for 99 euros"


LOOK = Action(name="look_up", args={"city": "Oslo"})
LH1: dict[str, Any] = {"number": "LH1", "price": 99}


def result_call(args: dict[str, Any], member: str = "") -> Action:
    return Action(name=f"final_result{member and '_' + member}", args=args)


def nets(llm: ScriptedLLM, **options: Any) -> dict[str, Net]:
    agent = {k: v for k, v in options.items() if k != "answer_llm"}
    return {
        "react": react(llm, **options),
        "refact": refact(llm, **options),
        "handoff": handoff(llm, {"triage": HandoffAgent(**agent)}),
    }


KINDS = ["react", "refact", "handoff"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("native", "turns", "options"),
    [
        (True, ["Hm.", '{"number": "LH1", "price": 99}'], {"output_type": Flight}),
        (False, ["I know it.", "It is LH1."], {}),
        (False, ["I know it.", '{"number": "LH1", "price": 99}'], {"output_type": Flight}),
    ],
    ids=["text in place of data", "text mode", "data in text mode"],
)
async def test_the_prompt_is_in_every_call_of_the_agent(
    kind: str, native: bool, turns: list[Any], options: dict[str, Any]
):
    llm = ScriptedLLM(turns, native=native)
    await Brain(nets(llm, prompt=RULE, **options)[kind], tools=[look_up]).run("Which flight?")

    llm.assert_complete()
    assert [RULE in call.messages[0].content for call in llm.calls] == [True, True]


async def test_the_prompt_is_in_the_call_of_another_model_that_answers():
    llm, writer = ScriptedLLM(["Hm."]), ScriptedLLM(["LH1."])
    result = await Brain(react(llm, answer_llm=writer, prompt=RULE)).run("Which flight?")

    assert result.answer == "LH1."
    assert RULE in writer.calls[0].messages[0].content


async def test_a_prompt_that_is_a_function_is_in_every_call_too():
    async def told(memory: Any) -> str:
        return f"{RULE} Goal: {(await memory.goal())[0].content}"

    llm = ScriptedLLM(["I know it.", "LH1."], native=False)
    await Brain(react(llm, prompt=told), tools=[look_up]).run("Which?")

    for call in llm.calls:
        assert f"{RULE} Goal: Which?" in call.messages[0].content
    assert "look_up" in llm.calls[0].messages[0].content


async def test_in_the_text_mode_a_prompt_of_ones_own_still_says_how_tools_are_called():
    llm = ScriptedLLM([[LOOK], "So.", "LH1."], native=False)

    result = await Brain(react(llm, prompt=RULE), tools=[look_up]).run("Which flight?")

    assert "look_up" in llm.calls[0].messages[0].content
    assert "exactly one JSON object" in llm.calls[0].messages[0].content
    assert [m.name for m in result.messages if m.role.value == "tool"] == ["look_up"]


@pytest.mark.parametrize("kind", KINDS)
async def test_data_comes_in_the_agents_own_call(kind: str):
    on_track = ['{"on_track": true}'] if kind == "refact" else []
    llm = ScriptedLLM([[LOOK], *on_track, [result_call(LH1)]])
    net = nets(llm, prompt=RULE, output_type=Flight)[kind]
    result = await Brain(net, tools=[look_up]).run("Which flight?")

    llm.assert_complete()
    assert result.output == Flight(number="LH1", price=99)
    assert result.answer == result.messages[-1].content == '{"number":"LH1","price":99}'
    assert not result.messages[-1].tool_calls
    assert result.usage.requests == len(llm.calls)
    offered = llm.calls[0].tools
    assert [each.name for each in offered][:2] == ["look_up", "final_result"]


async def test_the_reader_gets_the_data_and_no_call_of_the_tool_for_it():
    llm = ScriptedLLM([["Let me see. ", LOOK], ["Done. ", result_call(LH1)]])
    brain = Brain(react(llm, output_type=Flight), tools=[look_up])
    async with brain.stream("Which flight?") as run:
        events = [event async for event in run]

    assert "".join(e.text for e in events if isinstance(e, TextDelta) and not e.thought) == (
        '{"number":"LH1","price":99}'
    )
    assert [e.action.name for e in events if e.kind == "action_requested"] == ["look_up"]
    assert (
        "".join(
            [
                chunk
                async for chunk in Brain(
                    react(ScriptedLLM([[result_call(LH1)]]), output_type=Flight)
                ).answer("?")
            ]
        )
        == '{"number":"LH1","price":99}'
    )


async def test_data_that_does_not_fit_goes_back_once_with_what_was_written():
    llm = ScriptedLLM([[result_call({"number": "LH1", "price": -1})], [result_call(LH1)]])
    result = await Brain(react(llm, output_type=Flight)).run("Which flight?")

    assert result.output == Flight(number="LH1", price=99)
    said, problem = llm.calls[1].messages[-2:]
    assert '"price": -1' in said.content
    assert "price: Input should be greater than or equal to 0" in problem.content


async def test_data_that_does_not_fit_twice_is_an_error():
    wrong = {"number": "LH1"}
    llm = ScriptedLLM([[result_call(wrong)], [result_call(wrong)]])
    with pytest.raises(MalformedOutputError, match="price: Field required"):
        await Brain(react(llm, output_type=Flight)).run("Which flight?")


async def test_two_answers_in_one_response_go_back():
    llm = ScriptedLLM([[result_call(LH1), result_call(LH1)], [result_call(LH1)]])
    result = await Brain(react(llm, output_type=Flight)).run("Which flight?")

    assert result.output == Flight(number="LH1", price=99)
    assert "give one answer" in llm.calls[1].messages[-1].content


async def test_calls_beside_the_answer_run_first_and_the_answer_is_asked_for_again():
    llm = ScriptedLLM([[result_call(LH1), LOOK], [result_call(LH1)]])
    result = await Brain(react(llm, output_type=Flight), tools=[look_up]).run("Which flight?")

    assert result.output == Flight(number="LH1", price=99)
    assert [m.content for m in result.messages if m.role.value == "tool"] == ["LH1 for 99 euros"]


async def test_a_run_that_was_interrupted_behind_the_data_asks_for_it_no_more():
    llm = ScriptedLLM([[result_call(LH1)]])
    memory = MessagesMemory()
    brain = Brain(react(llm, output_type=Flight), memory)
    async with brain.stream("Which flight?") as run:
        async for event in run:
            if event.kind == "state_exited":
                break
    result = await brain.resume()

    assert result.output == Flight(number="LH1", price=99)
    assert len(llm.calls) == 1


async def test_data_of_an_earlier_turn_is_not_the_answer_of_this_one():
    other: dict[str, Any] = {"number": "LH2", "price": 5}
    llm = ScriptedLLM([[result_call(LH1)], "Hm.", '{"number": "LH2", "price": 5}'])
    brain = Brain(react(llm, output_type=Flight))
    await brain.run("Which flight?")

    assert (await brain.run("And now?")).output == Flight(**other)


async def test_a_tool_with_the_name_of_the_one_for_the_answer_is_refused():
    @tool
    def final_result() -> str:
        """Return something else."""
        return ""

    brain = Brain(react(ScriptedLLM(["?"]), output_type=Flight), tools=[final_result])
    with pytest.raises(StateDefinitionError, match="'final_result' has the name"):
        await brain.run("Which flight?")


UNION = Flight | NoFlight
WRONG = '{"number": "LH1", "price": "cheap"}'


async def test_each_member_of_a_union_has_a_tool():
    llm = ScriptedLLM([[result_call({}, "NoFlight")]])
    result = await Brain(react(llm, output_type=UNION)).run("Which flight?")

    assert result.output == NoFlight()
    assert [t.name for t in llm.calls[0].tools] == ["final_result_Flight", "final_result_NoFlight"]


async def test_a_malformed_member_is_corrected_and_does_not_become_another_one():
    wrong = {"number": "LH1", "price": "cheap"}
    llm = ScriptedLLM([[result_call(wrong, "Flight")], [result_call(LH1, "Flight")]])
    result = await Brain(react(llm, output_type=UNION)).run("Which flight?")
    assert result.output == Flight(number="LH1", price=99)

    llm = ScriptedLLM([[result_call(wrong, "Flight")], [result_call(wrong, "Flight")]])
    with pytest.raises(MalformedOutputError, match="price"):
        await Brain(react(llm, output_type=UNION)).run("Which flight?")


SAID: dict[str, tuple[str, Any]] = {
    "by name": ('{"type": "Flight", "value": {"number": "LH1", "price": 99}}', Flight(**LH1)),
    "by name, empty": ('{"type": "NoFlight", "value": {}}', NoFlight()),
    "by name, one field": ('{"type": "Refusal", "value": {"why": "no"}}', Refusal(why="no")),
    "a value": ('{"value": {"why": "no"}}', Refusal(why="no")),
    "the data alone": ('{"number": "LH1", "price": 99}', Flight(**LH1)),
    "empty data alone": ("{}", NoFlight()),
    "in a fence": ('```json\n{"number": "LH1", "price": 99}\n```', Flight(**LH1)),
    "no object": ("null", None),
    "no object, by name": ('{"type": "NoneType", "value": null}', None),
}


@pytest.mark.parametrize(("said", "expected"), SAID.values(), ids=SAID)
async def test_a_model_without_tools_names_the_member(said: str, expected: Any):
    llm = ScriptedLLM(["I know it.", said], native=False)
    kind = Flight | NoFlight | Refusal | None
    result = await Brain(react(llm, output_type=kind)).run("Which flight?")

    assert (result.output, type(result.output)) == (expected, type(expected))
    schema = llm.calls[1].output_type.model_json_schema()  # type: ignore[union-attr]
    names = ["Flight", "NoFlight", "Refusal", "NoneType"]
    assert schema["properties"]["type"]["enum"] == names


UNFIT: dict[str, str] = {
    "a field of one, wrong": WRONG,
    "by name, wrong": f'{{"type": "Flight", "value": {WRONG}}}',
    "by name, data of another": '{"type": "Flight", "value": {}}',
    "an unknown name": '{"type": "Train", "value": {}}',
    "fields of none": '{"train": 1}',
}


@pytest.mark.parametrize("said", UNFIT.values(), ids=UNFIT)
async def test_data_that_fits_no_member_goes_back_with_the_names(said: str):
    fits = '{"type": "Flight", "value": {"number": "LH1", "price": 99}}'
    llm = ScriptedLLM(["I know it.", said, fits], native=False)
    result = await Brain(react(llm, output_type=UNION)).run("Which flight?")

    assert result.output == Flight(**LH1)
    assert len(llm.calls) == 3


class Trip(BaseModel):
    there: Flight | NoFlight
    back: Flight | NoFlight = NoFlight()


@dataclass
class Wishes:
    seat: str = "any"
    meals: int = 0


INSIDE: dict[str, tuple[Any, Any, Any]] = {
    "in a list": (list[UNION], [{"number": "LH1", "price": "cheap"}], [LH1]),
    "in a field": (Trip, {"there": {"number": "LH1", "price": "cheap"}}, {"there": LH1}),
    "in a mapping": (dict[str, UNION], {"a": {"number": "LH1"}}, {"a": LH1}),
    "fields that do not exist": (Wishes, {"seats": "window"}, {"seat": "window"}),
}


@pytest.mark.parametrize("mode", ["tool", "text"])
@pytest.mark.parametrize(("kind", "wrong", "right"), INSIDE.values(), ids=INSIDE)
async def test_data_with_a_mistake_does_not_become_an_object_of_defaults(
    kind: Any, wrong: Any, right: Any, mode: str
):
    if mode == "tool":
        wrapped = isinstance(wrong, list)
        calls = [result_call({"value": each} if wrapped else each) for each in (wrong, right)]
        llm = ScriptedLLM([[each] for each in calls])
    else:
        llm = ScriptedLLM(["Hm.", json.dumps(wrong), json.dumps(right)], native=False)
    result = await Brain(react(llm, output_type=kind)).run("Which flight?")

    assert result.output == TypeAdapter(kind).validate_python(right)
    assert "it has the unknown field" in llm.calls[-1].messages[-1].content


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


async def test_a_union_with_a_discriminator_is_left_as_it_is():
    pet = Annotated[Cat | Dog, Field(discriminator="kind")]
    llm = ScriptedLLM(["Hm.", '{"value": {"kind": "dog"}}'])
    result = await Brain(react(llm, output_type=pet)).run("Which?")

    assert result.output == Dog(kind="dog")
    assert [t.name for t in llm.calls[0].tools] == ["final_result"]


async def test_a_model_that_calls_no_member_is_told_their_names():
    llm = ScriptedLLM([[result_call(LH1)], [result_call(LH1, "Flight")]])
    result = await Brain(react(llm, output_type=UNION)).run("Which flight?")

    assert result.output == Flight(**LH1)
    said = llm.calls[1].messages[-1].content
    assert "no tool 'final_result': call final_result_Flight or final_result_NoFlight" in said


class Accept(BaseModel):
    why: str


class Decline(BaseModel):
    why: str


TOLD_AGAIN = {
    "react": react,
    "reflexion": partial(reflexion, evaluate=lambda memory, answer: ""),
    "self_consistency": partial(self_consistency, paths=3),
}


@pytest.mark.parametrize("make", TOLD_AGAIN.values(), ids=TOLD_AGAIN)
async def test_members_with_the_same_fields_stay_what_they_were(make: Any):
    llm = ScriptedLLM([result_call({"why": "too far"}, "Decline")] * 3)
    result = await Brain(make(llm, output_type=Accept | Decline)).run("Will you come?")

    assert result.output == Decline(why="too far")
    assert result.answer == '{"type":"Decline","value":{"why":"too far"}}'


MISNAMED: dict[str, tuple[Any, list[Any]]] = {
    "text": (Findings, ['{"fact": ["a"]}', '{"fact": ["a"]}', '{"facts": ["a"]}']),
    "a call": (Findings, [result_call({"fact": ["a"]}), result_call({"facts": ["a"]})]),
    "a wrapped one": (
        Findings | None,
        [result_call({"value": {"fact": ["a"]}}), result_call({"value": {"facts": ["a"]}})],
    ),
    "a member": (
        Findings | NoFlight,
        [result_call({"fact": ["a"]}, "Findings"), result_call({"facts": ["a"]}, "Findings")],
    ),
    "an inner one": (
        Report,
        [
            result_call({"findings": [{"topic": "sea"}, {"fact": ["a"]}]}),
            result_call({"findings": [{"facts": ["a"]}]}),
        ],
    ),
}


@pytest.mark.parametrize("kind", MISNAMED)
async def test_an_object_that_has_none_of_the_fields_that_were_written_is_corrected(
    kind: str,
) -> None:
    output_type, turns = MISNAMED[kind]
    llm = ScriptedLLM(turns)
    result = await Brain(react(llm, output_type=output_type)).run("What is known of the sea?")
    output: Any = result.output
    found = output.findings[0] if kind == "an inner one" else output
    assert found == Findings(facts=["a"])
    asked = "".join(message.content for message in llm.calls[-1].messages)
    assert "it has the unknown fields 'fact' and lacks 'topic', 'facts'" in asked


@pytest.mark.parametrize(
    ("output_type", "args", "member"),
    [
        (Findings, {}, ""),
        (Findings, {"topic": "sea", "sure": True}, ""),
        (Findings | Refusal, {}, "Findings"),
        (dict[str, Findings], {"a": {}}, ""),
    ],
)
async def test_an_object_may_leave_out_what_has_a_default_and_say_more(
    output_type: Any, args: dict[str, Any], member: str
) -> None:
    llm = ScriptedLLM([result_call(args, member)])
    result = await Brain(react(llm, output_type=output_type)).run("What is known of the sea?")
    assert result.stop_reason == "done"
    llm.assert_complete()


async def test_a_member_that_is_named_in_text_may_be_empty() -> None:
    llm = ScriptedLLM(["Hm.", '{"type": "Findings", "value": {}}'])
    result = await Brain(react(llm, output_type=Findings | Refusal)).run("What is known?")
    assert result.output == Findings()
