"""Requests and responses of providers with other protocols."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import aiohttp
import anyio
import pytest

from agent_brain.memories.message import Attachment, Message
from agent_brain.states import ArgumentsDelta, Finish, LiteLLM, LLMServerError, Piece, Thought
from agent_brain.testing import llm_conformance
from agent_brain.tools import Action, tool
from tests.support.conformance import pass_all
from tests.support.openai_server import CallDelta, OpenAIServer, Page, Raw, Reply, tool_calls

pytestmark = [
    pytest.mark.asyncio,
    # litellm looks at every attribute of its pydantic models, also at deprecated ones
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning:litellm"),
]

CLAUDE = "anthropic/claude-sonnet-4-5"
GEMINI = "gemini/gemini-2.5-pro"
HELLO = [Message.user("Hello")]
CALL = Action(name="weather", args={"city": "Oslo"}, id="c1")
CAT = Attachment(media_type="image/png", data="iVBORw0KGgo=", name="cat.png")


@tool
async def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: Its name.
    """
    return f"Rain in {city}"


def model_of(server: OpenAIServer, name: str = "openai/scripted", **options: Any) -> LiteLLM:
    settings = {"api_base": server.url, "api_key": "some-secret-key", "retries": 0}
    return LiteLLM(name, **{**settings, **options})


async def answer(llm: LiteLLM, messages: Sequence[Message] = HELLO, **options: Any) -> list[Piece]:
    stream = llm.stream(messages, **options)
    pieces: list[Piece] = [piece async for piece in stream if not isinstance(piece, ArgumentsDelta)]
    await llm.aclose()
    return pieces


def finish_of(pieces: Sequence[Piece]) -> Finish:
    (finish,) = [piece for piece in pieces if isinstance(piece, Finish)]
    return finish


def sse(*events: dict[str, Any]) -> Page:
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return Page("".join(lines), "text/event-stream")


def claude(*blocks: dict[str, Any], stop: str = "end_turn") -> Page:
    """A response of Claude: content blocks, each as it starts and with its deltas."""
    usage = {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 1}
    start = {"id": "m", "role": "assistant", "content": [], "model": "c", "usage": usage}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        deltas = block.pop("deltas", [])
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    end = {"delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}
    return sse(*events, {"type": "message_delta", **end}, {"type": "message_stop"})


def claude_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": "", "deltas": [{"type": "text_delta", "text": text}]}


def claude_thinks() -> list[dict[str, Any]]:
    return [
        {
            "type": "thinking",
            "thinking": "",
            "deltas": [
                {"type": "thinking_delta", "thinking": "Let me "},
                {"type": "thinking_delta", "thinking": "see."},
                {"type": "signature_delta", "signature": "signed"},
            ],
        },
        {"type": "redacted_thinking", "data": "sealed"},
        {
            "type": "tool_use",
            "id": "c1",
            "name": "weather",
            "input": {},
            "deltas": [{"type": "input_json_delta", "partial_json": '{"city": "Oslo"}'}],
        },
    ]


def gemini(*parts: dict[str, Any], stop: str = "STOP") -> Page:
    content = {"role": "model", "parts": list(parts)}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}
    candidate = {"content": content, "finishReason": stop, "index": 0}
    return sse({"candidates": [candidate], "usageMetadata": usage})


def turn(*, text: str = "", data: object = None, call: Action = CALL) -> list[Message]:
    """A question, a call without words, and its result."""
    metadata = {} if data is None else {"provider_data": data}
    return [
        Message.user("Weather in Oslo?"),
        Message.assistant(text, tool_calls=[call], metadata=metadata),
        Message.tool("Rain", call),
    ]


async def test_it_conforms() -> None:
    with OpenAIServer(repeat(Reply("Hel", "lo"))) as server:
        await pass_all(llm_conformance(lambda: model_of(server)))


# --- messages without text ---


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_call_without_text_sends_no_text_to_openai(text: str) -> None:
    with OpenAIServer([Reply("Rain.")]) as server:
        await answer(model_of(server), turn(text=text))
    sent = server.requests[0].body["messages"][1]
    assert sent.get("content") is None
    assert sent["tool_calls"][0]["function"]["name"] == "weather"


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_call_without_text_sends_nothing_but_the_call_to_claude(text: str) -> None:
    with OpenAIServer([claude(claude_text("Rain."))]) as server:
        await answer(model_of(server, CLAUDE), turn(text=text), tools=[weather])
    (_, sent, _) = server.requests[0].body["messages"]
    assert [block["type"] for block in sent["content"]] == ["tool_use"]


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_call_without_text_sends_nothing_but_the_call_to_gemini(text: str) -> None:
    with OpenAIServer([gemini({"text": "Rain."})]) as server:
        await answer(model_of(server, GEMINI), turn(text=text), tools=[weather])
    (_, sent, _) = server.requests[0].body["contents"]
    assert [set(part) for part in sent["parts"]] == [{"function_call"}]


async def test_an_answer_without_text_is_not_sent() -> None:
    messages = [Message.user("Hello"), Message.assistant(" "), Message.user("Hello?")]
    with OpenAIServer([claude(claude_text("Yes."))]) as server:
        await answer(model_of(server, CLAUDE), messages)
    assert "sanitised" not in json.dumps(server.requests[0].body)
    assert [sent["role"] for sent in server.requests[0].body["messages"]] == ["user"]


# --- what goes back to the provider ---


async def test_signed_thinking_is_kept_and_sent_back_to_its_provider() -> None:
    script = [claude(*claude_thinks(), stop="tool_use"), claude(claude_text("Rain."))]
    with OpenAIServer(script) as server:
        llm = model_of(server, CLAUDE, reasoning_effort="low")
        pieces = await answer(llm, tools=[weather])
        assert [piece for piece in pieces if isinstance(piece, Thought)] == ["Let me ", "see."]
        finish = finish_of(pieces)
        (call,) = [piece for piece in pieces if isinstance(piece, Action)]
        json.dumps(finish.provider_data)
        await answer(llm, turn(data=finish.provider_data, call=call), tools=[weather])
    assert finish.reason == "tool_calls"
    assert server.requests[1].body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Let me see.", "signature": "signed"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
    ]


async def test_signed_thinking_is_not_sent_to_another_provider() -> None:
    with OpenAIServer([claude(*claude_thinks(), stop="tool_use"), Reply("Rain.")]) as server:
        finish = finish_of(await answer(model_of(server, CLAUDE), tools=[weather]))
        await answer(model_of(server), turn(data=finish.provider_data))
    assert "signed" not in json.dumps(server.requests[1].body)
    assert "sealed" not in json.dumps(server.requests[1].body)


async def test_the_signature_of_a_gemini_call_is_kept_apart_from_its_id() -> None:
    part = {
        "functionCall": {"name": "weather", "args": {"city": "Oslo"}},
        "thoughtSignature": "c2lnbmVk",
    }
    with OpenAIServer([gemini(part), gemini({"text": "Rain."}), Reply("Rain.")]) as server:
        llm = model_of(server, GEMINI)
        pieces = await answer(llm, tools=[weather])
        (call,) = [piece for piece in pieces if isinstance(piece, Action)]
        messages = turn(data=finish_of(pieces).provider_data, call=call)
        await answer(llm, messages, tools=[weather])
        await answer(model_of(server), messages)
    assert "c2lnbmVk" not in call.id
    (sent,) = server.requests[1].body["contents"][1]["parts"]
    assert sent["thoughtSignature"] == "c2lnbmVk"
    assert "c2lnbmVk" not in json.dumps(server.requests[2].body)


@pytest.mark.parametrize("arguments", [{}, {"args": None}, {"args": {}}], ids=str)
async def test_a_call_of_gemini_may_leave_out_that_it_has_no_arguments(
    arguments: dict[str, None],
) -> None:
    part = {"functionCall": {"name": "weather", **arguments}}
    with OpenAIServer([gemini(part)]) as server:
        pieces = await answer(model_of(server, GEMINI), tools=[weather])
    (call,) = [piece for piece in pieces if isinstance(piece, Action)]
    assert (call.name, call.args) == ("weather", {})


@pytest.mark.parametrize("data", ["text", 5, ["a"], {"origin": 1}, {"origin": "openai scripted"}])
async def test_provider_data_of_another_form_is_left_alone(data: object) -> None:
    with OpenAIServer([Reply("Rain.")]) as server:
        await answer(model_of(server), turn(data=data))
    assert len(server.requests) == 1


async def test_deepseek_gets_its_reasoning_back() -> None:
    reasoning = Raw(
        '{"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices":'
        ' [{"index": 0, "delta": {"reasoning_content": "Hm"}, "finish_reason": null}]}'
    )
    calls = tool_calls(("c1", "weather", '{"city": "Oslo"}'))
    with OpenAIServer([Reply(reasoning, *calls), Reply("Rain.")]) as server:
        llm = model_of(server, "deepseek/deepseek-reasoner")
        finish = finish_of(await answer(llm, tools=[weather]))
        await answer(llm, turn(data=finish.provider_data), tools=[weather])
    assert server.requests[1].body["messages"][1]["reasoning_content"] == "Hm"


# --- how a response ends ---


@pytest.mark.parametrize(
    ("reported", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_calls"),
        ("insufficient_system_resource", "unknown"),
    ],
)
async def test_why_a_response_ended_comes_before_its_usage(reported: str, reason: str) -> None:
    with OpenAIServer([Reply("Hi", finish=reported)]) as server:
        pieces = await answer(model_of(server))
    assert pieces[-2] == Finish(reason)  # type: ignore[arg-type]


async def test_a_server_that_says_stop_after_a_call_means_the_call() -> None:
    calls = tool_calls(("c1", "weather", "{}"))
    with OpenAIServer([Reply(*calls, finish="stop")]) as server:
        pieces = await answer(model_of(server))
    assert finish_of(pieces).reason == "tool_calls"


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_an_answer_without_content_still_says_why(finish: str) -> None:
    with OpenAIServer([Reply(finish=finish)]) as server:
        pieces = await answer(model_of(server))
    assert finish_of(pieces).reason == finish
    assert not [piece for piece in pieces if isinstance(piece, str | Action)]


async def test_a_refusal_of_openai_is_a_refusal_in_its_text() -> None:
    def refusal(text: str) -> Raw:
        choice = {"index": 0, "delta": {"refusal": text}, "finish_reason": None}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return Raw(json.dumps({**event, "choices": [choice]}))

    with OpenAIServer([Reply(refusal("I cannot "), refusal("help."))]) as server:
        pieces = await answer(model_of(server))
    assert pieces[:2] == ["I cannot help.", Finish("refusal")]


async def test_a_refusal_of_claude_is_a_refusal() -> None:
    with OpenAIServer([claude(claude_text("No"), stop="refusal")]) as server:
        pieces = await answer(model_of(server, CLAUDE))
    assert finish_of(pieces).reason == "refusal"


async def test_a_filtered_answer_of_gemini_is_filtered() -> None:
    with OpenAIServer([gemini({"text": "W"}, stop="SAFETY")]) as server:
        pieces = await answer(model_of(server, GEMINI))
    assert finish_of(pieces).reason == "content_filter"


MALFORMED = ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"]


@pytest.mark.parametrize("reason", MALFORMED)
async def test_a_call_that_gemini_cannot_read_is_tried_again_and_named(reason: str) -> None:
    broken = gemini(stop=reason)
    with OpenAIServer([broken, gemini({"text": "Hello"})]) as server:
        pieces = await answer(model_of(server, GEMINI, retries=1))
    assert "Hello" in pieces
    with OpenAIServer([broken]) as server, pytest.raises(LLMServerError, match=reason):
        await answer(model_of(server, GEMINI))


async def test_a_malformed_call_behind_text_is_no_complete_response() -> None:
    with OpenAIServer([gemini({"text": "I look."}, stop="MALFORMED_FUNCTION_CALL")]) as server:
        pieces = await answer(model_of(server, GEMINI))
    assert pieces[0] == "I look."
    assert finish_of(pieces).reason == "unknown"


# --- names of tools ---


@pytest.mark.parametrize(
    "names",
    [
        ("weather", None, None),
        ("wea", "ther", None),
        ("weather", "weather", "weather"),
        ("weather", "", ""),
        ("we", "weath", "weather"),
    ],
)
async def test_a_name_in_any_fragments_is_put_together(names: Sequence[str | None]) -> None:
    arguments = ("", '{"city": ', '"Oslo"}')
    first, *rest = zip(names, arguments, strict=True)
    deltas = [CallDelta(0, first[1], id="c1", name=first[0])]
    deltas += [CallDelta(0, part, name=name) for name, part in rest]
    with OpenAIServer([Reply(*deltas)]) as server:
        pieces = await answer(model_of(server))
    assert pieces[0] == CALL


async def test_a_call_without_a_name_is_a_call_all_the_same() -> None:
    with OpenAIServer([Reply(CallDelta(0, "{}", id="c1"))]) as server:
        pieces = await answer(model_of(server))
    assert pieces[0] == Action(name="", id="c1")


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("weather", "weather"),
        ("", "unnamed_tool"),
        ("functions.weather", "functions_weather"),
        ("weather<|channel|>commentary", "weather_channel_commentary"),
        ("погода", "_"),
        ("x" * 100, "x" * 64),
    ],
)
async def test_a_name_that_no_api_takes_does_not_go_back_on_the_wire(name: str, sent: str) -> None:
    call = Action(name=name, id="c1")
    messages = [Message.user("?"), Message.assistant(tool_calls=[call]), Message.tool("No", call)]
    with OpenAIServer([Reply("Hi")]) as server:
        await answer(model_of(server), messages)
    assert server.requests[0].body["messages"][1]["tool_calls"][0]["function"]["name"] == sent


# --- pictures ---


def pictures(count: int) -> list[Message]:
    return [Message.user(f"Picture {n}", attachments=[CAT]) for n in range(count)]


def images_in(sent: dict[str, Any]) -> list[int]:
    """How many pictures each message has."""
    contents = [message["content"] for message in sent["messages"]]
    return [str(content).count("image_url':") for content in contents]


async def test_a_model_that_cannot_see_gets_a_note_instead_of_the_picture() -> None:
    with OpenAIServer([Reply("Hi")]) as server:
        await answer(model_of(server, base_model="openai/gpt-3.5-turbo"), pictures(1))
    (sent,) = server.requests[0].body["messages"]
    assert sent["content"] == "Picture 0\n[picture cat.png: this model cannot see pictures]"


@pytest.mark.parametrize(
    "options", [{}, {"base_model": "openai/gpt-4o"}, {"supports_vision": True}]
)
async def test_a_model_that_sees_gets_the_picture(options: dict[str, Any]) -> None:
    with OpenAIServer([Reply("Hi")]) as server:
        await answer(model_of(server, **options), pictures(1))
    assert images_in(server.requests[0].body) == [1]


async def test_only_the_newest_pictures_are_sent() -> None:
    with OpenAIServer([Reply("Hi"), Reply("Hi")]) as server:
        await answer(model_of(server, max_images=2), pictures(4))
        await answer(model_of(server), pictures(22))
    assert images_in(server.requests[0].body) == [0, 0, 1, 1]
    assert images_in(server.requests[1].body) == [0, 0, *[1] * 20]
    note = server.requests[0].body["messages"][0]["content"]
    assert note == "Picture 0\n[picture cat.png: only the newest pictures are sent]"


async def test_the_address_of_a_picture_that_is_not_sent_is_in_its_note() -> None:
    picture = Attachment(media_type="image/png", url="https://example.com/cat.png")
    sound = Attachment(media_type="audio/wav", data="UklGRg==")
    messages = [Message.user("?", attachments=[picture, sound])]
    with OpenAIServer([Reply("Hi")]) as server:
        await answer(model_of(server, supports_vision=False), messages)
    (sent,) = server.requests[0].body["messages"]
    text, audio = sent["content"]
    assert "https://example.com/cat.png" in text["text"]
    assert audio["type"] == "input_audio"


# --- caching ---


async def test_caching_can_be_asked_for() -> None:
    messages = [Message.system("Be brief."), *turn()]
    with OpenAIServer([claude(claude_text("Rain."))] * 2) as server:
        await answer(model_of(server, CLAUDE), messages, tools=[weather])
        await answer(model_of(server, CLAUDE, cache_prompt=True), messages, tools=[weather])
    plain, cached = (request.body for request in server.requests)
    assert "cache_control" not in json.dumps(plain)
    assert cached["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert cached["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("name", ["openai/scripted", GEMINI])
async def test_providers_that_cache_by_themselves_are_not_asked(name: str) -> None:
    script = [Reply("Hi") if name.startswith("openai") else gemini({"text": "Hi"})]
    with OpenAIServer(script) as server:
        await answer(model_of(server, name, cache_prompt=True), HELLO)
    assert len(server.requests) == 1
    assert "cache" not in json.dumps(server.requests[0].body)


async def test_tokens_read_from_the_cache_are_reported() -> None:
    with OpenAIServer([claude(claude_text("Hi"))]) as server:
        usage: Any = (await answer(model_of(server, CLAUDE)))[-1]
    assert (usage.input_tokens, usage.cached_tokens) == (100, 80)


async def open_sessions() -> set[Any]:
    def found() -> set[Any]:
        return {o for o in gc.get_objects() if type(o) is aiohttp.ClientSession and not o.closed}

    before = found()
    with OpenAIServer([claude(claude_text("Hi"))]) as server:
        await answer(model_of(server, CLAUDE))
    return found() - before


async def test_aclose_closes_the_client_that_litellm_shares_between_event_loops() -> None:
    await open_sessions()  # makes the client
    assert await anyio.to_thread.run_sync(asyncio.run, open_sessions()) == set()
