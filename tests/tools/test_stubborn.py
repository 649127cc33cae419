"""Async tools and functions that catch their cancellation: they are closed and named."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, Net, StopReason, react, tool
from agent_brain.nets import MapState
from agent_brain.states import FunctionState
from agent_brain.states.concurrency import Together
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Steps, single
from tests.support.clock import clock_backend, fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return clock_backend(request.param)


on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
"""For what only asyncio's own cancellation does."""


class Stubborn:
    """Catches every cancellation and goes on waiting."""

    def __init__(self, caught: type[BaseException] | None = None) -> None:
        self.times = 0
        self.closed = False
        self._caught = caught or anyio.get_cancelled_exc_class()

    async def wait(self) -> str:
        try:
            while True:
                try:
                    await anyio.sleep(1)
                except self._caught:
                    self.times += 1
        finally:
            self.closed = True


def net_of(kind: str, wait: Callable[[], Any]) -> Net:
    async def stubborn(item: object) -> str:
        return str(await wait())

    async def together(memory: Memory) -> Any:
        yield Together([lambda report: stubborn(report)])

    if kind == "map":
        return single(MapState(lambda memory: [1], stubborn))
    if kind == "together":
        return single(FunctionState(together))
    return single(FunctionState(stubborn))


def brain_of(kind: str, wait: Callable[[], Any], **options: Any) -> Brain:
    if kind != "tool":
        return Brain(net_of(kind, wait), **options)

    @tool
    async def stubborn() -> str:
        """Wait."""
        return str(await wait())

    return Brain(react(ScriptedLLM([Action(name="stubborn"), "ok"])), tools=[stubborn], **options)


@pytest.mark.parametrize("kind", ["tool", "map", "together", "function"])
async def test_it_is_cancelled_a_bounded_number_of_times_and_closed(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    work = Stubborn()
    with fake_clock():
        result = await brain_of(kind, work.wait, limits=Limits(timeout=0.5)).run("go")
    assert result.stop_reason is StopReason.TIMEOUT
    assert (work.times, work.closed) == (100, True)
    assert "was cancelled, caught that and continued, so it was closed" in caplog.text
    assert "stubborn" in caplog.text


@pytest.mark.parametrize("kind", ["tool", "map", "together", "function"])
@on_asyncio
async def test_wait_for_around_a_run_ends(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    work = Stubborn()
    brain = brain_of(kind, work.wait)
    with fake_clock(), pytest.raises(TimeoutError):
        await asyncio.wait_for(brain.run("go"), 0.5)
    assert (work.closed, brain.memory.control.stop_reason) == (True, "cancelled")
    assert work.times <= 100


@on_asyncio
async def test_a_timeout_block_around_a_run_ends_as_a_timeout() -> None:
    work = Stubborn()
    with fake_clock(), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await brain_of("tool", work.wait).run("go")
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@on_asyncio
async def test_a_function_that_returns_although_it_was_cancelled_does_not_save_the_run() -> None:
    async def first(memory: Memory) -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await anyio.sleep(9)
        return "half done"

    async def second(memory: Memory) -> None:
        await anyio.sleep_forever()

    net = Net(
        {Steps.ONE: FunctionState(first, on_done=Steps.TWO), Steps.TWO: FunctionState(second)}
    )
    brain = Brain(net)
    with fake_clock(), pytest.raises(TimeoutError):
        await asyncio.wait_for(brain.run("go"), 0.5)
    assert brain.memory.control.stop_reason == "cancelled"
    assert (await brain.memory.dump())[-1].content == "half done"


async def test_one_that_is_left_by_its_reader_is_closed() -> None:
    work = Stubborn()
    with fake_clock():
        async with brain_of("tool", work.wait).stream("go") as run:
            async for event in run:
                if event.kind == "action_started":
                    break
            await anyio.lowlevel.checkpoint()
    assert run.result.stop_reason is StopReason.CANCELLED


@on_asyncio  # trio.sleep opens a cancel scope, which must be left
async def test_one_that_catches_everything_is_left_where_it_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Stubborn(BaseException)
    with fake_clock():
        result = await brain_of("tool", work.wait, limits=Limits(timeout=0.5)).run("go")
    assert (result.stop_reason, work.closed) == (StopReason.TIMEOUT, False)
    assert work.times == 101
    assert "is left where it awaits" in caplog.text


async def test_time_limits_of_its_own_are_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def wait() -> str:
        for _ in range(300):
            with anyio.move_on_after(0.1):
                await anyio.sleep(1)
        return "waited"

    with fake_clock():
        result = await brain_of("function", wait).run("go")
    assert (result.answer, caplog.records) == ("waited", [])


async def test_it_may_clean_up(caplog: pytest.LogCaptureFixture) -> None:
    cleaned: list[str] = []

    async def wait() -> str:
        try:
            await anyio.sleep(9)
        finally:
            with anyio.CancelScope(shield=True):
                for _ in range(200):
                    await anyio.sleep(0.001)
                cleaned.append("clean")
        return ""

    with fake_clock(), caplog.at_level(logging.ERROR):
        result = await brain_of("tool", wait, limits=Limits(timeout=0.5)).run("go")
    assert (result.stop_reason, cleaned) == (StopReason.TIMEOUT, ["clean"])
    assert not caplog.records
