"""Events of a run become a well-formed stream of AG-UI."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import BaseEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain import Brain, Limits, react
from agent_brain.errors import BrainUseError
from agent_brain.memories import Message, WindowedMemory
from agent_brain.nets import ParallelState, SubnetState
from agent_brain.run import Run
from agent_brain.serving.web.ag_ui.translate import AgUiTranslator
from agent_brain.states import Finish, ProviderCall, Usage
from agent_brain.states.events import (
    ActionDelta,
    ActionRequested,
    AgentEvent,
    Position,
    RunFinished,
    RunStarted,
    TextDelta,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.models import Gate, PartsLLM
from tests.serving.web.ag_ui.wellformed import check, wire
from tests.serving.web.agents import TOOLS, Ask, add
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


def translator(**options: Any) -> AgUiTranslator:
    return AgUiTranslator("thread", "run", session="s/1", **options)


def translate(events: list[AgentEvent], **options: Any) -> list[dict[str, Any]]:
    to_ag_ui = translator(**options)
    found: list[BaseEvent] = []
    for event in events:
        found += to_ag_ui.translate(event)
    return wire([*found, *to_ag_ui.fail(BrainUseError("It was cut off"))])


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


def types(events: list[dict[str, Any]], *left_out: str) -> list[str]:
    return [event["type"] for event in events if not event["type"].startswith(left_out)]


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def brain(*turns: Any, **options: Any) -> Brain[Any]:
    return Brain("react", tools=TOOLS, llm=ScriptedLLM(turns), **options)


@given(runs(), st.booleans(), st.sampled_from([(), ("pick_color",)]))
def test_any_sequence_of_events_becomes_a_well_formed_stream(
    events: list[AgentEvent], visible: bool, front_end: tuple[str, ...]
) -> None:
    check(translate(events, show_tools=visible, front_end=front_end))


@given(runs(), st.integers(1, 30))
def test_a_stream_that_is_cut_off_anywhere_is_well_formed(
    events: list[AgentEvent], length: int
) -> None:
    check(translate(events[:length]))


@given(runs())
def test_every_call_that_is_shown_has_a_result_unless_the_run_waits(
    events: list[AgentEvent],
) -> None:
    last = events[-1]
    if last.kind == "run_finished" and last.stop_reason in ("approval", "input"):
        return
    open_calls = set()
    for event in translate(events):
        if event["type"] == "TOOL_CALL_START":
            open_calls.add(event["toolCallId"])
        elif event["type"] == "TOOL_CALL_RESULT":
            open_calls.discard(event["toolCallId"])
    assert not open_calls


def test_the_official_client_accepts_any_of_these_streams(tmp_path: Path) -> None:
    packages = npm_packages("@ag-ui/client@1.0.0")
    streams: list[list[dict[str, Any]]] = []

    @settings(max_examples=examples(200), database=None)
    @given(runs(), st.booleans(), st.sampled_from([(), ("pick_color",)]))
    def collect(events: list[AgentEvent], visible: bool, front_end: tuple[str, ...]) -> None:
        streams.append(translate(events, show_tools=visible, front_end=front_end))

    collect()
    file = tmp_path / "streams.json"
    file.write_text(json.dumps(streams))
    assert run_node(VERIFY, packages, str(file)) == [{"checked": len(streams), "problems": []}]


@pytest.mark.anyio
async def test_text_calls_and_results_are_streamed_in_order() -> None:
    found = await translate_run(brain(["Let me see.", ADD], "It is 3.").stream("1+2?"))
    assert types(found, "STEP") == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    text, call = of_type(found, "TEXT_MESSAGE_START")[0], of_type(found, "TOOL_CALL_START")[0]
    assert call["parentMessageId"] == text["messageId"]
    assert of_type(found, "TOOL_CALL_RESULT")[0]["content"] == "3"
    assert found[-1]["result"] == {"answer": "It is 3.", "stopReason": "done"}


@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize(("first", "then"), [("pick_color", "add"), ("add", "pick_color")])
def test_arguments_that_came_for_another_tool_are_of_a_call_that_is_not_run(
    first: str, then: str, visible: bool
) -> None:
    at = Position("run_1", 0, "A", ("B",))
    events: list[AgentEvent] = [
        RunStarted(None),
        ActionDelta("c1", first, "{", response_id="resp_1", at=at),
        ActionRequested(Action(name=then, args={}, id="c1"), response_id="resp_1", at=at),
        RunFinished("done", "Red."),
    ]
    found = translate(events, show_tools=visible, front_end=("pick_color",))
    check(found)
    started = [event["toolCallId"] for event in of_type(found, "TOOL_CALL_START")]
    names = [event["toolCallName"] for event in of_type(found, "TOOL_CALL_START")]
    assert names == [name for name in (first, then) if visible or name == "pick_color"]
    assert [event["toolCallId"] for event in of_type(found, "TOOL_CALL_RESULT")] == started


@pytest.mark.anyio
async def test_states_are_steps() -> None:
    found = await translate_run(brain("Hello.").stream("Hi"))
    assert [event["stepName"] for event in of_type(found, "STEP_STARTED")] == [
        "REASONING",
        "ANSWER",
    ]


def test_thoughts_are_reasoning() -> None:
    events: list[AgentEvent] = [
        RunStarted(None),
        TextDelta("Hm.", thought=True, response_id="r"),
        TextDelta("Hi.", response_id="r"),
    ]
    found = translate(events)
    assert types(found)[1:] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_ERROR",
    ]


@pytest.mark.anyio
async def test_hidden_calls_are_left_out() -> None:
    run = brain([ADD], "It is 3.").stream("1+2?")
    assert not [t for t in types(await translate_run(run, show_tools=False)) if "TOOL" in t]


@pytest.mark.anyio
async def test_a_call_that_waits_for_approval_is_shown_although_calls_are_hidden() -> None:
    found = await translate_run(brain([ADD, PAY]).stream("Pay 5"), show_tools=False)
    assert [call["toolCallId"] for call in of_type(found, "TOOL_CALL_START")] == ["c2"]
    interrupt = found[-1]["outcome"]["interrupts"][0]
    assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", "c2")
    assert interrupt["id"] == "wait:s%2F1:c2"


@pytest.mark.anyio
async def test_a_question_is_an_interrupt() -> None:
    found = await translate_run(brain([ASK]).stream("Go"))
    interrupt = found[-1]["outcome"]["interrupts"][0]
    assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Who?")


@pytest.mark.anyio
async def test_branches_are_subagents() -> None:
    net = {
        Ask.BOTH: ParallelState(
            {
                "poet": react(ScriptedLLM(["Blue."])),
                "chemist": react(ScriptedLLM([[ADD], "Salt."])),
            }
        )
    }
    found = await translate_run(Brain(net, tools=[add]).stream("What is the sea?"))
    started = {event["subagentRunId"]: event for event in of_type(found, "SUBAGENT_STARTED")}
    assert {event["name"] for event in started.values()} == {"poet", "chemist"}
    call = of_type(found, "TOOL_CALL_START")[0]
    assert call["toolCallId"] == "BOTH/chemist/c1"
    assert started[call["subagentRunId"]]["name"] == "chemist"
    said = {
        started[event["subagentRunId"]]["name"]: event["delta"]
        for event in of_type(found, "REASONING_MESSAGE_CONTENT")
    }
    assert said == {"poet": "Blue.", "chemist": "Salt."}
    assert "subagentRunId" not in of_type(found, "TEXT_MESSAGE_START")[0]


@pytest.mark.anyio
async def test_what_an_inner_net_has_said_is_not_said_again_as_the_answer() -> None:
    net = {Ask.BOTH: SubnetState(react(ScriptedLLM(["Blue."])))}
    found = await translate_run(Brain(net).stream("What is the sea?"))
    assert [each["delta"] for each in of_type(found, "TEXT_MESSAGE_CONTENT")] == ["Blue."]


@pytest.mark.anyio
async def test_a_subnet_that_waits_is_a_suspended_subagent() -> None:
    inner = react(ScriptedLLM([[PAY], "Paid."]))
    outer = Brain({Ask.BOTH: SubnetState(inner)}, tools=TOOLS)
    found = await translate_run(outer.stream("Pay"))
    finished = of_type(found, "SUBAGENT_FINISHED")[0]
    assert finished["outcome"] == {"type": "suspended", "interruptIds": ["wait:s%2F1:c2"]}
    assert found[-1]["outcome"]["interrupts"][0]["subagentRunId"] == finished["subagentRunId"]


@pytest.mark.anyio
async def test_a_run_that_fails_ends_with_an_error() -> None:
    found = await translate_run(brain(BrainUseError("No.")).stream("Go"))
    assert (found[-1]["type"], found[-1]["message"]) == ("RUN_ERROR", "No.")


@pytest.mark.anyio
async def test_an_unexpected_error_is_not_disclosed() -> None:
    found = await translate_run(brain(OSError("/etc/secrets")).stream("Go"))
    assert "secrets" not in json.dumps(found)
    assert found[-1]["code"] == "internal_error"


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
    [text] = of_type(found, "TEXT_MESSAGE_END")
    assert text.get("metadata") == (None if end == "done" else {"partial": True})


@pytest.mark.anyio
@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_its_model_did_not_finish_is_marked(reason: Any) -> None:
    found = await translate_run(brain(["Half an", Finish(reason)]).stream("Go"))
    [text] = of_type(found, "TEXT_MESSAGE_END")
    assert text["metadata"] == {"partial": True}
    assert found[-1]["result"]["finishReason"] == reason
    [text] = of_type(
        translate([RunStarted(None), RunFinished("done", "Half an", finish_reason=reason)]),
        "TEXT_MESSAGE_END",
    )
    assert text["metadata"] == {"partial": True}


@pytest.mark.anyio
async def test_a_cancelled_run_has_its_own_outcome_and_no_open_calls() -> None:
    events: list[AgentEvent] = []
    async with brain([ADD], "3").stream("1+2?") as run:
        async for event in run:
            events.append(event)
            if event.kind == "action_requested":
                run.cancel()
    found = translate(events)
    check(found)
    assert found[-1]["outcome"] == {"type": "cancelled"}
    assert of_type(found, "TOOL_CALL_RESULT")[0]["content"] == "The call was not run"


@pytest.mark.anyio
async def test_a_run_at_a_limit_says_so_in_its_result() -> None:
    found = await translate_run(brain([ADD], "3", limits=Limits(max_steps=1)).stream("1+2?"))
    assert found[-1]["result"]["stopReason"] == "max_steps"


@pytest.mark.anyio
async def test_usage_is_told_for_each_model() -> None:
    found = await translate_run(brain(["Hi", Usage(10, 2, cached_tokens=4)]).stream("Hi"))
    usage = found[-1]["usage"]
    assert usage == [
        {
            "model": "scripted",
            "inputTokens": 10,
            "outputTokens": 2,
            "totalTokens": 12,
            "reasoningTokens": 0,
            "cachedInputTokens": 4,
        }
    ]


@pytest.mark.anyio
async def test_an_event_of_a_class_of_its_own_is_data():
    found = await translate_run(Brain(reading_net()).stream("Read."))
    [own] = [each for each in found if each["type"] == "CUSTOM"]
    assert (own["name"], own["value"]) == ("pages_read", FIELDS)


@pytest.mark.anyio
async def test_what_a_memory_does_is_data():
    memory, before = WindowedMemory(max_messages=2), Message.user("Before")
    await memory.update([before, Message.user("This")])
    talking = Brain("react", memory, llm=ScriptedLLM(["Hi"]))
    found = await translate_run(talking.stream("Hello"))
    own = next(each for each in found if each["type"] == "CUSTOM")
    assert (own["name"], own["value"]["ids"]) == ("trimmed", [before.id])


@pytest.mark.anyio
async def test_tools_of_a_provider_and_its_pictures_are_shown() -> None:
    image: Any = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = ProviderCall("p1", "web_search", {"query": "a"}, "b")
    end = Finish("stop", metadata={"images": [image], "citations": ["https://e.org"]})
    turn = [call, "It is b.", end]
    found = await translate_run(brain(turn).stream("What?"))

    (shown,) = of_type(found, "TOOL_CALL_START")
    assert shown["toolCallName"] == "web_search"
    (result,) = of_type(found, "TOOL_CALL_RESULT")
    assert result["content"] == "b"
    (picture,) = [e for e in of_type(found, "CUSTOM") if e["name"] == "attachment_received"]
    assert picture["value"]["attachment"]["data"] == "AAAA"
    (cited,) = [e for e in of_type(found, "CUSTOM") if e["name"] == "sources_cited"]
    assert cited["value"]["sources"] == [{"url": "https://e.org", "title": "", "places": []}]
