"""Events of a run become a well-formed UI message stream."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain import Brain, Limits, react
from agent_brain.errors import BrainUseError
from agent_brain.memories import Message, WindowedMemory
from agent_brain.nets import ParallelState, SubnetState
from agent_brain.run import Run
from agent_brain.serving.web.vercel.translate import UIMessageTranslator
from agent_brain.states import Finish, ProviderCall, Usage
from agent_brain.states.events import (
    ActionFinished,
    AgentEvent,
    MessageReceived,
    PartialOutput,
    RunStarted,
    TextDelta,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.models import Gate, PartsLLM
from tests.serving.web.agents import TOOLS, Ask, add
from tests.serving.web.vercel.wellformed import check
from tests.support.clock import clock_backend, fake_clock
from tests.support.node import npm_packages, run_node
from tests.support.own_events import FIELDS, reading_net
from tests.support.random_runs import runs
from tests.support.thorough import examples

ADD = Action(name="add", args={"a": 1, "b": 2}, id="c1")
PAY = Action(name="pay", args={"amount": 5}, id="c2")
ASK = Action(name="ask_user", args={"question": "Who?"}, id="c3")
VERIFY = Path(__file__).with_name("verify.mjs")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return clock_backend(request.param)


def translate(events: list[AgentEvent], **options: Any) -> list[dict[str, Any]]:
    to_parts = UIMessageTranslator(session="s/1", message_id="m1", **options)
    found: list[dict[str, Any]] = []
    for event in events:
        found += to_parts.translate(event)
    found += to_parts.fail(BrainUseError("It was cut off"))
    json.dumps(found, ensure_ascii=False).encode()
    return found


async def translate_run(run: Run[Any], **options: Any) -> list[dict[str, Any]]:
    events: list[AgentEvent] = []
    try:
        async with run:
            async for event in run:
                events.append(event)
    except Exception:
        assert events[-1].kind == "run_failed"
    found = translate(events, **options)
    check(found)
    return found


def types(chunks: list[dict[str, Any]]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


def of_type(chunks: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [chunk for chunk in chunks if chunk["type"] == kind]


def brain(*turns: Any, **options: Any) -> Brain[Any]:
    return Brain("react", tools=TOOLS, llm=ScriptedLLM(turns), **options)


@given(runs(), st.booleans())
def test_any_sequence_of_events_becomes_a_well_formed_stream(
    events: list[AgentEvent], visible: bool
) -> None:
    check(translate(events, show_tools=visible))


@given(runs(), st.integers(1, 30))
def test_a_stream_that_is_cut_off_anywhere_is_well_formed(
    events: list[AgentEvent], length: int
) -> None:
    check(translate(events[:length]))


def test_the_ai_sdk_accepts_any_of_these_streams(tmp_path: Path) -> None:
    packages = npm_packages("ai@7.0.173")
    streams: list[list[dict[str, Any]]] = []

    @settings(max_examples=examples(200), database=None)
    @given(runs(), st.booleans())
    def collect(events: list[AgentEvent], visible: bool) -> None:
        streams.append(translate(events, show_tools=visible))

    collect()
    file = tmp_path / "streams.json"
    file.write_text(json.dumps(streams))
    assert run_node(VERIFY, packages, str(file)) == [{"checked": len(streams), "problems": []}]


@pytest.mark.anyio
async def test_text_calls_and_results_are_streamed_in_order() -> None:
    found = await translate_run(brain(["Let me see.", ADD], "It is 3.").stream("1+2?"))
    assert types(found) == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "tool-input-start",
        "tool-input-available",
        "tool-output-available",
        "finish-step",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert of_type(found, "tool-input-available")[0]["input"] == {"a": 1, "b": 2}
    assert of_type(found, "tool-output-available")[0]["output"] == "3"


def test_an_object_that_grows_is_one_part_also_without_the_id_of_its_response() -> None:
    growing = [PartialOutput({"a": 1}), PartialOutput({"a": 12})]
    parts = of_type(translate([RunStarted(None), *growing]), "data-output")
    assert [part["data"] for part in parts] == [{"a": 1}, {"a": 12}]
    assert {part["id"] for part in parts} == {"output"}


def test_thoughts_are_reasoning() -> None:
    found = translate([RunStarted(None), TextDelta("Hm.", thought=True), TextDelta("Hi.")])
    assert types(found)[1:8] == [
        "start-step",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "text-start",
        "text-delta",
        "text-end",
    ]


@pytest.mark.anyio
async def test_hidden_calls_are_left_out_unless_they_wait_for_approval() -> None:
    found = await translate_run(brain([ADD, PAY]).stream("Go"), show_tools=False)
    assert [chunk["toolCallId"] for chunk in of_type(found, "tool-input-available")] == ["c2"]
    [request] = of_type(found, "tool-approval-request")
    assert request["approvalId"] == "wait:s%2F1:c2"
    assert found[-1]["finishReason"] == "tool-calls"


@pytest.mark.anyio
@pytest.mark.parametrize("show_tools", [True, False])
async def test_a_question_is_a_data_part_that_names_its_call(show_tools: bool) -> None:
    found = await translate_run(brain([ASK]).stream("Go"), show_tools=show_tools)
    [call] = of_type(found, "tool-input-available")
    assert (call["toolCallId"], call["toolName"]) == ("c3", "ask_user")
    [question] = of_type(found, "data-question")
    assert question["id"] == "wait:s%2F1:c3"
    assert question["data"] == {"prompt": "Who?", "toolCallId": "c3"}


@pytest.mark.anyio
async def test_calls_of_branches_name_their_path() -> None:
    chemist = react(ScriptedLLM([[ADD], "Salt."]))
    net = {Ask.BOTH: ParallelState({"poet": react(ScriptedLLM(["Blue."])), "chemist": chemist})}
    found = await translate_run(Brain(net, tools=[add]).stream("What is the sea?"))
    [call] = of_type(found, "tool-input-available")
    assert call["toolCallId"] == "BOTH/chemist/c1"
    assert call["toolMetadata"] == {"path": ["BOTH", "chemist"]}
    assert {chunk["delta"] for chunk in of_type(found, "reasoning-delta")} == {"Blue.", "Salt."}


@pytest.mark.anyio
async def test_what_an_inner_net_has_said_is_not_said_again_as_the_answer() -> None:
    net = {Ask.BOTH: SubnetState(react(ScriptedLLM(["Blue."])))}
    found = await translate_run(Brain(net).stream("What is the sea?"))
    assert [chunk["delta"] for chunk in of_type(found, "text-delta")] == ["Blue."]


@pytest.mark.anyio
async def test_a_tool_that_fails_gives_an_error() -> None:
    found = await translate_run(brain([Action(name="fail", id="c5")], "Sorry.").stream("Print"))
    assert "out of paper" in of_type(found, "tool-output-error")[0]["errorText"]


@pytest.mark.parametrize(
    ("result", "output"),
    [("text", "text"), ('{"a": 1}', {"a": 1}), ("[1]", [1]), ("[not JSON", "[not JSON"), ("", "")],
)
def test_objects_and_lists_are_told_as_such(result: str, output: object) -> None:
    found = translate([RunStarted(None), ActionFinished(ADD, Message.tool(result, ADD))])
    assert of_type(found, "tool-output-available")[0]["output"] == output


@pytest.mark.parametrize(("reason", "told"), [("stop", "stop"), ("length", "length")])
@pytest.mark.anyio
async def test_the_finish_reason_is_that_of_the_model(reason: Any, told: str) -> None:
    found = await translate_run(brain(["Hi", Finish(reason)]).stream("Hi"))
    assert found[-1]["finishReason"] == told
    assert found[-1]["messageMetadata"].get("partial", False) == (reason != "stop")


@pytest.mark.anyio
async def test_usage_and_stop_reason_are_metadata() -> None:
    found = await translate_run(
        brain(["Hm.", ADD, Usage(10, 2)], "3", limits=Limits(max_steps=1)).stream("1+2?")
    )
    metadata = found[-1]["messageMetadata"]
    assert (metadata["stopReason"], metadata["usage"]["totalTokens"]) == ("max_steps", 12)
    assert found[-1]["finishReason"] == "other"


def test_a_message_that_is_sent_to_the_run_is_shown() -> None:
    found = translate([RunStarted(None), MessageReceived(Message.user("Faster", id="u1"))])
    [part] = of_type(found, "steering-message")
    assert part == {
        "type": "steering-message",
        "id": "u1",
        "parts": [{"type": "text", "text": "Faster"}],
    }


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["cancelled", "failed", "a limit", "done"])
async def test_text_that_was_cut_off_is_marked(end: str) -> None:
    last = {"failed": OSError("gone"), "done": " more."}.get(end)
    limits = Limits(timeout=0.2 if end == "a limit" else None)
    llm = PartsLLM("Half an", last or Gate())
    said = Brain(llm=llm, limits=limits)
    events: list[AgentEvent] = []
    with suppress(OSError), fake_clock():
        async with said.stream("Go") as run:
            async for event in run:
                events.append(event)
                if isinstance(event, TextDelta) and end == "cancelled":
                    run.cancel()
    found = translate(events)
    check(found)
    marks = [chunk["messageMetadata"] for chunk in of_type(found, "message-metadata")]
    assert marks == ([] if end == "done" else [{"partial": True}])
    if marks:
        assert types(found).index("message-metadata") < types(found).index(
            {"cancelled": "abort", "failed": "error"}.get(end, "finish")
        )


@pytest.mark.anyio
async def test_a_cancelled_run_is_aborted_and_leaves_no_call_open() -> None:
    events: list[AgentEvent] = []
    async with brain([ADD], "3").stream("1+2?") as run:
        async for event in run:
            events.append(event)
            if event.kind == "action_requested":
                run.cancel()
    found = translate(events)
    check(found)
    assert types(found)[-3:] == ["tool-output-error", "finish-step", "abort"]


@pytest.mark.anyio
async def test_an_event_of_a_class_of_its_own_is_data():
    found = await translate_run(Brain(reading_net()).stream("Read."))
    [own] = [each for each in found if each["type"] == "data-pages_read"]
    assert own["data"] == FIELDS

    net = {Ask.BOTH: ParallelState({"reader": reading_net()})}
    found = await translate_run(Brain(net).stream("Read."))
    [own] = [each for each in found if each["type"] == "data-pages_read"]
    assert own["data"] == {**FIELDS, "path": ["BOTH", "reader"]}


@pytest.mark.anyio
async def test_what_a_memory_does_is_data():
    memory, before = WindowedMemory(max_messages=2), Message.user("Before")
    await memory.update([before, Message.user("This")])
    talking = Brain("react", memory, llm=ScriptedLLM(["Hi"]))
    found = await translate_run(talking.stream("Hello"))
    own = next(each for each in found if each["type"] == "data-trimmed")
    assert own["data"] == {"ids": [before.id]}


@pytest.mark.anyio
async def test_tools_of_a_provider_and_its_pictures_are_shown() -> None:
    image: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = ProviderCall("p1", "web_search", {"query": "a"}, [{"url": "b"}])
    cited: Any = ["https://e.org/a", {"url": "https://e.org/b", "title": "B"}]
    end = Finish("stop", metadata={"images": [image], "citations": cited})
    turn = [call, "It is b.", end]
    found = await translate_run(brain(turn).stream("What?"))

    (shown,) = of_type(found, "tool-input-available")
    assert (shown["toolName"], shown["input"]) == ("web_search", {"query": "a"})
    (output,) = of_type(found, "tool-output-available")
    assert output["output"] == [{"url": "b"}]
    (file,) = of_type(found, "file")
    assert (file["mediaType"], file["url"]) == ("image/png", "data:image/png;base64,AAAA")
    first, second = of_type(found, "source-url")
    assert (first["url"], first.get("title")) == ("https://e.org/a", None)
    assert (second["url"], second["title"]) == ("https://e.org/b", "B")
    assert first["sourceId"] != second["sourceId"]
