"""Work that a state yields: done, streamed and closed by the Brain, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from enum import Enum
from typing import Any, Literal

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import LLM, Brain, Limits, Memory, Message, Net, State
from agent_brain.errors import LLMConnectionError, LLMRefusalError, MalformedOutputError
from agent_brain.states import (
    ActionRequested,
    Event,
    Finish,
    GuardedState,
    ResponseStarted,
    StreamItem,
    StructuredRequest,
    TextDelta,
    Together,
    Usage,
    UsageReported,
)
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action, BaseTool, tool
from tests.support.clock import fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

HELLO = [Message.user("Hello")]


class N(Enum):
    ONLY = 1


class Asking(State):
    """Yields what a function of the memory yields."""

    def __init__(self, run: Callable[[Memory], AsyncIterator[StreamItem]]) -> None:
        self._run = run

    def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        return self._run(memory)

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


def brain(run: Callable[[Memory], AsyncIterator[StreamItem]], **options: Any) -> Brain[Any]:
    return Brain(Net({N.ONLY: Asking(run)}), **options)


class Sum(BaseModel):
    value: int


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Endless(LLM):
    """Streams for ever, and notes how its streams end."""

    def __init__(self) -> None:
        self.open_streams = 0
        self.waiting = anyio.Event()

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Any]:
        self.open_streams += 1
        try:
            yield "word "
            yield "word "
            self.waiting.set()
            await anyio.sleep_forever()
        finally:
            self.open_streams -= 1


# -- what came of it -------------------------------------------------------------------------------


async def test_a_call_streams_and_then_has_what_the_model_said() -> None:
    llm = ScriptedLLM([["Let ", "me. ", Action(name="add", args={}), Finish("tool_calls")]])
    seen: list[Any] = []

    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        call = llm.call(HELLO, tools=[add])
        yield call
        seen.extend([call.text, [a.name for a in call.actions], call.finish_reason, call.usage])

    done = await run_state(Asking(run), FakeMemory("?"))
    assert done.chunks == ["Let ", "me. "]
    assert len(done.of(ActionRequested)) == 1
    assert seen == ["Let me. ", ["add"], "tool_calls", Usage(model="scripted")]


async def test_data_is_validated_and_corrected_once() -> None:
    llm = ScriptedLLM(["four", '{"value": 4}'])
    seen: list[Sum] = []

    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        call = llm.call(HELLO, output_type=Sum)
        yield call
        seen.append(call.output)

    done = await run_state(Asking(run), FakeMemory("?"))
    assert (seen, done.chunks, len(done.of(UsageReported))) == ([Sum(value=4)], [], 2)


async def test_text_may_stream_as_a_thought() -> None:
    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        yield ScriptedLLM(["hm"]).call(HELLO, thought=True)

    done = await run_state(Asking(run), FakeMemory("?"))
    assert (done.thoughts, done.chunks) == (["hm"], [])


async def test_the_errors_of_several_calls_are_raised_where_the_state_waits() -> None:
    llm = ScriptedLLM(
        [LLMConnectionError("cut"), ["no", "no"], [Finish("refusal")], "nonsense", "again", "ok"]
    )
    seen: list[str] = []

    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        for output_type in (None, None, None, Sum, None):
            call = llm.call(HELLO, output_type=output_type)
            try:
                yield call
                seen.append(call.text)
            except (LLMConnectionError, LLMRefusalError, MalformedOutputError) as error:
                seen.append(type(error).__name__)

    await brain(run).run("?")
    assert seen == [
        *("LLMConnectionError", "nono", "LLMRefusalError", "MalformedOutputError", "ok"),
    ]


async def test_several_at_once_give_their_results_in_order() -> None:
    llm = ScriptedLLM([lambda messages: messages[0].content for _ in range(3)])
    seen: list[Any] = []

    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        together: Together[str] = Together(
            [llm.call([Message.user(text)], thought=True) for text in "abc"]
        )
        yield together
        seen.extend(together.results)

    await brain(run).run("?")
    assert seen == ["a", "b", "c"]


async def test_works_inside_of_works_are_part_of_the_run() -> None:
    good, bad = ScriptedLLM(['{"value": 1}']), ScriptedLLM([LLMConnectionError("cut")])

    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        inner: Together[Sum] = Together([StructuredRequest(good, HELLO, Sum)])
        yield inner
        with pytest.raises(LLMConnectionError):
            yield Together([Together([bad.call(HELLO)])])
        yield str(inner.results[0].value)

    result = await brain(run).run("?")
    assert (result.answer, result.usage.requests) == ("1", 2)


async def test_a_guarded_state_is_tried_again_only_if_its_work_has_not_streamed() -> None:
    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        yield llm.call(HELLO)

    llm = ScriptedLLM([LLMConnectionError("cut"), "ok"])
    guarded = GuardedState(Asking(run), retries=1, backoff=0)
    assert (await run_state(guarded, FakeMemory("?"))).text == "ok"

    llm = ScriptedLLM([["half", LLMConnectionError("cut")], "ok"])
    with pytest.raises(LLMConnectionError):
        await run_state(guarded, FakeMemory("?"))


# -- nothing stays open ----------------------------------------------------------------------------


def ways_to_write_it(llm: LLM) -> dict[str, Callable[[Memory], AsyncIterator[StreamItem]]]:
    async def call(memory: Memory) -> AsyncIterator[StreamItem]:
        yield llm.call(HELLO)

    async def together(memory: Memory) -> AsyncIterator[StreamItem]:
        yield Together([llm.call(HELLO), llm.call(HELLO)])

    async def nested(memory: Memory) -> AsyncIterator[StreamItem]:
        async with aclosing(together(memory)) as items:  # type: ignore[type-var]
            async for item in items:
                yield item

    return {"call": call, "together": together, "nested": nested}


WAYS = [*ways_to_write_it(ScriptedLLM())]


@pytest.mark.parametrize("way", WAYS)
async def test_leaving_the_answer_closes_the_model(way: str) -> None:
    llm = Endless()
    async with aclosing(brain(ways_to_write_it(llm)[way]).answer("?")) as chunks:
        async for _ in chunks:
            break
    assert llm.open_streams == 0


@pytest.mark.parametrize("way", WAYS)
async def test_leaving_the_stream_closes_the_model(way: str) -> None:
    llm = Endless()
    async with brain(ways_to_write_it(llm)[way]).stream("?") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    assert llm.open_streams == 0


@pytest.mark.parametrize("way", WAYS)
async def test_cancelling_closes_the_model(way: str) -> None:
    llm = Endless()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(brain(ways_to_write_it(llm)[way]).run, "?")
            await llm.waiting.wait()
            group.cancel_scope.cancel()
    assert llm.open_streams == 0


@pytest.mark.parametrize("way", WAYS)
async def test_the_limit_of_time_closes_the_model(way: str) -> None:
    llm = Endless()
    made = brain(ways_to_write_it(llm)[way], limits=Limits(timeout=0.05))
    with fake_clock():
        assert (await made.run("?")).stop_reason == "timeout"
    assert llm.waiting.is_set()
    assert llm.open_streams == 0


async def test_an_error_after_the_yield_finds_the_model_closed() -> None:
    llm = ScriptedLLM(["done"])

    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        yield llm.call(HELLO)
        raise KeyError("later")

    with pytest.raises(KeyError, match="later"):
        await brain(run).run("?")
    llm.assert_complete()


async def test_a_state_that_is_left_at_its_work_can_clean_up() -> None:
    llm, left = Endless(), []

    async def run(memory: Memory) -> AsyncIterator[StreamItem]:
        try:
            yield llm.call(HELLO)
        except GeneratorExit:
            left.append(llm.open_streams)
            raise

    async with brain(run).stream("?") as started:
        async for event in started:
            if isinstance(event, TextDelta):
                break
    assert left == [0]


async def test_what_is_neither_text_nor_event_nor_work_is_an_error_that_says_so() -> None:
    async def run(memory: Memory) -> AsyncIterator[Any]:
        yield 3

    with pytest.raises(TypeError, match=r"yielded 3: yield text, an event"):
        await brain(run).run("?")


def test_work_is_not_an_event() -> None:
    assert not isinstance(ScriptedLLM().call(HELLO), Event)


async def test_responses_without_ids_are_counted_one_by_one() -> None:
    async def calls(memory: Memory) -> AsyncIterator[StreamItem]:
        yield ResponseStarted(model="first")
        yield ResponseStarted(model="second")
        yield UsageReported(Usage(1, 1))
        raise ValueError("cut off")

    asking = brain(calls)
    with pytest.raises(ValueError, match="cut off"):
        await asking.run("go")
    assert asking.memory.control.spent.requests == 2
