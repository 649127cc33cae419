"""Chunks of Chat Completions, from the events of real runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Literal

import pytest
from openai.types.chat import ChatCompletion as OfficialCompletion
from openai.types.chat import ChatCompletionChunk as OfficialChunk

from agent_brain import Brain, Limits, Memory, Message, State, tool
from agent_brain.memories import SummaryMemory
from agent_brain.serving.web.openai.chat import ChatCompletion, ChatStream
from agent_brain.serving.web.openai.translate import Shown, frame
from agent_brain.states import Finish, Usage, model_summarizer
from agent_brain.states.events import TextDelta
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, InputNeeded
from agent_brain.tools.builtin import ask_user
from tests.serving.models import Gate, PartsLLM
from tests.serving.web.openai.runs import events_of

pytestmark = pytest.mark.anyio


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


def brain_with(*turns: Any, **options: Any) -> Brain:
    return Brain(llm=ScriptedLLM(turns), tools=[double, pay, ask_user], **options)


async def chunks_of(brain: Brain, **options: Any) -> list[Any]:
    stream = ChatStream("chatcmpl-1", "agent", **options)
    return [chunk for event in await events_of(brain) for chunk in stream.translate(event)]


def content_of(chunks: list[Any]) -> str:
    return "".join(c["delta"].get("content", "") for chunk in chunks for c in chunk["choices"])


def asides_of(chunks: list[Any]) -> str:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return "".join(delta.get("reasoning_content", "") for delta in deltas)


def end_of(chunks: list[Any]) -> tuple[str, str]:
    last = chunks[-1]
    return last["choices"][0]["finish_reason"], last["agent_brain"]["stop_reason"]


async def test_a_summary_of_the_memory_does_not_count_as_written():
    writer = ScriptedLLM([["A summary.", Usage(100, 50)]])
    memory = SummaryMemory(summarize=model_summarizer(writer), max_messages=4)
    await memory.update([Message.user(str(number)) for number in range(9)])
    brain = Brain(llm=ScriptedLLM([["Good ", "morning."]]), memory=memory)
    chunks = await chunks_of(brain, most_tokens=20)

    writer.assert_complete()
    assert (content_of(chunks), end_of(chunks)) == ("Good morning.", ("stop", "done"))


async def test_text_becomes_chunks_that_the_official_types_accept():
    chunks = await chunks_of(brain_with(["Good ", "morning."]))

    for chunk in chunks:
        OfficialChunk.model_validate(chunk)
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "Good "},
        {"content": "morning."},
        {},
    ]
    assert end_of(chunks) == ("stop", "done")
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * 3
    assert "usage" not in chunks[0]


async def test_the_first_chunk_waits_for_output():
    events = await events_of(brain_with("Hello."))
    stream = ChatStream("chatcmpl-1", "agent")
    before = [event.kind for event in events if not stream.translate(event)]

    assert before[:3] == ["run_started", "state_entered", "response_started"]


async def test_the_last_chunk_has_the_usage_on_request():
    llm = brain_with(
        [Action(name="double", args={"n": 2}), Usage(10, 5, cached_tokens=4)], ["4", Usage(20, 1)]
    )
    chunks = await chunks_of(llm, include_usage=True)

    assert [chunk["usage"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1]["choices"] == []
    usage = OfficialChunk.model_validate(chunks[-1]).usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (30, 6, 36)
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 4


async def test_the_whole_completion_is_the_sum_of_its_chunks():
    completion = ChatCompletion()
    for chunk in await chunks_of(brain_with(["Good ", "morning."]), include_usage=True):
        completion.add(chunk)
    body = completion.body()

    official = OfficialCompletion.model_validate(body)
    assert official.choices[0].message.content == "Good morning."
    assert official.choices[0].finish_reason == "stop"
    assert official.usage is not None
    assert "reasoning_content" not in body["choices"][0]["message"]


async def test_a_remark_and_the_answer_are_paragraphs():
    chunks = await chunks_of(
        brain_with(["Let me see.", Action(name="double", args={"n": 2})], "Four.")
    )

    assert content_of(chunks) == "Let me see.\n\nFour."


async def test_tool_calls_are_hidden_unless_they_are_wanted():
    turns = ([Action(name="double", args={"n": 2})], "Four.")
    hidden = await chunks_of(brain_with(*turns))
    visible = await chunks_of(brain_with(*turns), shown=Shown(tools=True))

    assert "double" not in str(hidden)
    assert asides_of(visible) == 'double({"n": 2})\ndouble returned: 4\n'
    assert content_of(visible) == content_of(hidden) == "Four."
    assert not any("tool_calls" in c["delta"] for chunk in visible for c in chunk["choices"])


async def test_a_failed_call_is_shown_as_failed():
    chunks = await chunks_of(
        brain_with([Action(name="double", args={"n": 2000})], "No."), shown=Shown(tools=True)
    )

    assert "double failed: " in asides_of(chunks)


async def test_thoughts_are_hidden_unless_they_are_wanted():
    text = 'I should double it. {"name": "double", "args": {"n": 2}}'

    def make() -> Brain:
        return Brain(llm=ScriptedLLM([text, "No tool.", "Four."], native=False), tools=[double])

    assert asides_of(await chunks_of(make())) == ""
    assert "I should double it." in asides_of(await chunks_of(make(), shown=Shown(thoughts=True)))


@pytest.mark.parametrize(
    ("limits", "stop_reason"),
    [
        (Limits(max_steps=1), "max_steps"),
        (Limits(max_tokens=1), "max_tokens"),
        (Limits(max_tool_calls=1), "max_tool_calls"),
    ],
)
async def test_a_limit_of_the_run_ends_with_length(limits, stop_reason):
    calls = [Action(name="double", args={"n": 2}), Action(name="double", args={"n": 3})]
    chunks = await chunks_of(brain_with([*calls, Usage(5, 5)], "Four.", limits=limits))

    assert end_of(chunks) == ("length", stop_reason)


@pytest.mark.parametrize(
    ("finish", "expected"),
    [("length", "length"), ("content_filter", "content_filter"), ("stop", "stop")],
)
async def test_the_models_finish_reason_is_passed_on(finish, expected):
    chunks = await chunks_of(brain_with(["Once upon", Finish(finish)]))

    assert end_of(chunks) == (expected, "done")


async def test_a_run_that_is_cancelled_ends_with_length():
    events = []
    async with Brain(llm=PartsLLM("Half an", Gate())).stream("Go") as run:
        async for event in run:
            events.append(event)
            if isinstance(event, TextDelta):
                run.cancel()
    stream = ChatStream("chatcmpl-1", "agent")
    chunks = [chunk for event in events for chunk in stream.translate(event)]

    assert end_of(chunks) == ("length", "cancelled")


async def test_a_stuck_run_ends_with_stop_and_what_was_said():
    turns = [["Hm.", Action(name="double", args={"n": 1}, id=f"c{i}")] for i in range(20)]
    chunks = await chunks_of(brain_with(*turns))

    assert end_of(chunks) == ("stop", "stuck")
    assert "Hm." in content_of(chunks)


async def test_a_run_that_waits_for_approval_says_so_in_words():
    chunks = await chunks_of(
        brain_with(["Paying.", Action(name="pay", args={"amount": 5})]), session="s1"
    )

    said = content_of(chunks)
    assert said.startswith('Paying.\n\nMay the agent call pay with {"amount": 5}?')
    assert "Answer 'yes', 'no' and the reason" in said
    assert end_of(chunks) == ("stop", "approval")
    assert chunks[-1]["agent_brain"]["session"] == "s1"


async def test_a_question_is_the_content():
    asks = [Action(name="ask_user", args={"question": "Which city?"})]

    chunks = await chunks_of(brain_with(asks), session="s1")

    assert content_of(chunks) == "Which city?"
    assert end_of(chunks) == ("stop", "input")


async def test_a_typed_question_says_what_kind_of_answer_fits():
    @tool
    def choose() -> str:
        """Choose."""
        raise InputNeeded("Which side?", Literal["window", "aisle"])

    brain = Brain(llm=ScriptedLLM([Action(name="choose")]), tools=[choose])

    chunks = await chunks_of(brain, session="s1")

    assert content_of(chunks) == "Which side?\n\n(Answer: window / aisle.)"


async def test_a_question_without_a_session_says_that_it_cannot_be_answered():
    asks = [Action(name="ask_user", args={"question": "Which city?"})]
    chunks = await chunks_of(brain_with(asks))

    assert content_of(chunks).startswith("Which city?\n\n(")
    assert "X-Session-Id" in content_of(chunks)
    assert "session" not in chunks[-1]["agent_brain"]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("pieces", [["abcd"] * 10, ["abcd" * 10]])
async def test_text_is_cut_at_the_limit_of_tokens(most, pieces):
    stream = ChatStream("chatcmpl-1", "agent", most_tokens=most)
    chunks = [c for event in await events_of(brain_with(pieces)) for c in stream.translate(event)]

    assert content_of(chunks) == "abcd" * most
    assert end_of(chunks) == ("length", "done")
    assert stream.limit.reached


async def test_text_that_fits_the_limit_ends_with_stop():
    chunks = await chunks_of(brain_with(["abcd", "efgh"]), most_tokens=2)

    assert content_of(chunks) == "abcdefgh"
    assert end_of(chunks) == ("stop", "done")


async def test_what_models_report_counts_toward_the_limit():
    stream = ChatStream("chatcmpl-1", "agent", most_tokens=50)
    calls = brain_with([Action(name="double", args={"n": 2}), Usage(5, 60)], "Four.")
    chunks = [c for event in await events_of(calls) for c in stream.translate(event)]

    assert stream.limit.reached
    assert content_of(chunks) == ""
    assert end_of(chunks)[0] == "length"


async def test_a_failed_run_has_no_chunk_before_its_output():
    chunks = await chunks_of(brain_with(ValueError("secret sk-abcdefghijklmnop")))

    assert chunks == []


async def test_a_run_that_says_nothing_has_an_empty_message():
    class Step(Enum):
        ONLY = "only"

    class Silent(State):
        async def run(self, memory: Memory) -> AsyncIterator[str]:
            if memory.control.scratch.get("speak"):
                yield "never"

        async def next_state(self, memory: Memory) -> None:
            return None

    chunks = await chunks_of(Brain({Step.ONLY: Silent()}))

    assert content_of(chunks) == ""
    assert end_of(chunks) == ("stop", "done")


@pytest.mark.parametrize("text", ["plain", "a\u2028b\x85", "日本語", "\ud800"])
def test_a_frame_is_one_line_of_json(text):
    data = frame({"text": text}).decode()

    assert data.endswith("\n\n")
    assert len(data[:-2].splitlines()) == 1
    assert json.loads(data.removeprefix("data: "))["text"] == text.replace("\ud800", "\ufffd")
