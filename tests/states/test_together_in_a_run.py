"""Work done at once inside a run: back-pressure, usage that counts, and stray cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import anyio
import pytest

from agent_brain import LLM, Brain, Limits, Memory, Message, State, StopReason
from agent_brain.nets import MapState, SubnetState
from agent_brain.states import (
    ApprovalRequested,
    InputRequested,
    LLMServerError,
    StateCancelledError,
    StreamItem,
    Together,
    Usage,
)
from tests.brain.nets import single
from tests.support.clock import clock_backend, fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return clock_backend(request.param)


class Ask(State):
    """Asks its model several questions at once; an error of the model is an answer."""

    def __init__(self, llm: LLM, *questions: str) -> None:
        self.llm = llm
        self.questions = questions

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        try:
            yield Together[str]([self.llm.call([Message.user(q)]) for q in self.questions])
        except LLMServerError:
            yield "caught"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


class Early(LLM):
    """Says what it used first, then hangs; or fails, once all others hang."""

    model = "early"

    def __init__(self, others: int = 0) -> None:
        self.others = others
        self.hanging = anyio.Event()

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str | Usage]:
        yield Usage(100, 0)
        if messages[-1].content == "fails":
            await self.hanging.wait()
            raise LLMServerError("broken", model="early")
        yield "one"
        self.others -= 1
        if self.others == 0:
            self.hanging.set()
        await anyio.sleep_forever()


class Counting(LLM):
    """Counts the pieces that it made."""

    model = "counting"
    made = 0

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str | Usage]:
        yield Usage(5, 7)
        for _ in range(100):
            self.made += 1
            yield "word "
            await anyio.lowlevel.checkpoint()


async def test_a_slow_reader_slows_the_models_down() -> None:
    llm = Counting()
    async with Brain(single(Ask(llm, "a", "b"))).stream("go") as run:
        async for event in run:
            if event.kind == "text_delta":
                await anyio.wait_all_tasks_blocked()
                assert llm.made <= 4
                break
    assert (run.result.usage.requests, run.result.usage.input_tokens) == (2, 10)


async def test_calls_that_a_failure_cancels_count_with_what_they_used() -> None:
    result = await Brain(single(Ask(Early(2), "fails", "slow", "slow"))).run("go")
    assert result.answer.endswith("caught")
    assert (result.usage.requests, result.usage.input_tokens) == (3, 300)


@pytest.mark.parametrize("questions", [["a"], ["a", "b"]])
async def test_calls_that_a_time_limit_cuts_count_with_what_they_used(questions: list[str]) -> None:
    brain = Brain(single(Ask(Early(9), *questions)), limits=Limits(timeout=0.05))
    with fake_clock():
        result = await brain.run("go")
    assert result.stop_reason is StopReason.TIMEOUT
    count = len(questions)
    assert (result.usage.requests, result.usage.input_tokens) == (count, 100 * count)


async def test_a_single_call_that_a_time_limit_cuts_counts_with_what_it_used() -> None:
    with fake_clock():
        result = await Brain("react", llm=Early(9), limits=Limits(timeout=0.05)).run("go")
    assert (result.usage.requests, result.usage.input_tokens) == (1, 100)


class Gone(LLM):
    """Awaits something that somebody else has cancelled."""

    model = "gone"

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str | Usage]:
        yield "a"
        raise asyncio.CancelledError


async def lookup(item: int) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("state", [Ask(Gone(), "x"), MapState(lambda memory: [1, 2], lookup)])
async def test_a_cancellation_that_is_not_the_runs_names_the_state(state: State) -> None:
    with pytest.raises(StateCancelledError, match="State 'ONE'"):
        await Brain(single(state)).run("go")


async def test_a_cancellation_of_one_item_can_be_collected() -> None:
    seen: list[Any] = []
    state = MapState(
        lambda memory: [1, 2],
        lookup,
        on_item_error="collect",
        join=lambda memory, results: seen.extend(result.error for result in results),
    )
    await Brain(single(state)).run("go")
    assert [type(error) for error in seen] == [StateCancelledError] * 2


class Asks(State):
    """Asks a person."""

    def __init__(self, event: InputRequested | ApprovalRequested) -> None:
        self.event = event

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        yield self.event

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_a_subnet_on_the_runs_own_memory_can_ask() -> None:
    result = await Brain(single(SubnetState(single(Asks(InputRequested("Name?")))))).run("go")
    assert result.stop_reason is StopReason.INPUT
