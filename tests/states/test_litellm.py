from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import Brain
from agent_brain.common.errors import EventLoopError
from agent_brain.common.litellm import load_litellm
from agent_brain.memories import MessagesMemory, RamJournal
from agent_brain.memories.message import Message
from agent_brain.states.errors import (
    ContextWindowError,
    LLMAuthenticationError,
    LLMBadRequestError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMServerError,
    LLMTimeoutError,
    StateDefinitionError,
)
from agent_brain.states.events import ResponseStarted, UsageReported
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.states.models.llm import LLM, ArgumentsDelta, Finish, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.states.work import closing
from agent_brain.tools import Action, BaseTool, tool
from tests.support.clock import fake_clock
from tests.support.openai_server import (
    CONTEXT_LENGTH,
    CallDelta,
    Cut,
    Failure,
    OpenAIServer,
    Page,
    Raw,
    Reasoning,
    Refuse,
    Reply,
    Response,
    Stall,
    tool_calls,
)
from tests.support.thorough import thorough

pytestmark = [
    pytest.mark.asyncio,
    # litellm looks at every attribute of its pydantic models, also at deprecated ones
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning:litellm"),
]

KEY = "a-very-secret-key-7f3a"
HOUR = 3600.0
HELLO = [Message.user("Hello")]
SSE_ERROR = Raw('{"error": {"message": "overloaded", "type": "server_error"}}')


class Weather(BaseModel):
    city: str
    degrees: int


@tool
async def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: Its name.
    """
    return f"Rain in {city}"


def model_of(server: OpenAIServer, name: str = "openai/scripted", **options: Any) -> LiteLLM:
    settings = {"api_base": server.url, "api_key": KEY, "backoff": 0.001, "retries": 0}
    return LiteLLM(name, **{**settings, **options})


def raw_chunk(**fields: Any) -> Raw:
    event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return Raw(json.dumps({**event, **fields}))


def raw_delta(finish: str | None = None, **delta: Any) -> Raw:
    return raw_chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


async def answer(llm: LLM, messages: Sequence[Message] = HELLO, **options: Any) -> list[Piece]:
    stream = llm.stream(messages, **options)
    pieces: list[Piece] = [piece async for piece in stream if not isinstance(piece, ArgumentsDelta)]
    await llm.aclose()
    return pieces


async def read(pieces: AsyncIterator[Piece]) -> list[Piece]:
    return [piece async for piece in pieces]


async def actions_of(*deltas: CallDelta) -> list[Action]:
    with OpenAIServer([Reply(*deltas)]) as server:
        pieces = await answer(model_of(server))
    return [piece for piece in pieces if isinstance(piece, Action)]


async def pieces_before(kind: type[LLMError], llm: LLM) -> list[Any]:
    """What the model streams before it fails."""
    pieces: list[Any] = []

    async def collect() -> None:
        async for piece in llm.stream(HELLO):
            pieces.append(piece)

    with pytest.raises(kind):
        await collect()
    await llm.aclose()
    return pieces


async def failure_of(llm: LLM) -> LLMError:
    with pytest.raises(LLMError) as caught:
        await answer(llm)
    await llm.aclose()
    return caught.value


# --- what is streamed ---


async def test_text_comes_in_the_chunks_in_which_it_was_sent() -> None:
    with OpenAIServer([Reply("Hel", "lo ", "Ann")]) as server:
        pieces = await answer(model_of(server))
    assert pieces[:-2] == ["Hel", "lo ", "Ann"]


async def test_a_chunk_is_given_out_before_the_next_one_is_sent() -> None:
    with OpenAIServer([Reply("first", Stall(), "second")]) as server:
        llm = model_of(server)
        async with closing(llm.stream(HELLO)) as pieces:
            assert await anext(pieces) == "first"
            server.release()
            assert await anext(pieces) == "second"
        await llm.aclose()


async def test_reasoning_comes_as_thoughts_and_text_does_not() -> None:
    with OpenAIServer([Reply(Reasoning("Hm"), "Yes")]) as server:
        pieces = await answer(model_of(server))
    assert [(type(piece), piece) for piece in pieces[:-2]] == [(Thought, "Hm"), (str, "Yes")]


async def test_usage_comes_last_with_tokens_and_cost_and_model() -> None:
    with OpenAIServer([Reply("Hi", usage=(1000, 100))]) as server:
        pieces = await answer(model_of(server, "openai/gpt-4o-mini"))
    usage = pieces[-1]
    assert isinstance(usage, Usage)
    assert (usage.input_tokens, usage.output_tokens, usage.requests) == (1000, 100, 1)
    assert usage.model == "openai/gpt-4o-mini"
    assert usage.cost == pytest.approx(1000 * 0.15e-6 + 100 * 0.6e-6)


async def test_a_cost_that_litellm_does_not_work_out_is_taken_from_its_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = load_litellm().Usage(prompt_tokens=1000, completion_tokens=100, total_tokens=1100)

    async def chunks() -> AsyncIterator[SimpleNamespace]:
        yield SimpleNamespace(choices=[], usage=usage)

    async def acompletion(**_: Any) -> AsyncIterator[SimpleNamespace]:
        return chunks()

    monkeypatch.setattr("litellm.acompletion", acompletion)
    (reported,) = await answer(LiteLLM("openai/gpt-4o-mini"))
    assert isinstance(reported, Usage)
    assert reported.cost == pytest.approx(1000 * 0.15e-6 + 100 * 0.6e-6)


async def test_the_cost_of_a_model_without_known_prices_is_unknown() -> None:
    with OpenAIServer([Reply("Hi", usage=(1000, 100))]) as server:
        pieces = await answer(model_of(server))
    assert pieces[-1] == Usage(1000, 100, None, model="openai/scripted")


async def test_a_model_that_is_free_costs_nothing() -> None:
    with OpenAIServer([Reply("Hi", usage=(1000, 100))]) as server:
        pieces = await answer(model_of(server, base_model="ollama/llama3"))
    assert pieces[-1] == Usage(1000, 100, 0.0, model="openai/scripted")


async def test_prices_can_be_given_for_a_model_of_your_own() -> None:
    prices: dict[str, Any] = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.01}
    with OpenAIServer([Reply("Hi", usage=(1000, 100))]) as server:
        pieces = await answer(model_of(server, **prices))
    usage = pieces[-1]
    assert isinstance(usage, Usage)
    assert usage.cost == pytest.approx(2.0)


async def test_prices_of_your_own_go_before_those_of_the_table() -> None:
    prices: dict[str, Any] = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.01}
    with OpenAIServer([Reply("Hi", usage=(1000, 100))]) as server:
        usage = (await answer(model_of(server, "openai/gpt-4o-mini", **prices)))[-1]
    assert isinstance(usage, Usage)
    assert usage.cost == pytest.approx(2.0)


@pytest.mark.parametrize("given", ["input_cost_per_token", "output_cost_per_token"])
async def test_the_cost_is_unknown_where_one_of_the_prices_is(given: str) -> None:
    price: dict[str, Any] = {given: 0.001}
    with OpenAIServer([Reply("Hi", usage=(1000, 100))]) as server:
        pieces = await answer(model_of(server, **price))
    assert pieces[-1] == Usage(1000, 100, None, model="openai/scripted")


async def test_a_price_of_your_own_replaces_one_of_the_table() -> None:
    with OpenAIServer([Reply("Hi", usage=(1000, 100))]) as server:
        usage = (await answer(model_of(server, "openai/gpt-4o-mini", input_cost_per_token=1)))[-1]
    assert isinstance(usage, Usage)
    assert usage.cost == pytest.approx(1000 + 100 * 0.6e-6)


async def test_a_negative_usage_is_ignored() -> None:
    usage = {"prompt_tokens": -3, "completion_tokens": -4, "total_tokens": -7}
    with OpenAIServer([Reply("Hi", raw_chunk(choices=[], usage=usage), usage=None)]) as server:
        reported = (await answer(model_of(server)))[-1]
    assert isinstance(reported, Usage)
    assert reported.estimated
    assert reported.input_tokens > 0


async def test_cached_and_reasoning_tokens_are_in_the_usage() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    with OpenAIServer([Reply("Hi", raw_chunk(choices=[], usage=usage), usage=None)]) as server:
        reported = (await answer(model_of(server)))[-1]
    assert isinstance(reported, Usage)
    assert (reported.input_tokens, reported.cached_tokens) == (100, 60)
    assert (reported.output_tokens, reported.reasoning_tokens) == (20, 5)


@pytest.mark.parametrize("usage", [None, (0, 0)])
async def test_the_usage_of_a_server_that_reports_none_is_estimated(
    usage: tuple[int, int] | None,
) -> None:
    messages = [Message.user("word " * 1000)]
    calls = tool_calls(("c1", "weather", '{"city": "' + "Oslo" * 100 + '"}'))
    with OpenAIServer([Reply("Hello. " * 100, *calls, usage=usage)]) as server:
        plain = model_of(server, base_model="openai/gpt-4o-mini")
        reported = (await answer(plain, messages, tools=[weather]))[-1]
    assert isinstance(reported, Usage)
    assert reported.estimated
    assert 1000 < reported.input_tokens < 2000
    assert 200 < reported.output_tokens < 500
    assert reported.cost == pytest.approx(
        reported.input_tokens * 0.15e-6 + reported.output_tokens * 0.6e-6
    )


async def test_a_reported_usage_is_not_marked_as_an_estimate() -> None:
    with OpenAIServer([Reply("Hi")]) as server:
        pieces = await answer(model_of(server))
    assert [piece.estimated for piece in pieces if isinstance(piece, Usage)] == [False]


async def test_calls_that_fail_count_as_requests_too() -> None:
    with OpenAIServer([Failure(500), Failure(500), Reply("Hi")]) as server:
        pieces = await answer(model_of(server, retries=2))
    usages = [piece for piece in pieces if isinstance(piece, Usage)]
    assert [(usage.requests, usage.total_tokens) for usage in usages] == [(1, 0), (1, 0), (1, 18)]
    assert [usage.cost for usage in usages[:2]] == [0.0, 0.0]


async def test_a_call_that_keeps_failing_counts_before_its_error() -> None:
    with OpenAIServer([Failure(500), Failure(401)]) as server:
        llm = model_of(server, fallbacks=["openai/other"])
        pieces = await pieces_before(LLMAuthenticationError, llm)
    assert [usage.model for usage in pieces] == ["openai/scripted", "openai/other"]


async def test_a_call_that_is_cut_counts_with_an_estimate() -> None:
    with OpenAIServer([Reply("Hello. " * 100, Cut())]) as server:
        llm = model_of(server)
        pieces = await pieces_before(LLMConnectionError, llm)
    usage = pieces[-1]
    assert usage.estimated
    assert usage.output_tokens > 100
    assert usage.cost is None


@pytest.mark.parametrize("cost", [0.25, 0.0])
async def test_a_price_that_the_provider_states_is_taken(cost: float) -> None:
    stated = Raw(
        '{"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],'
        ' "usage": {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11, '
        f'"cost": {cost}}}}}'
    )
    with OpenAIServer([Reply("Hi", stated, usage=None)]) as server:
        pieces = await answer(model_of(server))
    assert pieces[-1] == Usage(5, 6, cost, model="openai/scripted")


async def test_lone_surrogates_are_replaced_in_text() -> None:
    with OpenAIServer([Reply("a\ud83d", "b", "\ude00c\ud83d")]) as server:
        pieces = await answer(model_of(server))
    assert "".join(map(str, pieces[:-2])) == "a\ufffdb\ufffdc\ufffd"


async def test_a_character_split_between_two_chunks_is_put_together() -> None:
    with OpenAIServer([Reply(Reasoning("a\ud83d"), Reasoning("\ude00"), "b\ud83d", "\ude00")]) as s:
        pieces = await answer(model_of(s))
    assert "".join(map(str, pieces[:-2])) == "a😀b😀"


# --- tool calls ---


async def test_parallel_calls_are_assembled_from_fragments_that_alternate() -> None:
    calls = tool_calls(("c1", "weather", '{"city": "Oslo"}'), ("c2", "time", '{"zone": "CET"}'))
    assert await actions_of(*calls) == [
        Action(name="weather", args={"city": "Oslo"}, id="c1"),
        Action(name="time", args={"zone": "CET"}, id="c2"),
    ]


async def test_text_before_a_call_comes_first() -> None:
    calls = tool_calls(("c1", "weather", "{}"))
    with OpenAIServer([Reply("Let me see.", *calls)]) as server:
        pieces = await answer(model_of(server))
    assert pieces[:-2] == ["Let me see.", Action(name="weather", id="c1")]


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_empty_arguments_are_an_empty_object(arguments: str) -> None:
    (action,) = await actions_of(CallDelta(0, arguments, id="c1", name="now"))
    assert (action.args, action.unparsed) == ({}, None)


@pytest.mark.parametrize(
    "arguments",
    ['{"city": "Os', "[1, 2]", '"Oslo"', "null", '{"x": NaN}', "Oslo", '{"x": ' + "[" * 5000],
)
async def test_arguments_that_are_not_a_json_object_are_kept_unparsed(arguments: str) -> None:
    (action,) = await actions_of(CallDelta(0, arguments, id="c1", name="weather"))
    assert (action.name, action.args, action.unparsed) == ("weather", {}, arguments)


async def test_an_id_that_two_calls_share_is_unique_afterwards() -> None:
    first, second = await actions_of(*tool_calls(("same", "f", "{}"), ("same", "g", "{}")))
    assert (first.id, first.name, second.name) == ("same", "f", "g")
    assert second.id not in ("", "same")


async def test_a_call_without_an_id_gets_one() -> None:
    first, second = await actions_of(
        CallDelta(0, "{}", name="f"), CallDelta(1, "{}", id="", name="g")
    )
    assert len({first.id, second.id, ""}) == 3


async def test_calls_that_are_all_numbered_zero_are_distinguished_by_their_ids() -> None:
    actions = await actions_of(
        CallDelta(0, '{"n": 1}', id="c1", name="f"),
        CallDelta(0, '{"n"', id="c2", name="f"),
        CallDelta(0, ": 2}"),
    )
    assert [(action.id, action.args) for action in actions] == [("c1", {"n": 1}), ("c2", {"n": 2})]


async def test_a_name_and_an_id_that_every_fragment_repeats_are_one_call() -> None:
    (action,) = await actions_of(
        CallDelta(0, '{"n"', id="c1", name="f"), CallDelta(0, ": 1}", id="c1", name="f")
    )
    assert (action.name, action.args) == ("f", {"n": 1})


async def test_lone_surrogates_are_replaced_in_arguments() -> None:
    written = '{"a": "x\\ud83d", "b": "\\ud83d\\ude00"}'
    (action,) = await actions_of(CallDelta(0, written, id="c1", name="f"))
    assert action.args == {"a": "x\ufffd", "b": "😀"}


def cut_stream(*deltas: dict[str, Any]) -> Page:
    """A response that ends before the provider says why."""
    event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    events = [f"data: {json.dumps({**event, 'choices': [choice]})}\n\n" for choice in choices]
    return Page("".join(events), "text/event-stream")


@pytest.mark.parametrize("arguments", [None, "", " "])
async def test_a_call_whose_arguments_never_arrived_is_not_run(arguments: str | None) -> None:
    deleted: list[int] = []

    @tool
    async def delete_old(older_than_days: int = 0) -> str:
        """Delete old files."""
        deleted.append(older_than_days)
        return "deleted"

    call = CallDelta(0, arguments, id="c1", name="delete_old")
    half = cut_stream({"role": "assistant", "content": None}, {"tool_calls": [call.to_dict()]})
    with OpenAIServer([half, Reply("It was not deleted.")]) as server:
        async with Brain("react", llm=model_of(server), tools=[delete_old]) as brain:
            result = await brain.run("Delete what is old")
            await model_of(server).aclose()
    assert (deleted, result.answer) == ([], "It was not deleted.")
    told = server.requests[1].body["messages"][-1]
    assert told["role"] == "tool"
    assert "did not arrive, so it was not run" in told["content"]


# --- what other servers send ---


def choice_of(index: int, text: str) -> dict[str, Any]:
    return {"index": index, "delta": {"content": text}, "finish_reason": None}


OTHER_FORMS: dict[str, tuple[list[Any], list[Any]]] = {
    "a list of parts": (
        [raw_delta(content=[{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}])],
        ["Hello"],
    ),
    "a part": ([raw_delta(content={"type": "text", "text": "Hello"})], ["Hello"]),
    "a number": ([raw_delta(content=5)], ["5"]),
    "a list of thoughts": ([raw_delta(reasoning_content=["Hm."]), "Hello"], ["Hm.", "Hello"]),
    "a mark of the byte order": (["\ufeffHello", "\ufeff"], ["Hello", "\ufeff"]),
    "a second choice": (
        [
            raw_chunk(choices=[choice_of(0, "one "), choice_of(1, "TWO "), choice_of(2, "SIX")]),
            raw_chunk(choices=[choice_of(1, "TWO")]),
            raw_chunk(choices=[choice_of(0, "one")]),
        ],
        ["one ", "one"],
    ),
    "a second choice first": (
        [raw_chunk(choices=[choice_of(1, "TWO"), choice_of(0, "one")]), "more"],
        ["one", "more"],
    ),
    "no choices": ([raw_chunk(), raw_chunk(choices=None), "Hello"], ["Hello"]),
    "no delta": ([raw_chunk(choices=[{"index": 0, "delta": None}]), "Hello"], ["Hello"]),
    "a function call": (
        [
            raw_delta(function_call={"name": "weather", "arguments": ""}),
            raw_delta(function_call={"arguments": '{"city": '}),
            raw_delta(function_call={"arguments": '"Oslo"}'}),
        ],
        [("weather", {"city": "Oslo"})],
    ),
    "a call without arguments": ([CallDelta(0, id="c1", name="now")], [("now", {})]),
    "a call with a mark of the byte order": (
        [CallDelta(0, '\ufeff{"city": "Oslo"}', id="c1", name="weather")],
        [("weather", {"city": "Oslo"})],
    ),
    "the same chunk a thousand times": (["| 0 "] * 1000, ["| 0 "] * 1000),
}


@pytest.mark.parametrize(("sent", "read"), OTHER_FORMS.values(), ids=OTHER_FORMS)
async def test_what_other_servers_send_is_read(sent: list[Any], read: list[Any]) -> None:
    with OpenAIServer([Reply(*sent)]) as server:
        pieces = await answer(model_of(server), tools=[weather])
    said = [(p.name, p.args) if isinstance(p, Action) else p for p in pieces[:-2]]
    assert said == read
    assert isinstance(pieces[-2], Finish)


@pytest.mark.parametrize(
    ("usage", "tokens", "estimated"),
    [
        ({"prompt_tokens": 11.5, "completion_tokens": 7.0, "total_tokens": 18.5}, (12, 7), False),
        ({"prompt_tokens": 11, "total_tokens": 11}, (11, 2), True),
        ({"prompt_tokens": 11, "completion_tokens": None, "total_tokens": 11}, (11, 2), True),
    ],
)
async def test_usage_in_another_form_is_read(
    usage: dict[str, Any], tokens: tuple[int, int], estimated: bool
) -> None:
    with OpenAIServer([Reply("Hello", raw_chunk(choices=[], usage=usage), usage=None)]) as server:
        reported = (await answer(model_of(server)))[-1]
    assert isinstance(reported, Usage)
    assert (reported.input_tokens, reported.output_tokens) == tokens
    assert reported.estimated is estimated


# --- what is asked ---


async def test_the_conversation_and_the_tools_reach_the_model() -> None:
    call = Action(name="weather", args={"city": "Oslo"}, id="c1")
    messages = [
        Message.system("Be brief."),
        Message.user("Weather in Oslo?"),
        Message.assistant(tool_calls=[call]),
        Message.tool("Rain", call),
    ]
    with OpenAIServer([Reply("Rain.")]) as server:
        await answer(model_of(server, temperature=0.5), messages, tools=[weather])
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "scripted"
    assert request.body["temperature"] == 0.5
    assert [message["role"] for message in request.body["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert request.body["messages"][2]["tool_calls"][0]["id"] == "c1"
    assert request.body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": weather.description,
                "parameters": weather.input_schema,
            },
        }
    ]


async def test_without_tools_none_are_sent() -> None:
    with OpenAIServer([Reply("Hi")]) as server:
        await answer(model_of(server))
    assert "tools" not in server.requests[0].body


@pytest.mark.parametrize(
    ("name", "options", "sent"),
    [
        ("openai/gpt-4o-mini", {}, True),
        ("openai/scripted", {}, False),
        ("openai/scripted", {"supports_schema": True}, True),
        ("openai/gpt-4o-mini", {"supports_schema": False}, False),
    ],
)
async def test_the_output_type_is_sent_where_the_model_takes_a_schema(
    name: str, options: dict[str, bool], sent: bool
) -> None:
    with OpenAIServer([Reply("{}")]) as server:
        await answer(model_of(server, name, **options), output_type=Weather)
    wanted = server.requests[0].body.get("response_format", {"json_schema": None})["json_schema"]
    assert (wanted is not None) is sent
    if sent:
        assert set(wanted["schema"]["properties"]) == {"city", "degrees"}


@pytest.mark.parametrize(
    ("name", "options", "supported"),
    [
        ("openai/gpt-4o-mini", {}, True),
        ("gpt-4o-mini", {}, True),
        ("ollama/llama3", {}, False),
        ("openai/something", {}, True),
        ("openai/gpt-4o-mini", {"supports_tools": False}, False),
        ("ollama/llama3", {"supports_tools": True}, True),
    ],
)
async def test_native_tools_are_known_from_the_table_or_the_option(
    name: str, options: dict[str, Any], supported: bool
) -> None:
    assert LiteLLM(name, **options).supports_tools is supported


# --- errors ---


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (Failure(401, "Incorrect API key provided"), LLMAuthenticationError),
        (Failure(403, "Not allowed"), LLMAuthenticationError),
        (Failure(400, "Odd request"), LLMBadRequestError),
        (Failure(404, "No such model"), LLMBadRequestError),
        (Failure(422, "Odd request"), LLMBadRequestError),
        (CONTEXT_LENGTH, ContextWindowError),
        (Failure(429, "Slow down"), LLMRateLimitError),
        (Failure(408, "Too late"), LLMTimeoutError),
        (Failure(500, "Broken"), LLMServerError),
        (Failure(503, "Away"), LLMServerError),
        (Failure(529, "Overloaded"), LLMServerError),
        (Refuse(), LLMConnectionError),
        (Reply(Cut()), LLMConnectionError),
        (Reply("Hel", Cut()), LLMConnectionError),
        (Reply("Hel", SSE_ERROR), LLMServerError),
        (Reply("Hel", Raw('{"broken')), LLMServerError),
    ],
)
async def test_a_failure_is_raised_as_what_it_is(response: Response, kind: type[LLMError]) -> None:
    with OpenAIServer([response]) as server:
        error = await failure_of(model_of(server))
    assert type(error) is kind
    assert error.provider == "openai"
    assert error.model == "openai/scripted"
    assert error.retries == 0
    assert isinstance(error.__cause__, Exception)


async def test_an_error_says_what_the_provider_said_and_not_how_litellm_wraps_it() -> None:
    with OpenAIServer([Failure(400, "Odd request")]) as server:
        error = await failure_of(model_of(server))
    assert error.message == "The provider does not accept the request: Odd request"


async def test_a_refused_connection_is_a_connection_error_that_names_the_address() -> None:
    with OpenAIServer() as server:
        address = server.url
    error = await failure_of(LiteLLM("openai/x", api_base=address, api_key=KEY, retries=0))
    assert type(error) is LLMConnectionError
    assert address.removeprefix("http://").removesuffix("/v1") in str(error)


async def test_a_missing_key_is_an_authentication_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    with OpenAIServer() as server:
        error = await failure_of(model_of(server, api_key=None, retries=3))
    assert type(error) is LLMAuthenticationError
    assert error.retries == 0
    assert "OPENAI_API_KEY" in str(error)


@pytest.mark.parametrize("where", ["key", "header", "environment", "unknown"])
async def test_no_error_shows_a_secret_anywhere_in_its_traceback(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-proj-12345678abcdefgh" if where == "unknown" else "quite.secret/9911"
    given: dict[str, dict[str, Any]] = {
        "key": {"api_key": secret},
        "header": {"extra_headers": {"X-Gateway": secret}},
    }
    if where == "environment":
        monkeypatch.setenv("SOME_API_KEY", secret)
    with OpenAIServer([Failure(401, f"Incorrect API key provided: {secret}.")]) as server:
        error = await failure_of(model_of(server, **given.get(where, {})))
    assert "Incorrect API key provided" in str(error)
    assert secret not in "".join(traceback.format_exception(error))


@pytest.mark.thorough
async def test_nothing_is_printed_when_calls_fail() -> None:
    program = """
import asyncio, sys
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.states.errors import LLMError, StateDefinitionError
from agent_brain.memories.message import Message


async def main():
    for model in sys.argv[2:]:
        try:
            llm = LiteLLM(model, api_base=sys.argv[1], api_key="some-secret-key", retries=0)
            async for piece in llm.stream([Message.user("hi")]):
                pass
        except (LLMError, StateDefinitionError) as error:
            failed.append(error)
        await llm.aclose()

failed = []
asyncio.run(main())
asyncio.run(main())
assert len(failed) == 8, failed
"""
    script: list[Response] = [Failure(401), Failure(500), Reply("a", Cut())]
    with OpenAIServer(script + script) as server:
        models = ["openai/a", "openai/b", "openai/c", "nobody/d"]
        done = await run_python("-W", "error", "-c", program, server.url, *models)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- retries ---


@pytest.mark.parametrize(
    "response",
    [
        Failure(429),
        Failure(500),
        Failure(503),
        Failure(408),
        Refuse(),
        Reply(Cut()),
        Reply(SSE_ERROR),
    ],
)
async def test_a_failure_that_may_pass_is_tried_again(response: Response) -> None:
    with OpenAIServer([response, response, Reply("Hi")]) as server:
        pieces = await answer(model_of(server, retries=2))
    assert "Hi" in pieces
    assert len(server.requests) == 3


@pytest.mark.parametrize("response", [Failure(401), Failure(403), Failure(400), CONTEXT_LENGTH])
async def test_a_failure_that_will_not_pass_is_raised_at_once(response: Response) -> None:
    with OpenAIServer([response, Reply("Hi")]) as server:
        error = await failure_of(model_of(server, retries=2))
    assert (len(server.requests), error.retries) == (1, 0)


async def test_the_last_error_says_how_often_the_call_was_tried_again() -> None:
    with OpenAIServer(repeat(Failure(500))) as server:
        error = await failure_of(model_of(server, retries=2))
    assert (len(server.requests), error.retries) == (3, 2)
    assert "tried 3 times" in str(error)


@pytest.mark.parametrize("failure", [Cut(), SSE_ERROR], ids=["reset", "overload"])
async def test_a_failure_while_the_model_only_thinks_is_tried_again(failure: Cut | Raw) -> None:
    broken = Reply(Reasoning("Hm, "), Reasoning("hm."), failure)
    with OpenAIServer([broken, Reply(Reasoning("Aha."), "Hello")]) as server:
        pieces = await answer(model_of(server, retries=1))
    assert pieces[:2] == ["Hm, ", "hm."]
    assert isinstance(pieces[2], Usage)
    assert pieces[3:5] == ["Aha.", "Hello"]


async def test_a_fallback_answers_when_the_model_fails_while_it_thinks() -> None:
    with OpenAIServer([Reply(Reasoning("Hm."), Cut()), Reply("Hello")]) as server:
        pieces = await answer(model_of(server, fallbacks=["openai/other"]))
    assert pieces[0] == "Hm."
    assert "Hello" in pieces


async def test_a_stream_that_breaks_after_its_first_chunk_is_never_replayed() -> None:
    with OpenAIServer([Reply("Hel", Cut()), Reply("Hello")]) as server:
        llm = model_of(server, retries=3, fallbacks=["openai/other"])
        async with closing(llm.stream(HELLO)) as pieces:
            assert await anext(pieces) == "Hel"
            assert isinstance(await anext(pieces), Usage)
            with pytest.raises(LLMConnectionError):
                await anext(pieces)
        await llm.aclose()
    assert len(server.requests) == 1


async def test_a_retry_waits_as_long_as_the_provider_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    waits = recorded_sleeps(monkeypatch)
    script: list[Response] = [
        Failure(429, headers={"Retry-After": "7"}),
        Failure(503, headers={"Retry-After": later}),
        Failure(429, headers={"retry-after-ms": "1500"}),
        Reply("Hi"),
    ]
    with OpenAIServer(script) as server:
        await answer(model_of(server, retries=3))
    assert [round(wait) for wait in waits[:1]] == [7]
    assert 10 < waits[1] <= 30.1  # the first call imports litellm, which may take a while
    assert waits[2] == pytest.approx(1.5, abs=0.01)


async def test_a_wait_that_is_longer_than_allowed_is_raised_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = recorded_sleeps(monkeypatch)
    with OpenAIServer([Failure(429, headers={"Retry-After": "120"}), Reply("Hi")]) as server:
        error = await failure_of(model_of(server, retries=3))
    assert (waits, len(server.requests), error.retries) == ([], 1, 0)
    assert "asks to wait 120 s" in str(error)


def recorded_sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("agent_brain.states.models.litellm.adapter.anyio.sleep", sleep)
    return waits


# --- fallbacks ---


@pytest.mark.parametrize("response", [Failure(500), Failure(401), CONTEXT_LENGTH, Reply(Cut())])
async def test_a_fallback_answers_when_the_model_fails(response: Response) -> None:
    with OpenAIServer([response, Reply("Hi")]) as server:
        pieces = await answer(model_of(server, fallbacks=["openai/other"], temperature=0.3))
    assert pieces[1:] == ["Hi", Finish("stop"), Usage(11, 7, model="openai/other")]
    assert [request.body["model"] for request in server.requests] == ["scripted", "other"]
    assert server.requests[1].body["temperature"] == 0.3


@pytest.mark.parametrize("options", [{}, {"trace": True}], ids=["plain", "traced"])
async def test_after_a_fallback_the_model_that_answered_is_named(options: dict[str, Any]) -> None:
    events: list[Any] = []
    with OpenAIServer([Failure(503), Reply("Hello")]) as server:
        llm = model_of(server, fallbacks=["openai/other"])
        memory = MessagesMemory(journal=RamJournal(), session="s")
        brain = Brain("react", memory, llm=llm, **options)
        async with brain, brain.stream("Hi") as run:
            async for event in run:
                events.append(event)
        await llm.aclose()
    [started] = [event for event in events if isinstance(event, ResponseStarted)]
    [report] = [event for event in events if isinstance(event, UsageReported)]
    assert (started.model, report.usage.model) == ("openai/scripted", "openai/other")
    assert (report.usage.requests, run.result.usage.requests) == (2, 2)
    assert run.result.messages[-1].metadata == {"model": "openai/other"}


async def test_without_a_fallback_a_message_does_not_name_its_model() -> None:
    with OpenAIServer([Failure(503), Reply("Hello")]) as server:
        async with Brain("react", llm=model_of(server, retries=1)) as brain:
            result = await brain.run("Hi")
            await model_of(server).aclose()
    assert (result.messages[-1].metadata, result.usage.requests) == ({}, 2)


async def test_fallbacks_are_tried_in_order_after_the_retries() -> None:
    script: list[Response] = [*[Failure(500)] * 4, Reply("Hi")]
    with OpenAIServer(script) as server:
        own = model_of(server, "openai/third")
        await answer(model_of(server, retries=1, fallbacks=["openai/second", own]))
    models = [request.body["model"] for request in server.requests]
    assert models == ["scripted", "scripted", "second", "second", "third"]


async def test_when_all_fail_the_last_error_notes_the_ones_before() -> None:
    with OpenAIServer([Failure(500, "one"), Failure(401, "two")]) as server:
        error = await failure_of(model_of(server, fallbacks=["openai/other"]))
    assert type(error) is LLMAuthenticationError
    assert error.model == "openai/other"
    assert len(error.__notes__) == 1
    assert "one" in error.__notes__[0]
    assert "openai/scripted" in error.__notes__[0]


async def test_a_fallback_of_another_provider_gets_no_key_and_no_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script: list[Response] = [Failure(500), Reply("Hi")]
    with OpenAIServer(script) as server:
        monkeypatch.setenv("DEEPSEEK_API_BASE", server.url)
        monkeypatch.setenv("DEEPSEEK_API_KEY", "the-other-key")
        headers = {"X-Gateway": "mine"}
        llm = model_of(server, fallbacks=["deepseek/chat"], extra_headers=headers, temperature=0.3)
        await answer(llm)
    first, second = server.requests
    assert (first.headers["authorization"], first.headers["x-gateway"]) == (f"Bearer {KEY}", "mine")
    assert second.headers["authorization"] == "Bearer the-other-key"
    assert "x-gateway" not in second.headers
    assert second.body["temperature"] == 0.3


async def test_a_fallback_may_be_any_model() -> None:
    class Canned(LLM):
        async def stream(
            self,
            messages: Sequence[Message],
            *,
            tools: Sequence[BaseTool] = (),
            output_type: type[BaseModel] | None = None,
        ) -> AsyncIterator[Piece]:
            yield f"{len(messages)} {len(tools)} {output_type}"

    with OpenAIServer([Failure(500)]) as server:
        pieces = await answer(model_of(server, fallbacks=[Canned()]), tools=[weather])
    assert pieces[1:] == ["1 1 None"]


# --- time ---


@pytest.mark.parametrize("response", [Refuse(stall=True), Reply(Stall()), Reply("Hel", Stall())])
async def test_a_model_that_goes_silent_is_timed_out_and_hung_up_on(response: Response) -> None:
    with OpenAIServer([response]) as server, fake_clock(threshold=60) as clock:
        llm = model_of(server, timeout=HOUR)
        await llm.open()
        async with closing(llm.stream(HELLO)) as pieces:
            if response == Reply("Hel", Stall()):
                assert await anext(pieces) == "Hel"
            silent = asyncio.create_task(read(pieces))
            await server.wait_until_asked()
            clock.advance(HOUR)
            with pytest.raises(LLMTimeoutError) as caught:
                await silent
        await server.wait_until_left()
        await llm.aclose()
    assert (caught.value.provider, caught.value.model) == ("openai", "openai/scripted")


async def test_a_timeout_that_is_longer_than_that_of_litellm_is_its_timeout_too() -> None:
    with OpenAIServer([Reply("Hi")]) as server:
        await answer(model_of(server, timeout=7200))
    assert float(server.requests[0].headers["x-stainless-read-timeout"]) == 7200


async def test_a_stall_is_timed_out_where_litellm_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(**_: Any) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr("litellm.acompletion", never)
    error = await failure_of(LiteLLM("openai/x", timeout=0.05, retries=0))
    assert type(error) is LLMTimeoutError
    assert error.message == "The model sent nothing for 0.05 s"


async def test_a_timeout_before_the_first_chunk_is_tried_again() -> None:
    script: list[Response] = [Refuse(stall=True), Reply("Hi")]
    with OpenAIServer(script) as server, fake_clock(threshold=60) as clock:
        llm = model_of(server, timeout=HOUR, retries=1)
        await llm.open()
        answered = asyncio.create_task(answer(llm))
        await server.wait_until_asked()
        clock.advance(HOUR)
        assert "Hi" in await answered


async def test_a_reader_who_takes_longer_than_the_timeout_is_not_timed_out() -> None:
    with OpenAIServer([Reply("a", "b")]) as server, fake_clock(threshold=60) as clock:
        llm = model_of(server, timeout=HOUR)
        await llm.open()
        async with closing(llm.stream(HELLO)) as pieces:
            assert await anext(pieces) == "a"
            await server.wait_until_answered()
            clock.advance(HOUR + 1)
            await asyncio.sleep(0)
            assert await anext(pieces) == "b"
        await llm.aclose()


# --- ending early ---


async def test_closing_the_stream_early_hangs_up_at_once() -> None:
    with OpenAIServer([Reply("Hel", Stall())]) as server:
        llm = model_of(server)
        async with closing(llm.stream(HELLO)) as pieces:
            assert await anext(pieces) == "Hel"
        await server.wait_until_left()
        await llm.aclose()


@pytest.mark.parametrize("response", [Refuse(stall=True), Reply(Stall()), Reply("Hel", Stall())])
@pytest.mark.parametrize("how", ["task", "scope"])
async def test_cancelling_hangs_up_at_once(response: Response, how: str) -> None:
    with OpenAIServer([response]) as server:
        llm = model_of(server, retries=3, fallbacks=["openai/other"])
        if how == "task":
            task = asyncio.create_task(answer(llm))
            await server.wait_until_asked()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(answer, llm)
                await server.wait_until_asked()
                group.cancel_scope.cancel()
        await server.wait_until_left()
        await llm.aclose()
    assert len(server.requests) == 1


async def test_cancelled_callers_do_not_disturb_the_one_that_stays() -> None:
    with OpenAIServer([Reply("a", Stall(), "b"), *[Reply("x", Stall())] * 20]) as server:
        llm = model_of(server)
        async with closing(llm.stream(HELLO)) as pieces:
            assert await anext(pieces) == "a"
            others = [asyncio.create_task(answer(llm)) for _ in range(20)]
            await server.wait_until_asked(21)
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await server.wait_until_left(20)
            server.release()
            assert await anext(pieces) == "b"
        await llm.aclose()


# --- connections ---


async def test_closing_a_model_leaves_the_streams_of_others_alone() -> None:
    with OpenAIServer([Reply("a", Stall(), "b"), Reply("c")]) as server:
        first, second = model_of(server), model_of(server)
        async with closing(first.stream(HELLO)) as pieces:
            assert await anext(pieces) == "a"
            assert (await answer(second))[0] == "c"
            server.release()
            assert await anext(pieces) == "b"
        await first.aclose()


async def test_closing_a_model_leaves_other_event_loops_alone() -> None:
    with OpenAIServer([Reply("a", Stall(), "b"), Reply("c")]) as server:
        began, closed = threading.Event(), threading.Event()
        heard: list[Any] = []

        async def listen() -> None:
            async for piece in model_of(server).stream(HELLO):
                heard.append(piece)
                began.set()
                await asyncio.to_thread(closed.wait, 10)
            await model_of(server).aclose()

        thread = threading.Thread(target=asyncio.run, args=(listen(),))
        thread.start()
        await asyncio.to_thread(began.wait, 10)
        await answer(model_of(server))
        closed.set()
        server.release()
        await asyncio.to_thread(thread.join)
    assert heard[:2] == ["a", "b"]


async def test_a_closed_model_can_be_used_again() -> None:
    with OpenAIServer([Reply("a"), Reply("b")]) as server:
        llm = model_of(server)
        assert [(await answer(llm))[0], (await answer(llm))[0]] == ["a", "b"]


async def test_a_model_that_was_never_used_can_be_closed() -> None:
    await LiteLLM("openai/x", fallbacks=[LiteLLM("openai/y")]).aclose()


def what_is_open_warns() -> None:
    """Drop litellm's clients: one that is not closed warns, and warnings fail tests."""
    load_litellm().in_memory_llm_clients_cache.flush_cache()
    gc.collect()


async def test_one_model_serves_two_event_loops_in_turn_and_leaks_nothing() -> None:
    def in_two_loops() -> list[Any]:
        return [asyncio.run(answer(llm))[0] for _ in range(2)]

    with OpenAIServer([Reply("a"), Reply("b")]) as server:
        llm = model_of(server)
        assert await asyncio.to_thread(in_two_loops) == ["a", "b"]
        what_is_open_warns()


async def test_connections_that_were_in_use_are_closed_after_the_last_stream() -> None:
    def clients_of_this_loop() -> list[str]:
        clients = load_litellm().in_memory_llm_clients_cache
        end = clients.update_cache_key_with_event_loop("")
        return [key for key in clients.cache_dict if key.endswith(end)]

    async def close_in_the_middle() -> None:
        async with closing(model_of(server).stream(HELLO)) as pieces:
            assert await anext(pieces) == "a"
            await model_of(server).aclose()
            assert clients_of_this_loop()
        assert clients_of_this_loop() == []

    with OpenAIServer([Reply("a", "b")]) as server:
        await asyncio.to_thread(asyncio.run, close_in_the_middle())
        what_is_open_warns()


# --- where it runs ---


def in_trio() -> None:
    async def main() -> None:
        async for _ in LiteLLM("openai/x", fallbacks=["openai/y"]).stream(HELLO):
            pass

    anyio.run(main, backend="trio")


async def test_on_trio_the_error_says_what_to_do() -> None:
    with pytest.raises(EventLoopError, match=r"asyncio\.run"):
        await asyncio.to_thread(in_trio)


async def test_on_trio_an_unused_model_can_be_closed() -> None:
    await asyncio.to_thread(lambda: anyio.run(LiteLLM("openai/x").aclose, backend="trio"))


async def test_importing_and_building_a_model_does_not_import_litellm() -> None:
    program = (
        "import sys; from agent_brain.states.models.litellm.adapter import LiteLLM;"
        "repr(LiteLLM('openai/x', fallbacks=['openai/y']));"
        "assert not {'litellm', 'openai', 'httpx', 'aiohttp'} & set(sys.modules)"
    )
    done = await run_python("-c", program)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("given", "used"), [(None, "True"), *thorough([("False", "False")])])
async def test_the_price_table_is_local_unless_the_user_says_otherwise(
    given: str | None, used: str
) -> None:
    program = (
        "import os, sys, types; sys.modules['litellm'] = types.ModuleType('litellm');"
        "from agent_brain.common.litellm import load_litellm; load_litellm();"
        "print(os.environ['LITELLM_LOCAL_MODEL_COST_MAP'])"
    )
    done = await run_python("-c", program, LITELLM_LOCAL_MODEL_COST_MAP=given)
    assert done.stdout.strip() == used


async def run_python(*args: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    merged = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": None, **environment}
    known = {name: value for name, value in merged.items() if value is not None}
    command = [sys.executable, *args]
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, env=known, timeout=180, check=False
    )


# --- wrong definitions ---


@pytest.mark.parametrize(
    ("model", "options", "problem"),
    [
        ("", {}, "name"),
        ("  ", {}, "name"),
        ("openai/x", {"retries": -1}, "retries"),
        ("openai/x", {"timeout": 0}, "timeout"),
        ("openai/x", {"timeout": float("nan")}, "timeout"),
        ("openai/x", {"backoff": -1}, "backoff"),
        ("openai/x", {"max_retry_wait": -1}, "max_retry_wait"),
        ("openai/x", {"max_images": -1}, "max_images"),
        ("openai/x", {"fallbacks": "openai/y"}, "list"),
        ("openai/x", {"fallbacks": [""]}, "fallbacks"),
        ("openai/x", {"fallbacks": [5]}, "fallbacks"),
        ("openai/x", {"timeout": None}, "timeout must be greater than 0 seconds, not None"),
        ("openai/x", {"timeout": "5"}, "timeout"),
        ("openai/x", {"retries": 1.5}, "retries"),
        ("openai/x", {"max_images": "1"}, "max_images"),
        ("openai/x", {"backoff": "1"}, "backoff"),
        ("openai/x", {"input_cost_per_token": "0.1"}, "input_cost_per_token"),
        ("openai/x", {"output_cost_per_token": -0.1}, "output_cost_per_token"),
        ("openai/x", {"output_cost_per_token": float("nan")}, "output_cost_per_token"),
    ],
)
async def test_a_wrong_definition_is_refused(
    model: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(StateDefinitionError, match=problem):
        LiteLLM(model, **options)


async def test_all_problems_of_a_definition_are_in_one_error() -> None:
    with pytest.raises(StateDefinitionError, match=r"timeout.*retries"):
        LiteLLM("openai/x", timeout=-1, retries=-1)
