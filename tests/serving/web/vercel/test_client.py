"""The AI SDK's own chat, from npm, talks to the server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from pydantic import BaseModel

from agent_brain import Brain
from agent_brain.demo import demo_tools
from agent_brain.errors import BrainUseError
from agent_brain.serving.web.chat.translator import NOT_RUN
from agent_brain.states import ArgumentsDelta, Finish, Usage
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
RESERVE = Action(name="reserve", args={}, id="c5")
ASK = Action(name="ask_user", args={"question": "Who?"}, id="c3")
OWNERS: list[Any] = [{}, {"user": "ann"}]  # a caller without a user, and one with sessions
HIDDEN: list[Any] = [{"show_tools": False}, {"show_tools": False, "user": "ann"}]


@pytest.fixture(scope="module")
def client() -> Iterator[NodeProgram]:
    with NodeProgram(CLIENT, npm_packages("ai@7.0.173")) as program:
        yield program


def talk(
    agent: Agent, client: NodeProgram, *turns: dict[str, Any], chat: str = "chat-1", **options: Any
) -> list[Any]:
    """Return what the client has after each turn."""
    program = {"url": f"{agent.url}/ai-sdk/chat", "id": chat, "turns": turns, **options}
    return client.ask(program)


def texts(turn: dict[str, Any]) -> list[str]:
    return [
        "".join(part["text"] for part in message["parts"] if part["type"] == "text")
        for message in turn["messages"]
    ]


def calls(turn: dict[str, Any]) -> dict[str, Any]:
    return {
        part["toolCallId"]: part
        for message in turn["messages"]
        for part in message["parts"]
        if "toolCallId" in part
    }


class City(BaseModel):
    name: str
    population: int


def pieces(call: str, name: str, text: str) -> list[ArgumentsDelta]:
    return [ArgumentsDelta(call, name, text[i : i + 9]) for i in range(0, len(text), 9)]


def test_it_gets_arguments_and_the_object_in_pieces(client: NodeProgram) -> None:
    city: dict[str, Any] = {"name": "Oslo", "population": 717710}
    turns = [
        [*pieces("c0", "add", '{"a": 1, '), Usage(), *pieces("c1", "add", '{"a": 1, "b": 2}'), ADD],
        [
            *pieces("c9", "final_result", json.dumps(city)),
            Action(name="final_result", args=city, id="c9"),
        ],
    ]
    brain = Brain(llm=ScriptedLLM(turns), tools=[*TOOLS], output_type=City)
    with brain_server(brain, show_tools=True) as agent:
        [turn] = talk(agent, client, {"say": "1+2?"})
    assert (turn["status"], turn["error"]) == ("ready", None)
    assert turn["types"].count("tool-input-delta") == 3
    found = calls(turn)
    assert (found["c1"]["input"], found["c1"]["output"]) == ({"a": 1, "b": 2}, "3")
    assert (found["c0"]["state"], found["c0"]["errorText"]) == ("output-error", NOT_RUN)
    assert turn["types"].count("data-output") > 1
    [shown] = [part for part in turn["messages"][-1]["parts"] if part["type"] == "data-output"]
    assert shown["data"] == city


def questions(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        part["data"]
        for message in turn["messages"]
        for part in message["parts"]
        if part["type"] == "data-question"
    ]


def seen(agent: Agent) -> list[tuple[str, str]]:
    """Return what the model was sent last."""
    last = agent.llm.calls[-1].messages
    return [(message.role, message.content) for message in last if message.role != "system"]


@pytest.mark.parametrize("options", OWNERS)
def test_it_gets_text_calls_and_results(client: NodeProgram, options: Any) -> None:
    with agent_server([["Let me see. ", ADD], "It is 3."], **options) as agent:
        [turn] = talk(agent, client, {"say": "1+2?"})
    assert (turn["status"], turn["error"]) == ("ready", None)
    assert texts(turn) == ["1+2?", "Let me see. It is 3."]
    call = calls(turn)["c1"]
    assert (call["type"], call["state"], call["output"]) == ("tool-add", "output-available", "3")
    assert turn["types"][-1] == "[DONE]"


def test_it_talks_to_the_demo_model(client: NodeProgram) -> None:
    with brain_server(Brain(tools=demo_tools()), show_tools=True) as agent:
        [turn] = talk(agent, client, {"say": "What is 17 times 23?"})
    assert "391" in texts(turn)[-1]


def test_it_gets_no_calls_if_tools_are_hidden(client: NodeProgram) -> None:
    with agent_server([["Let me see. ", ADD], "It is 3."], show_tools=False) as agent:
        [turn] = talk(agent, client, {"say": "1+2?"})
    assert (calls(turn), texts(turn)[-1]) == ({}, "Let me see. It is 3.")


@pytest.mark.parametrize("options", OWNERS)
def test_the_agent_knows_what_was_said_before(client: NodeProgram, options: Any) -> None:
    with agent_server([["Hm.", ADD], "It is 3.", "A sum."], **options) as agent:
        talk(agent, client, {"say": "1+2?"}, {"say": "What did I ask?"})
    assert seen(agent) == [
        ("user", "1+2?"),
        ("assistant", "Hm."),
        ("tool", "3"),
        ("assistant", "It is 3."),
        ("user", "What did I ask?"),
    ]


@pytest.mark.parametrize("options", OWNERS)
def test_an_answer_is_made_again(client: NodeProgram, options: Any) -> None:
    with agent_server(["One.", "Two.", "Three."], **options) as agent:
        *_, turn = talk(agent, client, {"say": "1"}, {"say": "2"}, {"regenerate": True})
    assert texts(turn) == ["1", "One.", "2", "Three."]
    assert seen(agent) == [("user", "1"), ("assistant", "One."), ("user", "2")]


@pytest.mark.parametrize("options", [*OWNERS, {"show_tools": False}])
@pytest.mark.parametrize("approved", [True, False])
def test_a_person_decides_about_a_call(
    client: NodeProgram, options: Any, *, approved: bool
) -> None:
    with agent_server([[PAY], "Done."], **options) as agent:
        waiting, done = talk(
            agent,
            client,
            {"say": "Pay 5"},
            {"approve": {"approved": approved, "reason": "because"}},
        )
    assert calls(waiting)["c2"]["state"] == "approval-requested"
    call = calls(done)["c2"]
    assert call["state"] == ("output-available" if approved else "output-denied")
    assert call.get("output") == ({"paid": 5} if approved else None)
    assert texts(done) == ["Pay 5", "Done."]  # one message, continued


@pytest.mark.parametrize("options", [*OWNERS, *HIDDEN])
def test_a_person_answers_a_question_as_the_output_of_its_call(
    client: NodeProgram, options: Any
) -> None:
    with agent_server([[ASK], "Hello Ann."], **options) as agent:
        waiting, done = talk(agent, client, {"say": "Hi"}, {"output": "Ann"})
    assert calls(waiting)["c3"]["state"] == "input-available"
    assert calls(done)["c3"]["output"] == "Ann"
    assert texts(done) == ["Hi", "Hello Ann."]


@pytest.mark.parametrize("options", [*OWNERS, *HIDDEN])
@pytest.mark.parametrize("by", ["output", "say"])
def test_typed_questions_of_one_call_are_answered_one_by_one(
    client: NodeProgram, options: Any, by: str
) -> None:
    form: Any = {"row": 4, "side": "window"} if by == "output" else '{"row": 4, "side": "window"}'
    with agent_server([[RESERVE], "Reserved."], tools=[reserve], **options) as agent:
        seat, tip, done = talk(
            agent, client, {"say": "A seat"}, {by: form}, {by: 5 if by == "output" else "5"}
        )
    [question] = questions(seat)
    assert question["schema"] == Seat.model_json_schema()
    assert questions(tip)[-1]["prompt"] == "Which tip?"
    assert calls(tip)["c5"]["state"] == "input-available"
    assert seen(agent)[-1] == ("tool", "4 window, tip 5")
    assert texts(done)[-1] == "Reserved."


@pytest.mark.parametrize("options", [*OWNERS, {"show_tools": False}])
def test_a_person_answers_a_question_with_a_message(client: NodeProgram, options: Any) -> None:
    with agent_server([[ASK], "Hello Ann."], **options) as agent:
        _, done = talk(agent, client, {"say": "Hi"}, {"say": "Ann"})
    assert texts(done) == ["Hi", "", "Ann", "Hello Ann."]
    assert seen(agent)[-1] == ("tool", "Ann")


@pytest.mark.parametrize("options", OWNERS)
def test_a_new_message_may_come_instead_of_a_decision(client: NodeProgram, options: Any) -> None:
    with agent_server([[PAY], "Never mind."], **options) as agent:
        _, done = talk(agent, client, {"say": "Pay 5"}, {"say": "Stop."})
    assert texts(done)[-1] == "Never mind."
    assert [role for role, _ in seen(agent)] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("show_tools", [True, False])
def test_after_a_question_the_conversation_goes_on(client: NodeProgram, show_tools: bool) -> None:
    script = [[ASK], "Hello Ann.", "Bye Ann."]
    with agent_server(script, show_tools=show_tools) as agent:
        *_, done = talk(agent, client, {"say": "Hi"}, {"say": "Ann"}, {"say": "Bye"})
    assert texts(done)[-1] == "Bye Ann."
    assert seen(agent) == [
        ("user", "Hi"),
        ("user", "Ann"),
        ("assistant", ""),
        ("tool", "Ann"),
        ("assistant", "Hello Ann."),
        ("user", "Bye"),
    ]


def test_it_is_told_of_a_run_that_fails(client: NodeProgram) -> None:
    with agent_server([["Hel", BrainUseError("No credit.")]]) as agent:
        [turn] = talk(agent, client, {"say": "Hi"})
    assert (turn["status"], turn["error"]) == ("error", "Error: No credit.")


def test_a_run_is_cancelled_when_the_client_stops_it(client: NodeProgram) -> None:
    cancelled = threading.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    with agent_server([["Well.", Action(name="wait", id="c6")]], tools=[wait]) as agent:
        talk(agent, client, {"say": "Wait", "stopAfter": "c6"})
        assert cancelled.wait(60)
        assert eventually(lambda: not agent.sessions.active_runs)


def test_it_gets_the_pages_that_an_answer_cites_and_may_send_them_back(client: NodeProgram) -> None:
    end = Finish(metadata={"citations": [{"url": "https://e.org/a", "title": "A"}]})
    with agent_server([["Oslo.", end], "Yes."]) as agent:
        turns = talk(agent, client, {"say": "Which city?"}, {"say": "Sure?"})
    assert [(turn["status"], turn["error"]) for turn in turns] == [("ready", None)] * 2
    [source] = [p for p in turns[0]["messages"][-1]["parts"] if p["type"] == "source-url"]
    assert (source["url"], source["title"]) == ("https://e.org/a", "A")
    assert texts(turns[1])[-1] == "Yes."


def test_files_reach_the_model(client: NodeProgram) -> None:
    picture = "data:image/png;base64,iVBORw0KGgo="
    file = {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": picture}
    with agent_server(["A picture."]) as agent:
        talk(agent, client, {"say": "What is it?", "files": [file]})
    [attachment] = agent.llm.calls[0].messages[-1].attachments
    assert (attachment.url, attachment.name) == (picture, "a.png")


def test_states_and_tools_read_what_the_client_sends_with_the_task(client: NodeProgram) -> None:
    call = Action(name="about_the_request", id="c7")
    turn = {"say": "Hi", "metadata": {"page": 3}}
    with agent_server([[call], "Ok."], user="ann") as agent:
        [found] = talk(agent, client, turn, body={"theme": "dark"})
    assert calls(found)["c7"]["output"] == {
        "user": "ann",
        "ai_sdk": {"theme": "dark", "metadata": {"page": 3}},
    }


def test_conversations_of_unknown_callers_do_not_meet(client: NodeProgram) -> None:
    with agent_server(["One.", "Two."]) as agent:
        talk(agent, client, {"say": "secret"}, chat="shared")
        talk(agent, client, {"say": "Hi"}, chat="shared")
        assert seen(agent) == [("user", "Hi")]
        assert eventually(lambda: agent.sessions.open_sessions == 0)


def test_a_reload_does_not_cancel_the_run_and_the_client_reads_the_rest(
    client: NodeProgram,
) -> None:
    loaded = threading.Event()

    @tool
    async def wait() -> str:
        """Wait until the page is loaded again."""
        await anyio.to_thread.run_sync(loaded.wait, 60)
        return "waited"

    turns = [["Well. ", Action(name="wait", id="c6")], "It is done."]
    with agent_server(turns, tools=[wait], user="ann") as agent:
        left = {"leave": "Wait", "leaveAfter": "c6"}
        talk(agent, client, left)
        threading.Timer(0.3, loaded.set).start()
        [again] = talk(agent, client, {"resume": True})
        [nothing] = talk(agent, client, {"resume": True})
    assert texts(again) == ["Well. It is done."]
    assert calls(again)["c6"]["output"] == "waited"
    assert (again["status"], again["error"]) == ("ready", None)
    assert (nothing["messages"], nothing["status"], nothing["error"]) == ([], "ready", None)


def test_a_new_message_ends_the_run_that_its_client_has_stopped_reading(
    client: NodeProgram,
) -> None:
    @tool
    async def wait() -> str:
        """Wait for ever."""
        await anyio.sleep_forever()
        return "never"

    turns = [["Well.", Action(name="wait", id="c6")], "Here I am."]
    with agent_server(turns, tools=[wait], user="ann") as agent:
        found = talk(agent, client, {"say": "Wait", "stopAfter": "c6"}, {"say": "Hello?"})
        assert texts(found[-1])[-1] == "Here I am."
        assert not agent.sessions.active_runs


@pytest.mark.parametrize("options", OWNERS)
def test_nothing_to_resume_is_no_content(options: Any) -> None:
    with agent_server(["Yes."], **options) as agent:
        for chat in ("chat-1", "never-seen"):
            answer = httpx.get(f"{agent.url}/ai-sdk/chat/{chat}/stream")
            assert (answer.status_code, answer.content) == (204, b"")
