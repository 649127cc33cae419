"""Chat Completions over sockets, with the official Python client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest

from agent_brain import Brain, UsageBudget, UsageLedger
from agent_brain.demo import demo_tools
from agent_brain.errors import LLMRateLimitError
from agent_brain.states import Finish, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.serving.web.openai.server import PNG, drawn, serving, shop

pytestmark = pytest.mark.anyio

MODEL = "agent-brain"
HELLO: Any = [{"role": "user", "content": "Hello."}]


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


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def test_the_agent_is_the_only_model():
    async with client_of(Brain()) as client:
        models = [model.id async for model in client.models.list()]
        one = await client.models.retrieve(MODEL)
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-4.1")

    assert models == [MODEL] == [one.id]


async def test_the_official_client_gets_the_whole_answer():
    brain, _ = shop(["Good ", "morning.", Usage(10, 2)])
    async with client_of(brain) as client:
        done = await client.chat.completions.create(model=MODEL, messages=HELLO)

    assert done.choices[0].message.content == "Good morning."
    assert done.choices[0].finish_reason == "stop"
    assert done.usage.total_tokens == 12
    assert done.agent_brain["stop_reason"] == "done"


async def test_the_official_client_streams():
    brain, _ = shop(["Good ", "morning.", Usage(10, 2)])
    async with client_of(brain) as client:
        stream = await client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]

    deltas = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert deltas == ["", "Good ", "morning.", None]
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 12)


async def test_the_accumulating_helper_of_the_client_works():
    brain, _ = shop(["Good ", "morning."])
    async with (
        client_of(brain) as client,
        client.chat.completions.stream(model=MODEL, messages=HELLO) as stream,
    ):
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()

    assert "content.delta" in kinds
    assert final.choices[0].message.content == "Good morning."


async def test_citations_have_their_places_in_the_answer():
    at: list[Any] = [{"url": "https://e.org/a", "start_index": 3, "end_index": 7} for _ in range(2)]
    at[1] = {"url": "https://e.org/b", "start_index": 0, "end_index": 99}
    search = Action(name="double", args={"n": 2})
    turn = ["Let me ", "see.", search, Finish("tool_calls")]
    brain, _ = shop(*[turn, ["In Oslo", ".", Finish("stop", metadata={"citations": at})]] * 2)
    async with client_of(brain) as client:
        done = await client.chat.completions.create(model=MODEL, messages=HELLO)
        async with client.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
            streamed = await stream.get_final_completion()

    message = done.choices[0].message
    assert message.content == "Let me see.\n\nIn Oslo."
    first, second = (each.url_citation for each in message.annotations)
    assert message.content[first.start_index : first.end_index] == "Oslo"
    assert (second.start_index, second.end_index) == (21, 21)
    assert streamed.choices[0].message.annotations == message.annotations


async def test_an_answer_has_the_pages_that_it_cites_once():
    cited: Any = [{"url": "https://e.org/a", "title": "A"}, "https://e.org/b"]
    turn = ["Oslo.", Finish("stop", metadata={"citations": cited})]
    searched = [Action(name="double", args={"n": 2}), *turn[1:]]
    brain, _ = shop(searched, turn, searched, turn)
    async with client_of(brain) as client:
        done = await client.chat.completions.create(model=MODEL, messages=HELLO)
        async with client.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
            streamed = await stream.get_final_completion()

    message = done.choices[0].message
    place = {"start_index": 5, "end_index": 5}  # the end of the answer
    assert [(each.type, each.url_citation.model_dump()) for each in message.annotations] == [
        ("url_citation", {"url": "https://e.org/a", "title": "A", **place}),
        ("url_citation", {"url": "https://e.org/b", "title": "https://e.org/b", **place}),
    ]
    assert streamed.choices[0].message.annotations == message.annotations


async def test_a_picture_alone_is_an_answer():
    asked: Any = {"model": MODEL, "messages": [{"role": "user", "content": "Draw."}]}
    async with client_of(Brain(llm=ScriptedLLM([[drawn()], [drawn()]]))) as client:
        whole = (await client.chat.completions.create(**asked)).choices[0].message
        chunks = [c async for c in await client.chat.completions.create(**asked, stream=True)]

    [streamed] = [image for c in chunks for image in c.choices[0].delta.to_dict().get("images", ())]
    [image] = whole.to_dict()["images"]
    assert whole.content == ""
    assert image == streamed
    assert image["image_url"] == {"url": f"data:image/png;base64,{PNG}"}


async def test_the_demo_agent_answers_with_its_tools():
    async with client_of(Brain("react", tools=demo_tools())) as client:
        done = await client.chat.completions.create(
            model=MODEL, messages=user("What is 17 times 23?")
        )
        shown = await client.chat.completions.create(
            model=MODEL,
            messages=user("What is 17 times 23?"),
            extra_body={"agent_brain": {"show_tools": True}},
        )

    assert "391" in done.choices[0].message.content
    assert not hasattr(done.choices[0].message, "reasoning_content")
    assert "391" in shown.choices[0].message.reasoning_content
    assert shown.choices[0].message.tool_calls is None


async def test_the_history_is_sent_to_the_model():
    llm = ScriptedLLM(["Fine."])
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I am Ann."},
        {"role": "assistant", "content": "Hello, Ann."},
        {"role": "user", "content": "How are you?"},
    ]
    async with client_of(Brain(llm=llm)) as client:
        await client.chat.completions.create(model=MODEL, messages=messages)

    instructions, *said = llm.calls[0].messages
    assert "Be brief." in instructions.content
    assert [message.content for message in said] == ["I am Ann.", "Hello, Ann.", "How are you?"]


async def test_without_a_session_nothing_is_kept():
    seen: list[int] = []

    def count(messages: list[Any]) -> str:
        seen.append(len([m for m in messages if m.role == "user"]))
        return "Yes."

    async with client_of(Brain(llm=ScriptedLLM([count, count]))) as client:
        for _ in range(2):
            await client.chat.completions.create(model=MODEL, messages=HELLO)

    assert seen == [1, 1]


async def test_a_session_keeps_the_conversation():
    seen: list[list[str]] = []

    def note(messages: list[Any]) -> str:
        seen.append([m.content for m in messages if m.role != "system"])
        return "Yes."

    async with client_of(Brain(llm=ScriptedLLM([note, note]))) as client:
        for text in ("One?", "Two?"):
            await client.chat.completions.create(
                model=MODEL, messages=user(text), extra_headers={"X-Session-Id": "talk"}
            )

    assert seen == [["One?"], ["One?", "Yes.", "Two?"]]


async def test_a_new_session_tells_its_id():
    brain, _ = shop("One.", "Two.")
    async with client_of(brain) as client:
        first = await client.chat.completions.create(
            model=MODEL, messages=HELLO, extra_headers={"X-Session-Id": "new"}
        )
        session = first.agent_brain["session"]
        second = await client.chat.completions.create(
            model=MODEL, messages=HELLO, extra_headers={"X-Session-Id": session}
        )

    assert len(session) > 20
    assert second.agent_brain["session"] == session


@pytest.mark.parametrize(
    ("words", "paid", "said"),
    [
        ("yes", [5], "paid 5"),
        ("no, too much", [], "too much"),
        ('edit {"amount": 3}', [3], "paid 3"),
    ],
)
async def test_the_next_message_decides_about_a_call(words, paid, said):
    def last(messages: list[Any]) -> str:
        return messages[-1].content

    brain, spent = shop([Action(name="pay", args={"amount": 5})], last)
    headers = {"X-Session-Id": "shopping"}
    async with client_of(brain) as client:
        asked = await client.chat.completions.create(
            model=MODEL, messages=user("Pay five."), extra_headers=headers
        )
        assert (asked.agent_brain["stop_reason"], spent) == ("approval", [])
        done = await client.chat.completions.create(
            model=MODEL, messages=user(words), extra_headers=headers
        )

    assert 'May the agent call pay with {"amount": 5}?' in asked.choices[0].message.content
    assert asked.choices[0].finish_reason == "stop"
    assert spent == paid
    assert said in done.choices[0].message.content


async def test_words_that_decide_nothing_are_refused_and_the_run_waits():
    brain, paid = shop([Action(name="pay", args={"amount": 5})], "Done.")
    async with client_of(brain) as client:

        async def say(words: str) -> Any:
            return await client.chat.completions.create(
                model=MODEL, messages=user(words), extra_headers={"X-Session-Id": "shopping"}
            )

        await say("Pay five.")
        with pytest.raises(openai.BadRequestError, match="May the agent call pay"):
            await say("What for?")
        assert paid == []
        await say("yes")

    assert paid == [5]


async def test_the_sessions_of_others_are_not_reached():
    brain, _ = shop("One.", "Two.")
    headers = {"X-Session-Id": "mine"}
    async with serving(brain) as url:
        for token in ("ann-token", "bob-token"):
            async with openai.AsyncOpenAI(base_url=url, api_key=token) as client:
                await client.chat.completions.create(
                    model=MODEL, messages=user(token), extra_headers=headers
                )
        async with httpx.AsyncClient(headers={"authorization": "Bearer bob-token"}) as http:
            found = (await http.get(f"{url[:-3]}/sessions/mine")).json()

    assert "ann-token" not in str(found)
    assert "bob-token" in str(found)


@pytest.mark.parametrize(
    ("fields", "kind", "code"),
    [
        ({"model": "gpt-4.1"}, openai.NotFoundError, "model_not_found"),
        ({"messages": []}, openai.BadRequestError, "invalid_request"),
        ({"messages": user("")}, openai.BadRequestError, None),
        ({"n": 2}, openai.BadRequestError, "unsupported_parameter"),
        (
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
            openai.BadRequestError,
            "unsupported_parameter",
        ),
        ({"stream": True, "stop": "x"}, openai.BadRequestError, "unsupported_parameter"),
    ],
)
async def test_requests_that_cannot_be_answered_raise_the_clients_errors(fields, kind, code):
    brain, _ = shop()
    async with client_of(brain) as client:
        with pytest.raises(kind) as raised:
            await client.chat.completions.create(**{"model": MODEL, "messages": HELLO, **fields})

    assert raised.value.code == code
    assert raised.value.type == "invalid_request_error"


async def test_a_wrong_token_is_an_authentication_error():
    brain, _ = shop()
    async with client_of(brain, token="eve-token") as client:
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(model=MODEL, messages=HELLO)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_that_fails_before_it_says_anything_is_an_http_error(stream):
    error = LLMRateLimitError("slow down: sk-abcdefghijklmnop", provider="openai", model="m")
    async with client_of(Brain(llm=ScriptedLLM([error]))) as client:
        with pytest.raises(openai.RateLimitError) as raised:
            await client.chat.completions.create(model=MODEL, messages=HELLO, stream=stream)

    assert "slow down" in raised.value.message
    assert "abcdefgh" not in raised.value.message


async def test_a_run_that_fails_later_is_an_error_in_the_stream():
    async with client_of(Brain(llm=ScriptedLLM([["Once ", ValueError("hunter2")]]))) as client:
        stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        said = [(await anext(stream)).choices[0].delta.content for _ in range(2)]
        with pytest.raises(openai.APIError, match="The run failed: ValueError") as raised:
            await anext(stream)

    assert said == ["", "Once "]
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_limit_of_tokens_cancels_the_run(stream):
    played: list[str] = []

    def again(messages: list[Any]) -> Any:
        played.append("again")
        return ["abcd"] * 100

    brain = Brain(llm=ScriptedLLM([["abcd"] * 5 + [Action(name="double", args={"n": 2})], again]))
    async with client_of(brain) as client:
        done = await client.chat.completions.create(
            model=MODEL, messages=HELLO, max_completion_tokens=3, stream=stream
        )
        if stream:
            chunks = [chunk async for chunk in done]
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            reason = chunks[-1].choices[0].finish_reason
        else:
            text, reason = done.choices[0].message.content, done.choices[0].finish_reason

    assert (text, reason, played) == ("abcd" * 3, "length", [])


async def test_a_stream_ends_with_done_and_each_line_is_data():
    brain, _ = shop("Hello.")
    body = {"model": MODEL, "messages": HELLO, "stream": True}
    async with serving(brain) as url, httpx.AsyncClient() as http:
        headers = {"authorization": "Bearer ann-token"}
        answer = await http.post(f"{url}/chat/completions", json=body, headers=headers)

    assert answer.headers["content-type"].startswith("text/event-stream")
    frames = answer.text.split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    assert all(frame.startswith("data: {") for frame in frames[:-2])


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c\x85", "\ud800 lone", "data: [DONE]\n\n", "日本語"]
)
async def test_any_text_arrives_whole(text):
    brain, _ = shop([text])
    async with client_of(brain) as client:
        stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        said = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert said == text.replace("\ud800", "\ufffd")


@pytest.mark.parametrize("path", ["chat", "responses"])
async def test_a_budget_that_is_used_up_is_a_quota_error(path):
    ledger = UsageLedger(budgets=[UsageBudget("user", requests=1)])
    brain = Brain(llm=ScriptedLLM(["One.", "Two."]), hooks=[ledger])
    async with client_of(brain) as client:

        async def ask() -> Any:
            if path == "chat":
                return await client.chat.completions.create(model=MODEL, messages=HELLO)
            return await client.responses.create(model=MODEL, input="Hello.")

        await ask()
        with pytest.raises(openai.RateLimitError) as raised:
            await ask()

    assert raised.value.code == "insufficient_quota"
