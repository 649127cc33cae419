"""Events of the Responses API, from the events of real runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

import pytest
from openai.types.responses import Response as OfficialResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from agent_brain import Brain, Limits, Memory, State, react, tool
from agent_brain.nets import ParallelState
from agent_brain.serving.web.openai.errors import ApiError
from agent_brain.serving.web.openai.responses import ResponseStream
from agent_brain.serving.web.openai.translate import Shown
from agent_brain.states import Finish, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from agent_brain.tools.builtin import ask_user
from tests.serving.web.openai.runs import events_of

pytestmark = pytest.mark.anyio

OFFICIAL: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@tool
def double(n: int) -> int:
    """Double a number."""
    if n > 1000:
        raise ValueError("too large")
    return 2 * n


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class Ask(Enum):
    BOTH = "both"


class Silent(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        if memory.control.scratch.get("speak"):
            yield "never"

    async def next_state(self, memory: Memory) -> None:
        return None


def brain_with(*turns: Any, **options: Any) -> Brain:
    return Brain(llm=ScriptedLLM(turns), tools=[double, pay, ask_user], **options)


def translate(events: list[Any], **options: Any) -> list[dict[str, Any]]:
    stream = ResponseStream("resp_1", "agent", **options)
    translated = [each for event in events for each in stream.translate(event)]
    for each in translated:
        OFFICIAL.validate_python(each)
    assert [each["sequence_number"] for each in translated] == list(range(len(translated)))
    check_items(translated)
    return translated


async def translated(brain: Brain, **options: Any) -> list[dict[str, Any]]:
    return translate(await events_of(brain), **options)


def check_items(events: list[dict[str, Any]]) -> None:
    """Check that every item begins and ends once, and is where it says in the whole response."""
    added = [e["output_index"] for e in events if e["type"] == "response.output_item.added"]
    done = {
        e["output_index"]: e["item"] for e in events if e["type"] == "response.output_item.done"
    }
    assert added == sorted(done) == list(range(len(added)))
    if events:
        assert events[-1]["response"]["output"] == [done[place] for place in sorted(done)]


def whole(events: list[dict[str, Any]]) -> Any:
    return OfficialResponse.model_validate(events[-1]["response"])


async def test_text_becomes_the_events_of_a_message_in_order():
    events = await translated(brain_with(["Good ", "morning."]))

    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert whole(events).output_text == "Good morning."
    assert (events[0]["response"]["status"], whole(events).status) == ("in_progress", "completed")


async def test_the_whole_response_has_the_usage():
    events = await translated(
        brain_with(["Hello.", Usage(10, 5, cached_tokens=4, reasoning_tokens=3)])
    )

    usage = whole(events).usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (10, 5, 15)
    assert usage.input_tokens_details.cached_tokens == 4
    assert usage.output_tokens_details.reasoning_tokens == 3


async def test_a_remark_and_the_answer_are_two_messages():
    events = await translated(
        brain_with(["Let me see.", Action(name="double", args={"n": 2})], "Four.")
    )

    assert [item.content[0].text for item in whole(events).output] == ["Let me see.", "Four."]


async def test_tool_calls_are_hidden_unless_they_are_wanted():
    events = await translated(brain_with([Action(name="double", args={"n": 2})], "Four."))

    assert [item.type for item in whole(events).output] == ["message"]
    assert "double" not in str(events)


async def test_tool_calls_are_calls_of_an_mcp_server():
    turns = ([Action(name="double", args={"n": 2}, id="call_1")], "Four.")
    events = await translated(brain_with(*turns), shown=Shown(tools=True))

    call, message = whole(events).output
    assert (call.type, call.name, call.arguments, call.output) == (
        "mcp_call",
        "double",
        '{"n": 2}',
        "4",
    )
    assert (call.status, call.error, message.content[0].text) == ("completed", None, "Four.")
    assert [event["type"] for event in events if event.get("item_id") == call.id] == [
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
    ]


async def test_calls_at_once_have_items_of_their_own():
    calls = [Action(name="double", args={"n": n}) for n in (1, 2, 3)]
    events = await translated(brain_with(calls, "Done."), shown=Shown(tools=True))

    assert [item.output for item in whole(events).output[:3]] == ["2", "4", "6"]


async def test_a_failed_call_has_an_error():
    events = await translated(
        brain_with([Action(name="double", args={"n": 2000})], "No."), shown=Shown(tools=True)
    )

    call = whole(events).output[0]
    assert (call.status, call.output) == ("failed", None)
    assert call.error.type == "mcp_tool_execution_error"
    assert "too large" in call.error.content[0]["text"]
    assert "response.mcp_call.failed" in [event["type"] for event in events]


async def test_thoughts_are_reasoning_items_if_they_are_wanted():
    text = 'I should double it. {"name": "double", "args": {"n": 2}}'

    def make() -> Brain:
        return Brain(llm=ScriptedLLM([text, "No tool.", "Four."], native=False), tools=[double])

    hidden = await translated(make())
    shown = await translated(make(), shown=Shown(thoughts=True))

    assert {item.type for item in whole(hidden).output} == {"message"}
    first = whole(shown).output[0]
    assert (first.type, first.content[0].text) == ("reasoning", text)
    assert "response.reasoning_text.delta" in [event["type"] for event in shown]


async def test_a_call_that_waits_for_approval_is_an_approval_request():
    pays = [Action(name="pay", args={"amount": n}, id=f"call_{n}") for n in (1, 2)]
    events = await translated(brain_with(["Paying.", *pays]), session="s1")

    message, *requests = whole(events).output
    assert message.content[0].text == "Paying."
    assert [(each.type, each.id, each.name) for each in requests] == [
        ("mcp_approval_request", "mcpr_call_1", "pay"),
        ("mcp_approval_request", "mcpr_call_2", "pay"),
    ]
    assert requests[0].arguments == '{"amount": 1}'
    response = events[-1]["response"]
    assert (response["status"], response["agent_brain"]["stop_reason"]) == ("completed", "approval")
    assert response["agent_brain"]["session"] == "s1"


async def test_an_approved_call_names_its_approval():
    brain = brain_with([Action(name="pay", args={"amount": 5}, id="call_5")], "Paid.")
    await events_of(brain)
    resumed = await events_of(brain, approve=["call_5"])
    events = translate(resumed, shown=Shown(tools=True), approved=["call_5"])

    call = whole(events).output[0]
    assert (call.approval_request_id, call.output) == ("mcpr_call_5", "paid 5")


async def test_a_question_is_a_message():
    asks = [Action(name="ask_user", args={"question": "Which city?"})]
    events = await translated(brain_with(asks), session="s1")

    assert whole(events).output_text == "Which city?"
    assert events[-1]["type"] == "response.completed"


@pytest.mark.parametrize(
    ("turn", "limits", "reason"),
    [
        (
            [Action(name="double", args={"n": 2}), Usage(5, 5)],
            Limits(max_steps=1),
            "max_output_tokens",
        ),
        (["Once", Finish("length")], Limits(), "max_output_tokens"),
        (["Once", Finish("content_filter")], Limits(), "content_filter"),
    ],
)
async def test_an_answer_that_is_cut_off_is_incomplete(turn, limits, reason):
    events = await translated(brain_with(turn, limits=limits))

    assert events[-1]["type"] == "response.incomplete"
    assert whole(events).status == "incomplete"
    assert whole(events).incomplete_details.reason == reason


async def test_a_stuck_run_is_complete():
    turns = [["Hm.", Action(name="double", args={"n": 1}, id=f"c{i}")] for i in range(20)]
    events = await translated(brain_with(*turns))

    response = events[-1]["response"]
    assert (response["status"], response["agent_brain"]["stop_reason"]) == ("completed", "stuck")
    assert "Hm." in whole(events).output_text


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_text_is_cut_at_the_limit_of_tokens(most):
    events = await translated(brain_with(["abcd"] * 10), most_tokens=most)

    assert whole(events).output_text == "abcd" * most
    assert whole(events).incomplete_details.reason == "max_output_tokens"
    assert whole(events).max_output_tokens == most


async def test_a_run_that_fails_after_its_first_output_ends_with_failed():
    events = await translated(brain_with(["Once", ValueError("secret: hunter2hunter2")]))

    assert events[-1]["type"] == "response.failed"
    assert whole(events).status == "failed"
    assert whole(events).error.message == "The run failed: ValueError"
    assert whole(events).output[0].status == "incomplete"


async def test_a_run_that_fails_before_its_first_output_raises():
    events = await events_of(brain_with(ValueError("secret: hunter2hunter2")))

    with pytest.raises(ApiError) as raised:
        translate(events)
    assert (raised.value.status, raised.value.message) == (500, "The run failed: ValueError")


async def test_calls_that_are_cut_off_are_incomplete():
    events = await events_of(brain_with([Action(name="double", args={"n": 2})], "Four."))
    cut = [event for event in events if event.kind != "action_finished"]

    call, message = whole(translate(cut, shown=Shown(tools=True))).output
    assert (call.status, call.output, message.status) == ("incomplete", None, "completed")


async def test_branches_that_speak_at_once_are_told_apart():
    net = {
        Ask.BOTH: ParallelState(
            {
                "poet": react(ScriptedLLM([["Deep ", "blue."]])),
                "chemist": react(ScriptedLLM(["Salt."])),
            }
        )
    }
    events = await translated(Brain(net), shown=Shown(thoughts=True))

    *thoughts, answer = whole(events).output
    assert sorted(item.content[0].text for item in thoughts) == ["Deep blue.", "Salt."]
    assert answer.content[0].text == "poet: Deep blue.\n\nchemist: Salt."


async def test_a_run_that_says_nothing_has_no_output():
    events = await translated(Brain({Ask.BOTH: Silent()}))

    assert (whole(events).output, whole(events).status) == ([], "completed")
    assert [event["type"] for event in events][-1] == "response.completed"
