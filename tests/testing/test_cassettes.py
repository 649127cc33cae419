"""Recording model calls and replaying them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import LLM, Brain, LiteLLM, Message, react, tool
from agent_brain.states import (
    Finish,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    TextDelta,
    Thought,
    Usage,
)
from agent_brain.testing import (
    Cassette,
    CassetteError,
    CassetteFileError,
    CassetteLLM,
    CassetteMismatchError,
    RealModelError,
    ScriptedLLM,
    cassette,
    no_real_models,
    normalize_events,
    record,
    replay,
)
from agent_brain.tools import Action
from tests.support.openai_server import Failure, OpenAIServer, Reasoning, Reply, tool_calls

HELLO = [Message.user("Hello")]
WEATHER = tool_calls(
    ("call_7", "weather", '{"city": "Rome"}'), ("call_8", "weather", '{"city": "Oslo"}')
)
litellm_only = pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning:litellm")


@tool
async def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: Its name.
    """
    return f"Rain in {city}"


class Answer(BaseModel):
    city: str


async def ask(llm: LLM, messages: Sequence[Message] = HELLO, **options: Any) -> list[Any]:
    return [piece async for piece in llm.stream(messages, **options)]


def wrapped(*turns: Any, **options: Any) -> CassetteLLM:
    return CassetteLLM(ScriptedLLM(turns, **options))


# --- against a real server ---


async def events_of(llm: LLM) -> list[Any]:
    brain = Brain(react(llm), tools=[weather])
    events = []
    try:
        async with brain.stream("What is the weather in Rome and Oslo?") as run:
            async for event in run:
                events.append(event)
    finally:
        await llm.aclose()
    return events


def texts(events: list[Any]) -> list[bytes]:
    return [json.dumps(event, sort_keys=True).encode() for event in normalize_events(events)]


@litellm_only
@pytest.mark.asyncio
async def test_a_recorded_run_replays_the_same_events_with_the_server_gone(tmp_path: Path) -> None:
    path = tmp_path / "weather.json"
    script = [
        Reply(Reasoning("Two cities."), "Let me ", "look.", *WEATHER),
        Reply("Rain ", "in both."),
    ]
    with OpenAIServer(script) as server:
        with record(path):
            recorded = await events_of(
                LiteLLM(
                    "openai/scripted", api_base=server.url, api_key="a-secret-key-123", retries=0
                )
            )
        gone = server.url
    unreachable = LiteLLM("openai/scripted", api_base=gone, api_key="none", retries=0)
    with replay(path) as tape:
        replayed = await events_of(unreachable)
    tape.assert_complete()
    assert texts(replayed) == texts(recorded)
    assert [e.text for e in replayed if isinstance(e, TextDelta)] == [
        "Two cities.",
        "Let me ",
        "look.",
        "Rain ",
        "in both.",
    ]
    assert "call_7" in str(replayed)
    with pytest.raises(LLMConnectionError):
        await events_of(unreachable)


@litellm_only
@pytest.mark.asyncio
async def test_fallbacks_and_retries_are_one_call_on_the_cassette(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    limited = Failure(429, headers={"Retry-After": "0"})
    with OpenAIServer([limited, limited, Reply("second ", "model")]) as server:
        llm = LiteLLM(
            "openai/first",
            api_base=server.url,
            api_key="key-of-eight",
            retries=1,
            backoff=0.001,
            fallbacks=["openai/second"],
        )
        with record(path):
            assert (await ask(llm))[2:4] == ["second ", "model"]
            await llm.aclose()
    [call] = json.loads(path.read_text())["calls"]
    assert call["model"] == "openai/first"
    with replay(path):
        assert (await ask(llm))[2:4] == ["second ", "model"]


@litellm_only
@pytest.mark.asyncio
async def test_a_failure_is_replayed_as_the_error_it_was(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    failures: list[LLMError] = []
    with OpenAIServer([Failure(429, "too much")]) as server:
        llm = LiteLLM("openai/scripted", api_base=server.url, api_key="key-of-eight", retries=0)
        for tape in (record(path), replay(path)):
            with tape, pytest.raises(LLMRateLimitError) as caught:
                await ask(llm)
            failures.append(caught.value)
        await llm.aclose()
    assert str(failures[0]) == str(failures[1])


@litellm_only
@pytest.mark.anyio
async def test_replaying_a_real_model_needs_neither_key_nor_asyncio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "tape.json"
    fake = wrapped(["Hi ", "there"], model="openai/gpt-4o-mini")
    with record(path):
        await ask(fake)
    with no_real_models(), replay(path):
        assert await ask(LiteLLM("openai/gpt-4o-mini")) == ["Hi ", "there"]


# --- what is kept ---


@pytest.mark.anyio
async def test_every_piece_comes_back_as_it_was(tmp_path: Path) -> None:
    turn = [
        Thought("hm"),
        "a\x00 汉字 ",
        "",
        "b\n",
        Action(name="weather", args={"city": "Rome", "days": [1, 2.5, None]}, id="call-x"),
        Action(name="weather", args={}, unparsed="{oops"),
        Finish("length", {"thinking_blocks": [{"type": "thinking", "signature": "é"}]}),
        Usage(3, 4, 0.00012345678901234, model="m"),
    ]
    path = tmp_path / "deep" / "tape.json"
    with record(path):
        first = await ask(wrapped(turn))
    with replay(path) as tape:
        second = await ask(wrapped())
    tape.assert_complete()
    assert (second, list(map(type, second))) == (first, list(map(type, turn)))


@pytest.mark.anyio
async def test_the_file_is_plain_versioned_json(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    call = Action(name="weather", args={"city": "Rome"})
    talk = [
        Message.user("Hi", name="Ann"),
        Message.assistant("", [call]),
        Message.tool("Rain", call),
    ]
    with record(path):
        await ask(wrapped("{}"), talk, tools=[weather], output_type=Answer)
    data = json.loads(path.read_text())
    assert (data["format"], data["version"]) == ("agent-brain-cassette", 2)
    request = data["calls"][0]
    assert request["model"] == "scripted"
    assert request["messages"] == [
        {"role": "user", "content": "Hi", "name": "Ann"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call 1", "name": "weather", "args": {"city": "Rome"}}],
        },
        {"role": "tool", "content": "Rain", "name": "weather", "tool_call_id": "call 1"},
    ]
    assert request["tools"][0]["name"] == "weather"
    assert request["output_schema"]["title"] == "Answer"
    assert request["response"] == [{"text": "{}"}]


@pytest.mark.anyio
async def test_a_block_that_raises_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    path.write_text("the old one")

    def breaks(messages: list[Message]) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), record(path):
        await ask(wrapped(breaks))
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.anyio
async def test_auto_records_once_and_replays_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    for turns, mode in ((["first"], "record"), (["second"], "replay")):
        with cassette(path) as tape:
            assert await ask(wrapped(*turns)) == ["first"]
        assert tape.mode == mode


@pytest.mark.anyio
async def test_an_abandoned_answer_is_replayed_up_to_that_point(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"

    async def first_piece(llm: LLM) -> Any:
        stream: Any = llm.stream(HELLO)
        try:
            return await anext(stream)
        finally:
            await stream.aclose()

    with record(path):
        await first_piece(wrapped(["one ", "two"]))
    with replay(path):
        assert await first_piece(wrapped()) == "one "
    with replay(path), pytest.raises(CassetteMismatchError, match="left before its answer"):
        await ask(wrapped())


@pytest.mark.anyio
async def test_scripted_models_are_left_alone(tmp_path: Path) -> None:
    with record(tmp_path / "tape.json"):
        await ask(ScriptedLLM(["x"]))
    assert json.loads((tmp_path / "tape.json").read_text())["calls"] == []


@pytest.mark.anyio
async def test_a_wrapped_model_behaves_like_the_model_outside_a_cassette() -> None:
    inner = ScriptedLLM(["x"], native=False, model="mine")
    llm = CassetteLLM(inner)
    assert await ask(llm) == ["x"]
    assert (llm.model, llm.supports_tools) == ("mine", False)
    with no_real_models(), pytest.raises(RealModelError, match="'mine'"):
        await ask(llm)


# --- what is refused ---


async def recorded(path: Path, *conversations: Sequence[Message], **options: Any) -> None:
    llm = wrapped(*(f"answer {n}" for n in range(len(conversations))))
    with record(path):
        for messages in conversations:
            await ask(llm, messages, **options)


def refusal_of(error: pytest.ExceptionInfo[CassetteMismatchError]) -> str:
    return str(error.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "made, options, said",
    [
        ([Message.user("Hello!")], {}, "  -user: Hello\n  +user: Hello!"),
        ([Message.system("Be brief."), *HELLO], {}, "  +system: Be brief.\n   user: Hello"),
        ([], {}, "   model: scripted\n  -user: Hello"),
        ([Message.system("Hello")], {}, "  -user: Hello\n  +system: Hello"),
        ([Message.user("Hello", name="Ann")], {}, '   user: Hello\n  +    name: "Ann"'),
        ([Message.user("Hello\n")], {}, "   user: Hello\n  +    \n"),
        (HELLO, {"tools": [weather]}, "  +tool weather: "),
        (HELLO, {"output_type": Answer}, "  +output_schema: {"),
    ],
)
async def test_a_request_that_differs_is_refused_and_explained(
    tmp_path: Path, made: Any, options: Any, said: str
) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, HELLO)
    with replay(path), pytest.raises(CassetteMismatchError) as caught:
        await ask(wrapped(), made, **options)
    assert said in refusal_of(caught)
    assert "call 1 of 1 (- recorded, + now)" in refusal_of(caught)
    assert "tape.json" in refusal_of(caught)


@pytest.mark.anyio
async def test_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, HELLO)
    with (
        replay(path),
        pytest.raises(CassetteMismatchError, match=r"-model: scripted\n +.model: other"),
    ):
        await ask(wrapped(model="other"))


@pytest.mark.anyio
async def test_a_changed_schema_of_a_tool_is_shown_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, HELLO, tools=[weather])

    @tool(name="weather", description=weather.description)
    async def changed(city: str, days: int = 1) -> str:
        """The weather in a city.

        Args:
            city: Its name.
        """
        return city

    with replay(path), pytest.raises(CassetteMismatchError) as caught:
        await ask(wrapped(), tools=[changed])
    assert '+        "days": {' in refusal_of(caught)
    assert "-tool weather" not in refusal_of(caught)


@pytest.mark.anyio
async def test_a_long_text_is_shown_as_a_diff_of_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    lines = [f"rule {n}" for n in range(40)]
    await recorded(path, [Message.system("\n".join(lines))])
    lines[20] = "another rule"
    with replay(path), pytest.raises(CassetteMismatchError) as caught:
        await ask(wrapped(), [Message.system("\n".join(lines))])
    assert "-    rule 20\n  +    another rule" in refusal_of(caught)
    assert "rule 3\n" not in refusal_of(caught)


ONE, TWO = [Message.user("one")], [Message.user("two")]


@pytest.mark.anyio
async def test_strict_expects_the_recorded_order_and_request_does_not(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, ONE, TWO)
    with replay(path), pytest.raises(CassetteMismatchError, match="differs from call 1 of 2"):
        await ask(wrapped(), TWO)
    with replay(path, match="request") as tape:
        assert await ask(wrapped(), TWO) == ["answer 1"]
        assert await ask(wrapped(), ONE) == ["answer 0"]
    tape.assert_complete()


@pytest.mark.anyio
async def test_equal_requests_get_their_answers_in_order(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, ONE, ONE, TWO)
    with replay(path, match="request"):
        assert [await ask(wrapped(), ONE) for _ in range(2)] == [["answer 0"], ["answer 1"]]
        with pytest.raises(CassetteMismatchError, match="recorded 2 times and is made once more"):
            await ask(wrapped(), ONE)


@pytest.mark.anyio
async def test_a_refused_request_is_compared_with_the_most_similar_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, [Message.user("what is the capital of France")], ONE)
    with replay(path, match="request"), pytest.raises(CassetteMismatchError) as caught:
        await ask(wrapped(), [Message.user("what is the capital of Spain")])
    assert "-user: what is the capital of France" in refusal_of(caught)


@pytest.mark.anyio
async def test_one_call_too_many_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, ONE)
    with replay(path):
        await ask(wrapped(), ONE)
        with pytest.raises(
            CassetteMismatchError, match=r"All 1 recorded calls are used.*: user: two"
        ):
            await ask(wrapped(), TWO)


@pytest.mark.anyio
async def test_unused_calls_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, ONE, TWO)
    with replay(path) as tape:
        await ask(wrapped(), ONE)
    with pytest.raises(CassetteMismatchError, match=r"1 of them were not made:\n  2\. user: two"):
        tape.assert_complete()


@pytest.mark.anyio
async def test_a_refusal_that_was_swallowed_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, ONE)
    with replay(path) as tape:
        with pytest.raises(CassetteMismatchError):
            await ask(wrapped(), TWO)
        await ask(wrapped(), ONE)
    with pytest.raises(CassetteMismatchError, match=r"-user: one\n +.user: two"):
        tape.assert_complete()


@pytest.mark.anyio
async def test_ids_and_times_of_messages_do_not_count(tmp_path: Path) -> None:
    def talk() -> list[Message]:
        call = Action(name="weather", args={})
        return [Message.assistant("", [call]), Message.tool("x", call)]

    path = tmp_path / "tape.json"
    await recorded(path, talk())
    with replay(path) as tape:
        await ask(wrapped(), talk())
    tape.assert_complete()


@pytest.mark.anyio
async def test_concurrent_calls_are_recorded_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    asked = [[Message.user(str(n))] for n in range(5)]

    async def all_at_once(llm: LLM, answers: dict[int, Any]) -> None:
        async def one(n: int) -> None:
            answers[n] = await ask(llm, asked[n])

        async with anyio.create_task_group() as group:
            for n in range(5):
                group.start_soon(one, n)

    def echo(messages: list[Message]) -> str:
        return f"echo {messages[-1].content}"

    answers: list[dict[int, Any]] = [{}, {}]
    with record(path):
        await all_at_once(wrapped(*[echo] * 5), answers[0])
    with replay(path, match="request") as tape:
        await all_at_once(wrapped(), answers[1])
    tape.assert_complete()
    assert answers[0] == answers[1] == {n: [f"echo {n}"] for n in range(5)}


# --- secrets ---

SECRETS = {
    "openai": "sk-abcdefgh12345678",
    "github": "ghp_abcdefghijklmnop1234",
    "bearer": "Authorization: Bearer topsecretvalue",
    "header": '{"api_key": "topsecretvalue"}',
    "url": "https://ann:topsecretvalue@example.org/x",
    "environment": "the value value-of-my-env here",
    "parameter": "the key key-of-the-model here",
    "own pattern": "card 1234-5678",
}
HIDDEN = ["abcdefgh", "topsecret", "value-of-my-env", "key-of-the-model", "1234-5678"]


@pytest.mark.anyio
@pytest.mark.parametrize("name", SECRETS)
async def test_no_secret_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "value-of-my-env")
    secret = SECRETS[name]
    path = tmp_path / "tape.json"
    cut = len(secret) - 4
    turn: list[Any] = [
        secret[:cut],
        secret[cut:],
        Thought(secret),
        Action(name="f", args={"x": [secret]}),
    ]
    inner = ScriptedLLM([turn, LLMError(secret)])
    inner.params = {"api_key": "key-of-the-model"}  # type: ignore[attr-defined]
    call = Action(name="f", args={"password": "hidden-by-name", "text": secret})
    messages = [Message.user(secret), Message.assistant(secret, [call])]
    with record(path, scrub=[r"\d{4}-\d{4}"]):
        await ask(CassetteLLM(inner), messages)
        with pytest.raises(LLMError):
            await ask(CassetteLLM(inner), messages)
    text = path.read_text()
    assert [word for word in [*HIDDEN, "hidden-by-name"] if word in text] == []
    answer = json.loads(text)["calls"][0]["response"]
    assert "[hidden]" in "".join(piece.get("text", "") for piece in answer)
    with replay(path, scrub=[r"\d{4}-\d{4}"]) as tape:
        await ask(CassetteLLM(inner), messages)
        with pytest.raises(LLMError, match="hidden"):
            await ask(CassetteLLM(inner), messages)
    tape.assert_complete()


@pytest.mark.anyio
async def test_ordinary_words_are_not_taken_for_secrets(tmp_path: Path) -> None:
    said = "The key to a secret: keep it. Ask-and-tell, basic rules, token by token."
    path = tmp_path / "tape.json"
    with record(path):
        await ask(wrapped(said))
    assert json.loads(path.read_text())["calls"][0]["response"] == [{"text": said}]


# --- what a cassette cannot be ---


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "cannot be read"),
        ("[]", "is not a cassette"),
        ('{"format": "agent-brain-cassette", "version": 99, "calls": []}', "version 99"),
        ('{"format": "agent-brain-cassette", "version": 2, "calls": [{}]}', "damaged"),
    ],
)
def test_a_file_that_is_not_a_cassette_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tape.json"
    path.write_text(text)
    with pytest.raises(CassetteFileError, match=said), replay(path):
        pass


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CassetteFileError, match="record it first"), replay(tmp_path / "none.json"):
        pass


@pytest.mark.anyio
async def test_an_unknown_piece_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    await recorded(path, HELLO)
    path.write_text(path.read_text().replace('"text"', '"song"'))
    with pytest.raises(CassetteFileError, match="'song' is unknown"), replay(path):
        pass


@pytest.mark.parametrize("options", [{"mode": "rewind"}, {"mode": "replay", "match": "roughly"}])
def test_unknown_modes_are_refused(options: Any) -> None:
    with pytest.raises(CassetteError):
        Cassette("tape.json", **options)


class Nested(LLM):
    """Calls another model of its own."""

    model = "nested"

    def __init__(self, inner: LLM) -> None:
        self.inner = inner

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[Any]:
        async for piece in self.inner.stream(messages):
            yield piece


@pytest.mark.anyio
async def test_nested_calls_are_part_of_the_outer_call(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    with record(path):
        await ask(CassetteLLM(Nested(wrapped("deep"))))
    calls = json.loads(path.read_text())["calls"]
    assert [call["model"] for call in calls] == ["nested"]


@litellm_only
@pytest.mark.anyio
async def test_an_agent_on_a_real_model_replays_on_any_event_loop(tmp_path: Path) -> None:
    path = tmp_path / "tape.json"
    turns: list[Any] = [[Action(name="weather", args={"city": "Rome"})], "Rain."]
    with record(path):
        await events_of(wrapped(*turns, model="openai/gpt-4o-mini"))
    with replay(path) as tape:
        events = await events_of(LiteLLM("openai/gpt-4o-mini", supports_tools=True))
    tape.assert_complete()
    assert events[-1].answer == "Rain."
