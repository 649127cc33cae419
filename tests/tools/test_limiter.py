"""Limits on the concurrency and the rate of calls."""

from __future__ import annotations

import threading
import time

import anyio
import pytest
from anyio.lowlevel import current_token

from agent_brain.tools import Action, ToolDefinitionError, call_tool, tool
from agent_brain.tools.limiter import Limiter, read_rate

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@pytest.mark.parametrize(
    "rate, means",
    [
        ("10/min", (10, 60)),
        ("3/10s", (3, 10)),
        ("5 per second", (5, 1)),
        ("100/hour", (100, 3600)),
        ("1/day", (1, 86_400)),
        ((2, 0.5), (2, 0.5)),
    ],
)
def test_rates(rate, means):
    assert read_rate(rate) == means


@pytest.mark.parametrize(
    "options, why",
    [
        ({"rate": "often"}, "rate='often' is not a rate"),
        ({"rate": (0, 1)}, "at least one call"),
        ({"rate": (1, 0)}, "at least one call"),
        ({"rate": 3}, "."),
        ({"max_concurrency": 0}, "max_concurrency=0: it must be a whole number of at least 1"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, why):
    with pytest.raises(ToolDefinitionError, match=why):
        tool(**options)(lambda: 1)


def test_in_no_span_do_more_calls_begin_than_allowed():
    limiter = Limiter(rate=(2, 10))
    assert [limiter.reserve(now).moment for now in (0, 1, 2, 3, 4)] == [0, 1, 10, 11, 20]
    assert limiter.reserve(100).moment == 100


def test_in_no_span_is_more_used_than_allowed():
    limiter = Limiter(rate=(100, 10))
    turns = [limiter.reserve(now, amount) for now, amount in [(0, 60), (1, 30), (2, 30), (3, 500)]]
    assert [turn.moment for turn in turns] == [0, 1, 10, 20]
    assert limiter.reserve(21, 1).moment == 30, "more than the rate takes all of it"


def test_what_was_used_is_corrected():
    limiter = Limiter(rate=(100, 10))
    first = limiter.reserve(0, 60)
    limiter.correct(first, 90)
    assert limiter.reserve(1, 20).moment == 10
    limiter.correct(first, 500)  # over by then
    second = limiter.reserve(11, 70)
    limiter.correct(second, 5)
    assert limiter.reserve(12, 70).moment == 12


async def test_a_rate_makes_calls_wait():
    @tool(rate=(2, 0.02))
    async def tick() -> float:
        """Tell the time."""
        return time.monotonic()

    begun: list[float] = []
    start = time.monotonic()

    async def call() -> None:
        begun.append(float((await call_tool(Action(name="tick"), {"tick": tick})).content))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(call)
    begun.sort()
    assert [moment - start >= 0.019 * (n // 2) for n, moment in enumerate(begun)] == [True] * 5


async def test_calls_beyond_the_limit_wait_in_order():
    running, most, order = 0, 0, []
    gate = anyio.Event()

    @tool(max_concurrency=2)
    async def work(n: int) -> None:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(n)
        await gate.wait()
        running -= 1

    async with anyio.create_task_group() as group:
        for n in range(6):
            group.start_soon(call_tool, Action(name="work", args={"n": n}), {"work": work})
            await anyio.wait_all_tasks_blocked()
        assert order == [0, 1]
        gate.set()
    assert most == 2
    assert [set(order[2:4]), set(order[4:])] == [{2, 3}, {4, 5}]


async def test_a_cancelled_call_that_waits_takes_no_place():
    limiter = Limiter(1)
    done = []

    async def wait() -> None:
        async with limiter:
            done.append(1)

    async with limiter, anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    async with limiter:
        pass
    assert done == []


async def test_a_call_that_is_cancelled_just_when_it_gets_its_place_gives_it_back():
    limiter = Limiter(1)
    async with anyio.create_task_group() as group:
        async with limiter:
            group.start_soon(_hold, limiter)
            await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    with anyio.fail_after(60):
        async with limiter:
            pass


async def _hold(limiter: Limiter) -> None:
    async with limiter:
        await anyio.sleep_forever()


async def test_a_slot_is_released_when_waiting_for_the_rate_is_cancelled():
    limiter = Limiter(1, (1, 100))
    async with limiter:
        pass
    with anyio.move_on_after(0.01):
        async with limiter:
            raise AssertionError("it began too early")
    assert limiter._free == 1


async def test_waiting_for_a_turn_is_not_counted_as_the_tools_time():
    gate = anyio.Event()

    @tool(max_concurrency=1, timeout=60)
    async def work(first: bool) -> str:
        """Work."""
        if first:
            await gate.wait()
        return "done"

    results = []

    async def call(first: bool) -> None:
        results.append(await call_tool(Action(name="work", args={"first": first}), {"work": work}))

    async with anyio.create_task_group() as group:
        group.start_soon(call, True)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(call, False)
        await anyio.wait_all_tasks_blocked()
        gate.set()
    assert [result.content for result in results] == ["done", "done"]


@pytest.mark.parametrize("backends", [("asyncio", "trio"), ("trio", "asyncio")])
def test_several_event_loops_share_a_limit(backends):
    limiter = Limiter(1)
    held, release, order = threading.Event(), threading.Event(), []

    async def first() -> None:
        async with limiter:
            held.set()
            await anyio.to_thread.run_sync(release.wait)
            order.append("first")

    async def second() -> None:
        async def go() -> None:
            async with limiter:
                order.append("second")

        async with anyio.create_task_group() as group:
            group.start_soon(go)
            await anyio.wait_all_tasks_blocked()
            release.set()

    thread = threading.Thread(target=anyio.run, args=(first,), kwargs={"backend": backends[0]})
    thread.start()
    held.wait(60)
    anyio.run(second, backend=backends[1])
    thread.join(60)
    assert order == ["first", "second"]


def test_a_closed_loop_is_ignored():
    limiter = Limiter(1)

    async def take() -> None:
        await limiter.__aenter__()

    async def leave_a_waiter() -> None:

        limiter._waiting.append((current_token(), anyio.Event()))

    async def give() -> None:
        await limiter.__aexit__(None, None, None)
        async with limiter:
            pass

    for backend in ("asyncio", "trio"):
        anyio.run(take)
        anyio.run(leave_a_waiter, backend=backend)
        anyio.run(give)


async def test_calls_that_are_cancelled_before_their_turn_give_it_back() -> None:
    limiter = Limiter(rate=(2, 1000.0))
    now = time.monotonic()
    for _ in range(2):
        await limiter.take_turn()

    async def impatient() -> None:
        with anyio.move_on_after(0.01):
            await limiter.take_turn()

    async with anyio.create_task_group() as calls:
        for _ in range(10):
            calls.start_soon(impatient)

    assert 1000 <= limiter.reserve(time.monotonic()).moment - now < 1010


async def test_a_turn_that_is_given_back_overtakes_nobody() -> None:
    limiter = Limiter(rate=(1, 1000.0))
    first = limiter.reserve(time.monotonic())
    with anyio.move_on_after(0):
        await limiter.take_turn()
    patient = limiter.reserve(time.monotonic())
    with anyio.move_on_after(0):
        await limiter.take_turn()

    assert patient.moment >= first.moment + 1000
    assert limiter.reserve(time.monotonic()).moment >= patient.moment + 1000
