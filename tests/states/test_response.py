"""One call of a model: ids, endings, thoughts in the text, and requests that are too long."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent_brain import LLM, Brain, StopReason, react
from agent_brain.errors import LLMRefusalError
from agent_brain.memories import Message, Role
from agent_brain.states import (
    ActionFinished,
    ActionRequested,
    AnswerState,
    ContextWindowError,
    Finish,
    GuardedState,
    LLMConnectionError,
    MalformedOutputError,
    TextDelta,
    Thought,
    Usage,
    UsageReported,
    model_summarizer,
)
from agent_brain.states.models.think_tags import ThinkTags
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.states.helpers import add, reasoning

pytestmark = pytest.mark.anyio

CALL = Action(name="add", args={"a": 1, "b": 2}, id="call_1")


class Sum(BaseModel):
    value: int


# -- ids and reports -------------------------------------------------------------------------------


async def test_every_piece_of_a_response_has_its_id():
    llm = ScriptedLLM(
        [[Thought("Hm."), "I ", "add.", CALL, Finish("tool_calls"), Usage(1, 2, 0.5)]]
    )
    done = await run_state(reasoning(llm), FakeMemory("What?", tools=[add]))

    ids = {getattr(event, "response_id", None) for event in done.events}
    assert len(ids) == 1
    assert None not in ids
    [report] = done.of(UsageReported)
    assert (report.usage, report.finish_reason) == (Usage(1, 2, 0.5), "tool_calls")


async def test_a_corrected_call_is_another_response_and_both_are_reported():
    done = await run_state(reasoning(ScriptedLLM([" ", "Yes."])), FakeMemory("What?"))

    first, second = done.of(UsageReported)
    [text] = done.of(TextDelta)
    assert first.response_id != second.response_id == text.response_id
    assert first.usage == Usage(model="scripted")


async def test_a_call_that_fails_is_reported_before_the_error():
    seen: list[UsageReported] = []
    llm = ScriptedLLM([["Half", LLMConnectionError("cut", retries=2)]])

    async def listen() -> None:
        async with Brain(react(llm)).stream("What?") as run:
            async for event in run:
                if isinstance(event, UsageReported):
                    seen.append(event)

    with pytest.raises(LLMConnectionError):
        await listen()
    [used] = [report.usage for report in seen]
    assert (used.requests, used.cost, used.estimated) == (3, None, True)


async def test_failed_calls_count_in_the_result_of_a_run_that_continues():
    llm = ScriptedLLM([LLMConnectionError("cut"), "Yes."])
    state = GuardedState(AnswerState(llm, ask=True), retries=1, backoff=0)
    done = await run_state(state, FakeMemory("What?"))

    assert done.text == "Yes."
    assert [report.usage.requests for report in done.of(UsageReported)] == [1, 1]


async def test_tries_that_a_model_reports_itself_are_counted_once():
    llm = ScriptedLLM([["Yes.", Usage(requests=2), Usage(5, 5, 0.1, model="m")]])
    done = await run_state(reasoning(llm), FakeMemory("What?"))

    [report] = done.of(UsageReported)
    assert (report.usage.requests, report.usage.input_tokens, report.usage.cost) == (3, 5, None)


async def test_a_call_that_is_left_counts_as_a_request():
    brain = Brain(react(ScriptedLLM([["Half", " of it"]])))
    async with brain.stream("What?") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    used = run.result.usage
    assert (used.requests, used.cost, used.estimated) == (1, None, True)
    assert used.input_tokens > used.output_tokens > 0


# -- how a response ends ---------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["length", "content_filter", "refusal", "unknown"])
async def test_an_answer_that_did_not_end_well_says_so(reason):
    memory = FakeMemory("What?")
    done = await run_state(reasoning(ScriptedLLM([["It is", Finish(reason)]])), memory)

    assert done.text == "It is"
    assert memory.updates[0][0].metadata == {"finish_reason": reason}
    assert [report.finish_reason for report in done.of(UsageReported)] == [reason]


async def test_a_complete_answer_has_no_such_note():
    memory = FakeMemory("What?")
    await run_state(reasoning(ScriptedLLM([["It is.", Finish("stop")]])), memory)

    assert memory.updates[0][0].metadata == {}


async def test_what_the_provider_needs_again_is_kept_with_the_message():
    signed: dict[str, Any] = {"thinking_blocks": [{"type": "thinking", "signature": "abc"}]}
    llm = ScriptedLLM([[CALL, Finish("tool_calls", signed)], ["3", Finish("stop", signed)]])
    result = await Brain(react(llm), tools=[add]).run("1 + 2?")

    said = [m for m in result.messages if m.role is Role.ASSISTANT]
    assert [m.metadata for m in said] == [{"provider_data": signed}] * 2
    assert [m.metadata for m in llm.calls[1].messages if m.tool_calls] == [
        {"provider_data": signed}
    ]


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
@pytest.mark.parametrize("options", [{}, {"output_type": Sum}])
async def test_a_refusal_without_text_is_an_error_and_is_not_asked_again(reason, options):
    llm = ScriptedLLM([[Finish(reason)]])
    with pytest.raises(LLMRefusalError) as caught:
        await run_state(AnswerState(llm, ask=True, **options), FakeMemory("What?"))

    assert caught.value.reason == reason
    llm.assert_complete()


async def test_a_refusal_as_text_is_the_answer():
    result = await Brain(react(ScriptedLLM([["I will not.", Finish("refusal")]]))).run("What?")

    assert (result.stop_reason, result.answer) == (StopReason.DONE, "I will not.")
    assert result.messages[-1].metadata["finish_reason"] == "refusal"


async def test_a_refusal_instead_of_data_is_an_error_with_the_text():
    llm = ScriptedLLM([["I will not.", Finish("refusal")]])
    with pytest.raises(LLMRefusalError, match=r"refused to answer: I will not\.") as caught:
        await run_state(AnswerState(llm, output_type=Sum), FakeMemory("What?"))

    assert caught.value.output == "I will not."


async def test_half_of_the_data_is_not_taken_for_the_whole():
    class Cities(BaseModel):
        names: list[str]

    half, whole = '{"names": ["Oslo", "Ro', '{"names": ["Oslo", "Rome"]}'
    llm = ScriptedLLM([[half, Finish("length")], whole])
    memory = FakeMemory("What?")
    await run_state(AnswerState(llm, output_type=Cities), memory)

    assert memory.control.output.names == ["Oslo", "Rome"]
    assert "cut off at the limit of output tokens" in llm.calls[1].messages[-1].content


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
async def test_nothing_but_thoughts_up_to_the_limit_is_named(native):
    turn: list[Any] = [Thought("Hm, hm"), Finish("length")]
    with pytest.raises(MalformedOutputError, match="cut off at the limit of output tokens before"):
        await run_state(reasoning(ScriptedLLM([turn, turn], native=native)), FakeMemory("What?"))


@pytest.mark.parametrize(
    "cut",
    [Action(name="add", unparsed='{"a": 1, "b"', id="call_1"), Action(name="add", id="call_1")],
    ids=["half", "none"],
)
async def test_a_call_that_was_cut_off_is_not_run_and_the_model_reads_why(cut):
    llm = ScriptedLLM([[CALL, cut.model_copy(update={"id": "call_2"}), Finish("length")], "3"])
    events = []
    async with Brain(react(llm), tools=[add]).stream("1 + 2?") as run:
        async for event in run:
            events.append(event)

    ends = {e.action.id: e.result for e in events if isinstance(e, ActionFinished)}
    first, second = ends["call_1"], ends["call_2"]
    assert (first.content, first.is_error) == ("3", False)
    assert second.is_error
    assert "cut off at the limit of output tokens" in second.content
    assert llm.calls[1].messages[-1].content == second.content


async def test_in_the_text_mode_half_a_call_is_not_run():
    half = 'I add. {"name": "add", "args": {"a": 1, "b": 2'
    llm = ScriptedLLM([[half, Finish("length")], half + "}}"], native=False)
    memory = FakeMemory("What?", tools=[add])
    done = await run_state(reasoning(llm), memory)

    assert "cut off" in llm.calls[1].messages[-1].content
    assert len(done.of(ActionRequested)) == len(memory.next_actions) == 1


# -- thoughts in the text --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunks",
    [
        ["<think>Let me ", "see.</think>\n\nIt is 4."],
        ["<th", "ink>Let me see.", "</thi", "nk>", "\n", "\nIt is", " 4."],
        [*"<think>Let me see.</think>It is 4."],
        ["<thinking>Let me see.</thinking>It is 4."],
        ["\n<THINK>Let me see.</THINK> It is 4."],
    ],
)
@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
async def test_thoughts_in_tags_are_thoughts(chunks, native):
    memory = FakeMemory("What?")
    done = await run_state(reasoning(ScriptedLLM([chunks], native=native)), memory)

    assert memory.updates[0][0].content.strip() == "It is 4."
    if native:
        assert done.text.strip() == "It is 4."
        assert "".join(done.thoughts) == "Let me see."


async def test_an_answer_of_thoughts_alone_is_empty():
    llm = ScriptedLLM(["<think>It is 4.</think>", "It is 4."])
    memory = FakeMemory("What?")
    done = await run_state(reasoning(llm), memory)

    assert done.text == memory.updates[0][0].content == "It is 4."
    assert "it was empty" in llm.calls[1].messages[-1].content


@pytest.mark.parametrize(
    "text",
    [
        "Write `<think>` first.",
        "a < b",
        "1 <2",
        "<thinker>",
        "a <th",
        "<th",
        "Set <think> to off in the settings. Then restart.",
        "Set <think>on</think> in the settings.",
        "It closes with </think>, as usual.",
        "`<think>` is a tag. </think> closes it.",
        "```xml\n<think>\nHm.\n</think>\n```\nis a thought.",
        "<b>Use</b> <think>.",
        "<think> is a tag that opens a thought.",
        "<think> opens and <think> opens again.",
        "\n<thinking>, it is said, <thin",
    ],
)
@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "whole"])
async def test_text_about_tags_is_text(text, chunked):
    memory = FakeMemory("What?")
    llm = ScriptedLLM([[*text] if chunked else text])
    done = await run_state(reasoning(llm), memory)

    assert done.text == memory.updates[0][0].content == text


async def test_a_thought_streams_before_it_is_known_whether_it_is_closed():
    chunks = ["<think>", "one ", "two ", "three", "</think>", "It ", "is ", "4."]
    done = await run_state(reasoning(ScriptedLLM([chunks])), FakeMemory("What?"))

    assert done.thoughts == ["one ", "two ", "three"]
    assert done.chunks == ["It ", "is ", "4."]


async def test_several_thoughts_may_come_before_the_text():
    said = "<think>a</think>\n<thinking>b</thinking>\nIt is 4. <think>c</think>"
    done = await run_state(reasoning(ScriptedLLM([said])), FakeMemory("What?"))

    assert (done.text, done.thoughts) == ("It is 4. <think>c</think>", ["a", "b"])


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
async def test_a_thought_that_was_cut_off_is_no_answer(native):
    turn: list[Any] = ["<think>Hm, ", "hm", Finish("length")]
    llm = ScriptedLLM([turn, "It is 4."], native=native)
    memory = FakeMemory("What?")
    await run_state(reasoning(llm), memory)

    assert memory.updates[0][0].content == "It is 4."
    assert "before it said anything" in llm.calls[1].messages[-1].content


async def test_data_behind_a_thought_is_read():
    llm = ScriptedLLM(['<think>Maybe {"value": 5}?</think>{"value": 4}'])
    memory = FakeMemory("What?")
    await run_state(AnswerState(llm, output_type=Sum), memory)

    assert memory.control.output == Sum(value=4)


PARTS = st.lists(st.sampled_from(["<think>", "</think>", "<", ">", "a", " ", "think", "/"])).map(
    "".join
)


@given(st.sampled_from(["a", "`", "<", "</think>", "1 "]), PARTS)
def test_tags_count_at_the_beginning_only(beginning: str, text: str):
    said = f"{beginning} {text}"
    tags = ThinkTags()

    assert "".join([*tags.split(said), *tags.flush()]) == said


@given(PARTS, st.lists(st.integers(0, 40)))
def test_where_chunks_end_makes_no_difference(text: str, cuts: Sequence[int]):
    def split(chunks: Sequence[str]) -> tuple[str, str]:
        tags = ThinkTags()
        parts = [part for chunk in chunks for part in tags.split(chunk)] + [*tags.flush()]
        words = "".join(part for part in parts if not isinstance(part, Thought))
        return words, "".join(part for part in parts if isinstance(part, Thought))

    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[start:end] for start, end in pairwise(places)]
    assert split(chunks) == split([text])


# -- requests that are too long --------------------------------------------------------------------


def too_long(messages: list[Message]) -> Any:
    return ContextWindowError("too many tokens") if len(messages) > 7 else "Yes."


def history() -> list[Message]:
    other = Action(name="add", args={"a": 3, "b": 4}, id="call_2")
    return [
        Message.user("Long ago. " * 50),
        Message.assistant("Indeed. " * 50),
        Message.user("Never forget.", pinned=True),
        Message.user("What?"),
        Message.assistant("", [CALL]),
        Message.tool("3 " * 50, CALL),
        Message.assistant("", [other]),
        Message.tool("7", other),
    ]


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
async def test_a_request_that_is_too_long_is_trimmed_and_sent_once_more(native):
    llm = ScriptedLLM([too_long, too_long], native=native)
    memory = FakeMemory(None, history())
    done = await run_state(reasoning(llm, prompt="Be brief."), memory)

    sent = [message.content for message in llm.calls[1].messages]
    assert sent[0].startswith("Be brief.")
    assert sent[1:3] == ["Never forget.", "What?"]
    assert len(sent) == 7
    assert done.of(UsageReported)[0].usage == Usage(requests=1, cost=0.0)
    assert memory.updates[0][0].content == "Yes."


async def test_a_request_that_stays_too_long_is_an_error():
    error = ContextWindowError("too many tokens")
    with pytest.raises(ContextWindowError):
        await run_state(reasoning(ScriptedLLM([error, error])), FakeMemory(None, history()))


async def test_a_request_with_nothing_to_leave_out_is_sent_once():
    llm = ScriptedLLM([ContextWindowError("too many tokens")])
    with pytest.raises(ContextWindowError):
        await run_state(reasoning(llm), FakeMemory("What?"))
    llm.assert_complete()


async def test_the_goal_stays_when_a_state_asks_for_something():
    llm = ScriptedLLM([too_long, '{"value": 4}'])
    await run_state(AnswerState(llm, output_type=Sum), FakeMemory(None, history()))

    assert "What?" in [m.content for m in llm.calls[1].messages]


async def test_summaries_are_words_without_thoughts():
    llm = ScriptedLLM([["<think>Hm.</think>", "All is well."]])
    assert await model_summarizer(llm)("", [Message.user("hi")]) == "All is well."


# -- models of a user's own ------------------------------------------------------------------------


class Odd(LLM):
    def __init__(self, *pieces: Any) -> None:
        self.pieces = pieces

    async def stream(self, messages, *, tools=(), output_type=None):
        for piece in self.pieces:
            yield piece


class Whole(Odd):
    async def stream(self, messages, *, tools=(), output_type=None):  # type: ignore[override]
        return list(self.pieces)


class Plain(Odd):
    def stream(self, messages, *, tools=(), output_type=None):
        yield from self.pieces


class Pieces(Odd):
    def stream(self, messages, *, tools=(), output_type=None):
        return self

    async def __aiter__(self):
        for piece in self.pieces:
            yield piece


@pytest.mark.parametrize("before", [[], ["Yes "]], ids=["first", "later"])
@pytest.mark.parametrize("piece", [None, b"no", 5, {"content": "no"}], ids=repr)
async def test_what_is_not_a_piece_is_refused(piece, before):
    with pytest.raises(
        TypeError, match=rf"^Odd\.stream\(\) yielded .* {type(piece).__name__}: yield"
    ):
        await run_state(reasoning(Odd(*before, piece)), FakeMemory("What?"))


@pytest.mark.parametrize(
    ("model", "given"), [(Whole, "coroutine"), (Plain, "generator")], ids=["whole", "plain"]
)
async def test_a_stream_that_is_not_an_async_generator_is_refused(model, given):
    with pytest.raises(
        TypeError, match=rf"{model.__name__}\.stream\(\) returned .* {given}: write"
    ):
        await run_state(reasoning(model("Yes.")), FakeMemory("What?"))


async def test_a_stream_may_be_any_async_iterable():
    done = await run_state(reasoning(Pieces("Yes", ".")), FakeMemory("What?"))
    assert done.text == "Yes."


@pytest.mark.parametrize("reason", ["max_tokens", None])
def test_a_reason_of_the_providers_own_is_refused(reason):
    with pytest.raises(ValueError, match="reason must be one of 'stop', 'tool_calls', 'length'"):
        Finish(reason)
