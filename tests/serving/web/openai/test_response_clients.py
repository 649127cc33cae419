"""The Responses API over sockets, with the official Python client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest

from agent_brain import Brain
from agent_brain.demo import demo_tools
from agent_brain.errors import LLMServerError
from agent_brain.memories import RamJournal
from agent_brain.states import Finish, Thought, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.web.openai.server import PNG, drawn, serving, shop

pytestmark = pytest.mark.anyio

MODEL = "agent-brain"
PAYS = Action(name="pay", args={"amount": 5}, id="call_5")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


@asynccontextmanager
async def client_of(brain: Brain, token: str = "ann-token", **options: Any) -> AsyncIterator[Any]:
    async with (
        serving(brain, **options) as url,
        openai.AsyncOpenAI(base_url=url, api_key=token, max_retries=0) as client,
    ):
        yield client


def last(messages: list[Any]) -> str:
    return messages[-1].content


def approval(approve: bool, **fields: Any) -> Any:
    return {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_call_5",
        "approve": approve,
        **fields,
    }


async def test_the_official_client_gets_the_whole_response():
    brain, _ = shop(["Good ", "morning.", Usage(10, 2)])
    async with client_of(brain) as client:
        done = await client.responses.create(model=MODEL, input="Hello.", metadata={"a": "b"})

    assert (done.output_text, done.status) == ("Good morning.", "completed")
    assert (done.usage.total_tokens, done.metadata) == (12, {"a": "b"})


async def test_the_official_client_streams():
    brain, _ = shop(["Good ", "morning."])
    async with client_of(brain) as client:
        stream = await client.responses.create(model=MODEL, input="Hello.", stream=True)
        events = [event async for event in stream]

    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert deltas == ["Good ", "morning."]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].response.output_text == "Good morning."


async def test_the_accumulating_helper_of_the_client_works():
    brain, _ = shop(["Let me see.", Action(name="double", args={"n": 2})], ["It is ", "4."])
    async with (
        client_of(brain, show_tools=True) as client,
        client.responses.stream(model=MODEL, input="Double 2.") as stream,
    ):
        snapshots = [e.snapshot async for e in stream if e.type == "response.output_text.delta"]
        final = await stream.get_final_response()

    assert snapshots == ["Let me see.", "It is ", "It is 4."]
    assert [item.type for item in final.output] == ["message", "mcp_call", "message"]


@pytest.mark.parametrize("said", ["Oslo.", Thought("Oslo?")], ids=["said", "thought"])
async def test_an_answer_has_the_pages_that_the_run_cites(said):
    cited = Finish("stop", metadata={"citations": [{"url": "https://e.org/a", "title": "A"}]})
    brain, _ = shop([said, Action(name="double", args={"n": 2}), cited], "Oslo.", "Yes.")
    asked: Any = {"model": MODEL, "input": "Which city?"}
    asked["extra_body"] = {"agent_brain": {"show_tools": True, "show_thoughts": True}}
    async with client_of(brain) as client:
        async with client.responses.stream(**asked) as stream:
            added = [e async for e in stream if e.type.endswith("annotation.added")]
            done = await stream.get_final_response()
        sent = [*done.output[-1:], {"role": "user", "content": "Sure?"}]
        again = await client.responses.create(model=MODEL, input=sent)

    messages = [item for item in done.output if item.type == "message"]
    [cites] = messages[-1].content[0].annotations
    assert (cites.type, cites.url, cites.title) == ("url_citation", "https://e.org/a", "A")
    assert [event.to_dict()["annotation"]["url"] for event in added] == ["https://e.org/a"]
    assert not any(item.content[0].annotations for item in messages[:-1])
    assert again.output_text == "Yes."


@pytest.mark.parametrize("words", [[], ["A dot."]])
async def test_a_picture_that_the_model_makes_is_an_item(words):
    seen: list[Any] = []

    def note(messages: list[Any]) -> str:
        seen.extend(messages)
        return "Yes."

    brain, _ = shop([*words, drawn()], note)
    async with client_of(brain, journal=RamJournal()) as client:
        async with client.responses.stream(model=MODEL, input="Draw.") as stream:
            types = [event.type async for event in stream]
            done = await stream.get_final_response()
        again = await client.responses.retrieve(done.id)
        sent = [{"role": "user", "content": "Draw."}, *done.output]
        sent.append({"role": "user", "content": "Sure?"})
        await client.responses.create(model=MODEL, input=sent, store=False)

    for response in (done, again):
        picture = response.output[-1]
        assert (picture.type, picture.status) == ("image_generation_call", "completed")
        assert (picture.result, response.output_text) == (PNG, "".join(words))
        assert len(response.output) == 1 + len(words)
    assert "response.image_generation_call.completed" in types
    [drew] = [message for message in seen if message.role == "assistant"]
    assert (drew.content, [each.media_type for each in drew.attachments]) == (
        "".join(words),
        ["image/png"],
    )


async def test_a_picture_with_an_address_is_a_message():
    brain, _ = shop([drawn("https://e.org/a.png")])
    async with client_of(brain) as client:
        done = await client.responses.create(model=MODEL, input="Draw.")
    assert done.output_text == "![](https://e.org/a.png)"


async def test_citations_have_their_places_in_the_item_that_cites():
    at: dict[str, Any] = {"url": "https://e.org/a", "start_index": 3, "end_index": 7}
    brain, _ = shop(
        ["Let me see.", Action(name="double", args={"n": 2})],
        ["In ", "Oslo.", Finish("stop", metadata={"citations": [at]})],
    )
    async with client_of(brain) as client:
        done = await client.responses.create(model=MODEL, input="Which city?")
    part = done.output[-1].content[0]
    [cites] = part.annotations
    assert part.text[cites.start_index : cites.end_index] == "Oslo"


async def test_the_demo_agent_shows_its_tools_on_request():
    async with client_of(Brain("react", tools=demo_tools())) as client:
        hidden = await client.responses.create(model=MODEL, input="What is 17 times 23?")
        shown = await client.responses.create(
            model=MODEL,
            input="What is 17 times 23?",
            extra_body={"agent_brain": {"show_tools": True}},
        )

    assert "391" in hidden.output_text
    assert {item.type for item in hidden.output} == {"message"}
    call = next(item for item in shown.output if item.type == "mcp_call")
    assert "391" in call.output


async def test_a_response_continues_the_one_before():
    seen: list[list[str]] = []

    def note(messages: list[Any]) -> str:
        seen.append([m.content for m in messages if m.role != "system"])
        return "Yes."

    async with client_of(Brain(llm=ScriptedLLM([note] * 3))) as client:
        first = await client.responses.create(model=MODEL, input="One?")
        second = await client.responses.create(
            model=MODEL, input="Two?", previous_response_id=first.id
        )
        other = await client.responses.create(model=MODEL, input="Three?")

    assert seen == [["One?"], ["One?", "Yes.", "Two?"], ["Three?"]]
    assert second.previous_response_id == first.id
    assert len({first.id, second.id, other.id}) == 3


async def test_only_the_last_response_of_a_conversation_is_continued():
    async with client_of(Brain(llm=ScriptedLLM(["One.", "Two."]))) as client:
        first = await client.responses.create(model=MODEL, input="One?")
        await client.responses.create(model=MODEL, input="Two?", previous_response_id=first.id)
        with pytest.raises(openai.BadRequestError, match="not the last response"):
            await client.responses.create(model=MODEL, input="?", previous_response_id=first.id)


@pytest.mark.parametrize("from_failed", [False, True])
async def test_after_a_failure_it_and_the_response_before_it_can_be_continued(from_failed):
    turns = ["One.", LLMServerError("down"), ["Once", ValueError("bug")], "Two."]
    async with client_of(Brain(llm=ScriptedLLM(turns))) as client:
        first = await client.responses.create(model=MODEL, input="One?")
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(model=MODEL, input="A", previous_response_id=first.id)
        stream = await client.responses.create(
            model=MODEL, input="B", previous_response_id=first.id, stream=True
        )
        failed = [event async for event in stream][-1]
        previous = failed.response.id if from_failed else first.id
        done = await client.responses.create(model=MODEL, input="C", previous_response_id=previous)

    assert failed.type == "response.failed"
    assert done.output_text == "Two."


@pytest.mark.parametrize("from_failed", [False, True])
async def test_without_a_journal_a_failed_response_does_not_count(from_failed):
    seen: list[list[str]] = []

    def note(messages: list[Any]) -> str:
        seen.append([message.content for message in messages if message.role != "system"])
        return "Done."

    turns = ["One.", LLMServerError("down"), ["Once", ValueError("bug")], note]
    async with client_of(Brain(llm=ScriptedLLM(turns))) as client:
        first = await client.responses.create(model=MODEL, input="One?")
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(model=MODEL, input="A", previous_response_id=first.id)
        stream = await client.responses.create(
            model=MODEL, input="B", previous_response_id=first.id, stream=True
        )
        failed = [event async for event in stream][-1]
        previous = failed.response.id if from_failed else first.id
        await client.responses.create(model=MODEL, input="C", previous_response_id=previous)

    said = [text for text in seen[0] if text in ("One?", "One.", "A", "B", "C")]
    assert said == ["One?", "One.", *(["B"] if from_failed else []), "C"]


@pytest.mark.parametrize("response_id", ["resp_1", "resp_1_", "x", "resp_abc_nothing"])
async def test_an_unknown_response_is_not_found(response_id):
    brain, _ = shop("Hello.")
    async with client_of(brain) as client:
        with pytest.raises(openai.BadRequestError) as raised:
            await client.responses.create(
                model=MODEL, input="Hi.", previous_response_id=response_id
            )

    assert raised.value.code == "previous_response_not_found"


async def test_the_responses_of_others_are_not_found():
    brain, _ = shop("My number is 7.", "No.")
    async with serving(brain) as url:
        ann = openai.AsyncOpenAI(base_url=url, api_key="ann-token", max_retries=0)
        bob = openai.AsyncOpenAI(base_url=url, api_key="bob-token", max_retries=0)
        async with ann, bob:
            first = await ann.responses.create(model=MODEL, input="Hi.")
            with pytest.raises(openai.BadRequestError) as raised:
                await bob.responses.create(
                    model=MODEL, input="What?", previous_response_id=first.id
                )

    assert raised.value.code == "previous_response_not_found"


async def test_a_response_that_is_not_stored_cannot_be_continued():
    brain, _ = shop("One.", "Two.")
    async with client_of(brain) as client:
        first = await client.responses.create(model=MODEL, input="One?", store=False)
        with pytest.raises(openai.BadRequestError):
            await client.responses.create(model=MODEL, input="?", previous_response_id=first.id)

    assert first.store is False


async def test_instructions_hold_for_one_response():
    seen: list[str] = []

    def note(messages: list[Any]) -> str:
        seen.append(messages[0].content)
        return "Yes."

    async with client_of(Brain(llm=ScriptedLLM([note] * 4))) as client:
        previous = None
        for instructions in ("Be brief.", "Be brief.", "Be kind.", None):
            done = await client.responses.create(
                model=MODEL, input="?", instructions=instructions, previous_response_id=previous
            )
            previous = done.id

    assert [text.count("Be brief.") for text in seen] == [1, 1, 0, 0]
    assert [text.count("Be kind.") for text in seen] == [0, 0, 1, 0]


async def test_a_conversation_is_a_session():
    brain, _ = shop("One.", "Two.")
    headers = {"authorization": "Bearer ann-token"}
    async with serving(brain) as url, httpx.AsyncClient(headers=headers) as http:
        session = (await http.post(f"{url[:-3]}/sessions")).json()["id"]
        async with openai.AsyncOpenAI(base_url=url, api_key="ann-token") as client:
            for text in ("One?", "Two?"):
                done = await client.responses.create(model=MODEL, input=text, conversation=session)
        messages = (await http.get(f"{url[:-3]}/sessions/{session}")).json()["messages"]

    assert done.conversation is not None
    assert done.conversation.id == session
    assert [message["content"] for message in messages] == ["One?", "One.", "Two?", "Two."]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_approved_call_runs(stream):
    brain, paid = shop([PAYS], last)
    async with client_of(brain, show_tools=True) as client:
        asked = await client.responses.create(model=MODEL, input="Pay five.")
        assert ([item.type for item in asked.output], paid) == (["mcp_approval_request"], [])
        assert asked.output[0].id == "mcpr_call_5"
        done = await client.responses.create(
            model=MODEL, input=[approval(True)], previous_response_id=asked.id, stream=stream
        )
        if stream:
            done = [event async for event in done][-1].response

    assert paid == [5]
    assert done.output[0].approval_request_id == "mcpr_call_5"
    assert done.output_text == "paid 5"


async def test_a_denied_call_does_not_run():
    brain, paid = shop([PAYS], last)
    async with client_of(brain) as client:
        asked = await client.responses.create(model=MODEL, input="Pay five.")
        done = await client.responses.create(
            model=MODEL,
            input=[approval(False, reason="too much")],
            previous_response_id=asked.id,
        )

    assert paid == []
    assert "too much" in done.output_text


async def test_one_of_two_calls_is_decided_at_a_time():
    brain, paid = shop([PAYS, Action(name="pay", args={"amount": 6}, id="call_6")], "Done.")
    async with client_of(brain) as client:
        asked = await client.responses.create(model=MODEL, input="Pay.")
        again = await client.responses.create(
            model=MODEL, input=[approval(True)], previous_response_id=asked.id
        )
        assert [item.id for item in again.output] == ["mcpr_call_6"]
        second = {**approval(False), "approval_request_id": "mcpr_call_6"}
        done = await client.responses.create(
            model=MODEL, input=[second], previous_response_id=again.id
        )

    assert (paid, done.output_text) == ([5], "Done.")


async def test_a_decision_about_nothing_is_refused():
    brain, _ = shop("Hello.")
    async with client_of(brain) as client:
        first = await client.responses.create(model=MODEL, input="Hi.")
        with pytest.raises(openai.BadRequestError, match="does not wait"):
            await client.responses.create(
                model=MODEL, input=[approval(True)], previous_response_id=first.id
            )
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            await client.responses.create(model=MODEL, input=[approval(True)], store=False)


async def test_a_question_is_answered_by_the_next_message():
    brain, _ = shop([Action(name="ask_user", args={"question": "Which city?"})], last)
    async with client_of(brain) as client:
        asked = await client.responses.create(model=MODEL, input="Book a hotel.")
        done = await client.responses.create(
            model=MODEL, input="Rome", previous_response_id=asked.id
        )

    assert (asked.output_text, done.output_text) == ("Which city?", "Rome")
    assert asked.agent_brain["stop_reason"] == "input"


@pytest.mark.parametrize(
    ("fields", "kind", "code"),
    [
        ({"model": "gpt-4.1"}, openai.NotFoundError, "model_not_found"),
        ({"input": []}, openai.BadRequestError, None),
        ({"tools": [{"type": "web_search"}]}, openai.BadRequestError, "unsupported_parameter"),
        ({"background": True}, openai.BadRequestError, "unsupported_parameter"),
    ],
)
async def test_requests_that_cannot_be_answered_raise_the_clients_errors(fields, kind, code):
    brain, _ = shop()
    async with client_of(brain) as client:
        with pytest.raises(kind) as raised:
            await client.responses.create(**{"model": MODEL, "input": "Hi.", **fields})

    assert raised.value.code == code


async def test_the_limit_of_tokens_makes_the_response_incomplete():
    async with client_of(Brain(llm=ScriptedLLM([["abcd"] * 10]))) as client:
        done = await client.responses.create(model=MODEL, input="Hi.", max_output_tokens=3)

    assert (done.output_text, done.status) == ("abcd" * 3, "incomplete")
    assert done.incomplete_details.reason == "max_output_tokens"


async def test_frames_carry_the_names_of_their_events():
    brain, _ = shop("Hello.")
    async with serving(brain) as url, httpx.AsyncClient() as http:
        answer = await http.post(
            f"{url}/responses",
            json={"model": MODEL, "input": "Hi.", "stream": True},
            headers={"authorization": "Bearer ann-token"},
        )

    for frame in answer.text.split("\n\n")[:-1]:
        name, data = frame.split("\n")
        assert json.loads(data.removeprefix("data: "))["type"] == name.removeprefix("event: ")
