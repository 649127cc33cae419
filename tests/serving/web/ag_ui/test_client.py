"""The official client of AG-UI, from npm, talks to the server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import Brain
from agent_brain.demo import demo_tools
from agent_brain.errors import BrainUseError
from agent_brain.nets import HandoffAgent, handoff
from agent_brain.serving.web.chat.translator import NOT_RUN
from agent_brain.states import ArgumentsDelta, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool
from tests.serving.web.agents import (
    TOOLS,
    Agent,
    Seat,
    agent_server,
    brain_server,
    eventually,
    reserve,
)
from tests.support.node import NodeProgram, npm_packages

CLIENT = Path(__file__).with_name("client.mjs")
ADD = Action(name="add", args={"a": 1, "b": 2}, id="c1")
PAY = Action(name="pay", args={"amount": 5}, id="c2")
ASK = Action(name="ask_user", args={"question": "Who?"}, id="c3")
RESERVE = Action(name="reserve", args={}, id="c5")
CANCELLED = {"answer": [{"status": "cancelled"}]}
PICK = Action(name="pick_color", args={"hue": "red"}, id="c4")
PICK_COLOR = {
    "name": "pick_color",
    "description": "Let the user pick a color.",
    "parameters": {"type": "object", "properties": {"hue": {"type": "string"}}},
}
OWNERS: list[Any] = [{}, {"user": "ann"}]  # a caller without a user, and one with sessions


@pytest.fixture(scope="module")
def client() -> Iterator[NodeProgram]:
    with NodeProgram(CLIENT, npm_packages("@ag-ui/client@1.0.0")) as program:
        yield program


def talk(
    agent: Agent,
    client: NodeProgram,
    *turns: dict[str, Any],
    thread: str = "thread-1",
    **options: Any,
) -> list[Any]:
    """Return what the client has after each turn; it must have warned of nothing."""
    program = {"url": f"{agent.url}/ag-ui", "threadId": thread, "turns": turns, **options}
    found = client.ask(program)
    assert not [warning for turn in found for warning in turn["warnings"]]
    return found


def contents(turn: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content", "")) for message in turn["messages"]]


def resolved(payload: Any) -> dict[str, Any]:
    return {"answer": [{"status": "resolved", "payload": payload}]}


@pytest.mark.parametrize("options", OWNERS)
def test_it_gets_text_calls_and_results(client: NodeProgram, options: Any) -> None:
    with agent_server([["Let me see.", ADD], "It is 3."], **options) as agent:
        [turn] = talk(agent, client, {"say": "1+2?"})
    assert contents(turn) == [
        ("user", "1+2?"),
        ("assistant", "Let me see."),
        ("tool", "3"),
        ("assistant", "It is 3."),
    ]
    assert turn["messages"][1]["toolCalls"][0]["function"]["name"] == "add"


@pytest.mark.parametrize("options", OWNERS)
def test_what_an_agent_of_a_handoff_says_is_told_once_and_sent_again(
    client: NodeProgram, options: Any
) -> None:
    to_billing = Action(name="transfer_to_billing", args={"reason": "Refund"}, id="h1")
    llm = ScriptedLLM([["One moment.", to_billing], "It is refunded.", "You are welcome."])
    agents = {name: HandoffAgent(description=name) for name in ("triage", "billing")}
    brain = Brain(handoff(llm, agents, start="triage"))
    with brain_server(brain, show_tools=True, **options) as agent:
        first, last = talk(agent, client, {"say": "My money!"}, {"say": "Thanks"})
    said = [content for role, content in contents(first) if role == "assistant"]
    assert said == ["One moment.", "It is refunded."]
    assert contents(last)[-1] == ("assistant", "You are welcome.")
    seen = [m.content for m in llm.calls[-1].messages if m.role in ("user", "assistant")]
    assert seen == ["My money!", *said, "Thanks"]


class City(BaseModel):
    name: str
    population: int


def pieces(call: str, name: str, text: str) -> list[ArgumentsDelta]:
    return [ArgumentsDelta(call, name, text[i : i + 9]) for i in range(0, len(text), 9)]


@pytest.mark.parametrize("front_end", [False, True])
def test_it_gets_arguments_and_the_object_in_pieces(client: NodeProgram, front_end: bool) -> None:
    city: dict[str, Any] = {"name": "Oslo", "population": 717710}
    call = PICK if front_end else ADD
    arguments = json.dumps(call.args)
    cut = pieces("c0", call.name, arguments[:9])  # of an attempt that fails
    turns = [
        [*cut, Usage(), *pieces(call.id, call.name, arguments), call],
        [
            *pieces("c9", "final_result", json.dumps(city)),
            Action(name="final_result", args=city, id="c9"),
        ],
    ]
    brain = Brain(llm=ScriptedLLM(turns), tools=TOOLS, output_type=City)
    say: dict[str, Any] = {"say": "1+2?"} | ({"tools": [PICK_COLOR]} if front_end else {})
    answer = [{"results": {"pick_color": "red"}, "tools": [PICK_COLOR]}] if front_end else []
    with brain_server(brain, show_tools=not front_end) as agent:
        found = talk(agent, client, say, *answer)
    first, last = found[0], found[-1]
    deltas = [event for event in first["events"] if event["type"] == "TOOL_CALL_ARGS"]
    assert len(deltas) > 2
    told = [each for message in first["messages"] for each in message.get("toolCalls", ())]
    assert [each["function"]["arguments"] for each in told] == [arguments[:9], arguments]
    results = [m["content"] for m in last["messages"] if m["role"] == "tool"]
    assert results == [NOT_RUN, "red" if front_end else "3"]
    grown = [event["value"] for event in last["events"] if event.get("name") == "partial_output"]
    assert len(grown) > 1
    assert grown[-1]["output"] == city


def test_it_talks_to_the_demo_model(client: NodeProgram) -> None:
    with brain_server(Brain(tools=demo_tools()), show_tools=True) as agent:
        [turn] = talk(agent, client, {"say": "What is 17 times 23?"})
    assert "391" in turn["messages"][-1]["content"]


def test_it_gets_no_calls_if_tools_are_hidden(client: NodeProgram) -> None:
    with agent_server([["Let me see.", ADD], "It is 3."], show_tools=False) as agent:
        [turn] = talk(agent, client, {"say": "1+2?"})
    assert contents(turn) == [
        ("user", "1+2?"),
        ("assistant", "Let me see."),
        ("assistant", "It is 3."),
    ]


@pytest.mark.parametrize("options", OWNERS)
def test_the_agent_knows_what_was_said_before(client: NodeProgram, options: Any) -> None:
    with agent_server([[ADD], "It is 3.", "You asked for a sum."], **options) as agent:
        talk(agent, client, {"say": "1+2?"}, {"say": "What did I ask?"})
    seen = [(m.role, m.content) for m in agent.llm.calls[-1].messages if m.role != "system"]
    assert seen == [
        ("user", "1+2?"),
        ("assistant", ""),
        ("tool", "3"),
        ("assistant", "It is 3."),
        ("user", "What did I ask?"),
    ]


@pytest.mark.parametrize("options", OWNERS)
@pytest.mark.parametrize(
    ("payload", "result"),
    [
        ({"approved": True}, '{"paid":5}'),
        ({"approved": True, "editedArgs": {"amount": 6}}, '{"paid":6}'),
        ({"approved": False, "reason": "too much"}, "too much"),
    ],
)
def test_a_person_decides_about_a_call(
    client: NodeProgram, options: Any, payload: Any, result: str
) -> None:
    with agent_server([[PAY], "Done."], **options) as agent:
        waiting, done = talk(agent, client, {"say": "Pay 5"}, resolved(payload))
    assert waiting["interrupts"][0]["toolCallId"] == "c2"
    assert (done["error"], done["interrupts"]) == (None, [])
    assert done["messages"][2]["role"] == "tool"
    assert result in done["messages"][2]["content"]
    assert done["messages"][-1]["content"] == "Done."


def test_a_call_whose_approval_is_cancelled_does_not_run(client: NodeProgram) -> None:
    with agent_server([[PAY], "Fine."], show_tools=False) as agent:
        _, done = talk(agent, client, {"say": "Pay 5"}, {"answer": [{"status": "cancelled"}]})
    assert "did not answer" in done["messages"][2]["content"]
    assert done["messages"][-1]["content"] == "Fine."


@pytest.mark.parametrize("options", [*OWNERS, {"show_tools": False}])
@pytest.mark.parametrize("payload", [{"answer": "Ann"}, "Ann"])
def test_a_person_answers_a_question(client: NodeProgram, options: Any, payload: Any) -> None:
    with agent_server([[ASK], "Hello Ann."], **options) as agent:
        waiting, done = talk(agent, client, {"say": "Hi"}, resolved(payload))
    assert waiting["interrupts"][0]["message"] == "Who?"
    assert contents(done)[2:] == [("tool", "Ann"), ("assistant", "Hello Ann.")]


@pytest.mark.parametrize("options", OWNERS)
@pytest.mark.parametrize(
    ("tip", "told"), [(resolved({"answer": 5}), "tip 5"), (CANCELLED, "tip None")]
)
def test_a_form_is_filled_in(client: NodeProgram, options: Any, tip: Any, told: str) -> None:
    with agent_server([[RESERVE], "Reserved."], tools=[reserve], **options) as agent:
        seat, wrong, number, done = talk(
            agent,
            client,
            {"say": "A seat"},
            resolved({"row": 31}),
            resolved({"row": 4, "side": "window"}),
            tip,
        )
    assert seat["interrupts"][0]["responseSchema"] == Seat.model_json_schema()
    [refused] = wrong["events"]
    assert (refused["type"], refused["code"]) == ("RUN_ERROR", "invalid_request")
    assert "row: 31 is greater than the maximum of 30" in refused["message"]
    schema = number["interrupts"][0]["responseSchema"]
    assert schema["properties"] == {"answer": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    assert contents(done)[2:] == [("tool", f"4 window, {told}"), ("assistant", "Reserved.")]


def test_a_run_waits_once_for_each_thing_it_asks(client: NodeProgram) -> None:
    both = [ADD, PAY, ASK]
    with agent_server([both, "Done."]) as agent:
        _, question, done = talk(
            agent, client, {"say": "Go"}, resolved({"approved": True}), resolved("Ann")
        )
    assert question["interrupts"][0]["reason"] == "input_required"
    results = [message["toolCallId"] for message in done["messages"] if message["role"] == "tool"]
    assert sorted(results) == ["c1", "c2", "c3"]


@pytest.mark.parametrize("options", [*OWNERS, {"show_tools": False}])
def test_the_client_runs_its_own_tools(client: NodeProgram, options: Any) -> None:
    with agent_server([[PICK], "You picked blue."], **options) as agent:
        waiting, done = talk(
            agent,
            client,
            {"say": "Which color?", "tools": [PICK_COLOR]},
            {"results": {"pick_color": "blue"}, "tools": [PICK_COLOR]},
        )
    assert len(waiting["unanswered"]) == 1
    assert contents(done)[1:] == [
        ("assistant", ""),
        ("tool", "blue"),
        ("assistant", "You picked blue."),
    ]
    assert agent.llm.calls[-1].messages[-1].content == "blue"


@pytest.mark.parametrize("options", OWNERS)
def test_a_new_message_may_come_instead_of_the_result_of_the_client(
    client: NodeProgram, options: Any
) -> None:
    with agent_server([[PICK], "Never mind."], **options) as agent:
        turn = {"tools": [PICK_COLOR]}
        _, done = talk(agent, client, {"say": "Color?", **turn}, {"say": "Stop.", **turn})
    assert done["messages"][-1]["content"] == "Never mind."
    assert [m.role for m in agent.llm.calls[-1].messages][-3:] == ["assistant", "tool", "user"]


def test_tools_of_the_client_are_offered_only_in_its_run(client: NodeProgram) -> None:
    with agent_server(["One.", "Two."], user="ann") as agent:
        talk(agent, client, {"say": "1", "tools": [PICK_COLOR]}, {"say": "2"})
    first, second = ([tool.name for tool in call.tools] for call in agent.llm.calls)
    assert ("pick_color" in first, "pick_color" in second) == (True, False)


def test_a_tool_that_fails_is_marked(client: NodeProgram) -> None:
    with agent_server([[Action(name="fail", id="c5")], "Sorry."]) as agent:
        [turn] = talk(agent, client, {"say": "Print"})
    assert turn["messages"][2]["metadata"] == {"isError": True}


def test_it_is_told_of_a_run_that_fails(client: NodeProgram) -> None:
    with agent_server([["Hel", BrainUseError("No credit.")]]) as agent:
        [turn] = talk(agent, client, {"say": "Hi"})
    last = turn["events"][-1]
    assert (last["type"], last["message"]) == ("RUN_ERROR", "No credit.")


def test_a_run_is_cancelled_when_the_client_leaves(client: NodeProgram) -> None:
    cancelled = threading.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    with agent_server([[Action(name="wait", id="c6")]], tools=[wait]) as agent:
        talk(agent, client, {"say": "Wait", "abortAt": "TOOL_CALL_END"})
        assert cancelled.wait(60)
        assert eventually(lambda: not agent.sessions.active_runs)


def test_states_and_tools_read_what_the_client_sends_with_the_task(client: NodeProgram) -> None:
    call = Action(name="about_the_request", id="c7")
    turn = {
        "say": "Hi",
        "context": [{"description": "page", "value": "start"}],
        "forwardedProps": {"theme": "dark"},
    }
    with agent_server([[call], "Ok."], user="ann") as agent:
        [found] = talk(agent, client, turn)
    result = json.loads(found["messages"][2]["content"])
    assert result["user"] == "ann"
    assert result["ag_ui"]["context"] == turn["context"]
    assert result["ag_ui"]["forwardedProps"] == {"theme": "dark"}


def test_conversations_of_unknown_callers_do_not_meet(client: NodeProgram) -> None:
    with agent_server(["One.", "Two."]) as agent:
        talk(agent, client, {"say": "secret"}, thread="shared")
        talk(agent, client, {"say": "Hi"}, thread="shared")
        assert not any("secret" in message.content for message in agent.llm.calls[1].messages)
        assert eventually(lambda: agent.sessions.open_sessions == 0)


def test_a_waiting_run_of_an_unknown_caller_survives_a_restart(
    client: NodeProgram, tmp_path: Path
) -> None:
    journal = tmp_path / "chats.db"
    with agent_server([[PAY]], journal=journal) as agent:
        [waiting] = talk(agent, client, {"say": "Pay 5"})
    interrupt = waiting["interrupts"][0]["id"]
    resume = {"interruptId": interrupt, "status": "resolved", "payload": {"approved": True}}
    with agent_server(["Paid."], journal=journal) as agent:
        turn = {"say": "And hurry.", "answer": [resume]}
        [done] = talk(agent, client, turn, thread="other")
    assert done["error"] is None
    assert contents(done) == [
        ("user", "And hurry."),
        ("tool", '{"paid":5}'),
        ("assistant", "Paid."),
    ]
    assert agent.llm.calls[-1].messages[-1].content == "And hurry."
