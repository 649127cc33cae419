"""Timeouts that take no time."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from agent_brain import Memory, StopReason, tool
from agent_brain.states import FunctionState, GuardedState, StateTimeoutError
from agent_brain.testing import FakeMemory, run_net, run_state
from agent_brain.tools import Action, call_tool
from tests.brain.nets import Hang, single
from tests.support.clock import LoopTime, clock_backend, fake_clock

HOUR = 3600.0


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return clock_backend(request.param)


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 30


async def sleepy(memory: Memory) -> str:
    await anyio.sleep(10 * HOUR)
    return "done"


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_sleeping_takes_only_virtual_time() -> None:
    with fake_clock() as clock:
        await anyio.sleep(HOUR)
        assert clock.elapsed == pytest.approx(HOUR)
        assert clock.time() == anyio.current_time()


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    woken: list[tuple[int, float]] = []

    async def sleep(hours: int) -> None:
        await anyio.sleep(hours * HOUR)
        woken.append((hours, clock.elapsed / HOUR))

    with fake_clock() as clock:
        async with anyio.create_task_group() as group:
            for hours in (3, 1, 2):
                group.start_soon(sleep, hours)
    assert [hours for hours, _ in woken] == [1, 2, 3]
    assert [after for _, after in woken] == pytest.approx([1, 2, 3])


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_time_does_not_pass_while_there_is_work() -> None:
    with fake_clock() as clock:
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        assert clock.elapsed == 0


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_time_may_be_advanced_but_not_reversed() -> None:
    with fake_clock() as clock:
        with anyio.move_on_after(HOUR) as scope:
            clock.advance(2 * HOUR)
            await anyio.sleep_forever()
        assert scope.cancelled_caught
        assert clock.elapsed == pytest.approx(2 * HOUR)
        with pytest.raises(ValueError, match="backwards"):
            clock.advance(-1)


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_a_guarded_state_times_out_at_once() -> None:
    with fake_clock() as clock:
        with pytest.raises(StateTimeoutError):
            await run_state(GuardedState(FunctionState(sleepy), timeout=HOUR), FakeMemory("go"))
        assert clock.elapsed == pytest.approx(HOUR)


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_a_run_times_out_at_once() -> None:
    noted: list[str] = []
    with fake_clock():
        run = await run_net(single(Hang(noted)), "go", timeout=HOUR)
    assert run.result is not None
    assert (run.result.stop_reason, noted) == (StopReason.TIMEOUT, ["left", "exited"])


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_a_tool_times_out_at_once() -> None:
    @tool(timeout=HOUR)
    async def slow() -> None:
        """Take long."""
        await anyio.sleep(2 * HOUR)

    with fake_clock():
        outcome = await call_tool(Action(name="slow"), {"slow": slow})
    assert "took longer than 3600 s" in outcome.content


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_afterwards_time_passes_at_its_normal_pace() -> None:
    before = anyio.current_time()
    for _ in range(2):
        with fake_clock():
            await anyio.sleep(HOUR)
    after = anyio.current_time()
    assert 2 * HOUR <= after - before < 2 * HOUR + 20
    with anyio.fail_after(60):
        await anyio.sleep(0.01)
    assert 0.009 < anyio.current_time() - after < 20


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_a_timer_set_inside_is_still_due_afterwards() -> None:
    async with anyio.create_task_group() as group:
        with fake_clock():
            await anyio.sleep(HOUR)
            group.start_soon(anyio.sleep, 0.01)
            await anyio.lowlevel.checkpoint()


# --- asyncio alone ---


@pytest.mark.asyncio
async def test_it_works_with_pytest_asyncio() -> None:
    with fake_clock() as clock:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(HOUR):
                await asyncio.sleep(2 * HOUR)
        assert clock.elapsed == pytest.approx(HOUR)


@pytest.mark.asyncio
@pytest.mark.parametrize("run", [anyio.to_thread.run_sync, asyncio.to_thread])
async def test_time_does_not_jump_while_a_thread_works(run: Any) -> None:
    def work() -> str:
        time.sleep(0.05)
        return "done"

    with fake_clock() as clock, anyio.fail_after(HOUR):
        assert await run(work) == "done"
        assert clock.elapsed < HOUR


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_time_does_not_jump_while_a_thread_of_anyio_works() -> None:
    waiting = threading.Event()
    threading.Timer(0.05, waiting.set).start()

    with fake_clock() as clock, anyio.fail_after(HOUR):
        assert await anyio.to_thread.run_sync(waiting.wait, 60)
        assert clock.elapsed < HOUR


@pytest.mark.asyncio
async def test_a_thread_may_wait_for_a_timer_of_the_loop() -> None:
    def sleep() -> None:
        anyio.from_thread.run(anyio.sleep, 0.02)

    with fake_clock() as clock:
        await anyio.to_thread.run_sync(sleep)
        assert 0.01 < clock.elapsed < 20


@pytest.mark.asyncio
async def test_a_threshold_leaves_time_for_sockets() -> None:
    here, there = socket.socketpair()
    here.setblocking(False)
    answer = threading.Timer(0.02, there.sendall, [b"hello"])
    with here, there, fake_clock(threshold=5) as clock:
        answer.start()
        async with asyncio.timeout(HOUR):
            assert await asyncio.get_running_loop().sock_recv(here, 5) == b"hello"
        assert clock.elapsed == 0
        answer.join()


@pytest.mark.asyncio
async def test_it_cannot_be_nested() -> None:
    with fake_clock(), pytest.raises(RuntimeError, match="already active"), fake_clock():
        pass


@pytest.mark.asyncio
async def test_another_kind_of_loop_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "_selector", None)
        with pytest.raises(RuntimeError, match="does not support"), fake_clock():
            pass


# --- trio alone ---


def test_on_trio_the_clock_must_have_been_set_up() -> None:
    async def main() -> None:
        with fake_clock():
            pass

    with pytest.raises(RuntimeError, match="clock_backend"):
        anyio.run(main, backend="trio")


def test_on_trio_any_mock_clock_is_supported() -> None:
    from trio.testing import MockClock

    async def main() -> float:
        with fake_clock() as clock:
            await anyio.sleep(HOUR)
            return clock.elapsed

    options = {"clock": MockClock(rate=1)}
    assert anyio.run(main, backend="trio", backend_options=options) == pytest.approx(HOUR)


def test_loop_time_is_real_time_unless_it_is_stopped() -> None:
    real = [100.0]
    now = LoopTime(lambda: real[0])
    assert now() == 100.0
    now.stop()
    real[0] = 150.0
    now.advance(5)
    assert (now(), now.stopped) == (105.0, True)
    now.resume()
    real[0] = 151.0
    now.advance(10)
    assert (now(), now.stopped) == (116.0, False)
    now.resume()
