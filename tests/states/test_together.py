"""Concurrent work: results in order, reported events are kept, the rest is cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agent_brain.common.aio import maybe_await
from agent_brain.memories import Message
from agent_brain.states import TextDelta, TextRequest, Together, UsageReported
from agent_brain.states.concurrency import Report
from agent_brain.testing import ScriptedLLM

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


async def outcome(together: Together[Any]) -> list[Any]:
    return [event async for event in together.events()]


async def test_results_come_in_the_order_of_the_work_however_it_ends() -> None:
    turns = [anyio.Event() for _ in range(4)]
    turns[3].set()

    def work(number: int) -> Any:
        async def wait(report: Report) -> int:
            await turns[number + 1].wait()
            report(f"{number} ")
            turns[number].set()
            return number

        return wait

    together: Together[int] = Together([work(number) for number in range(3)])
    with anyio.fail_after(60):
        assert await outcome(together) == ["2 ", "1 ", "0 "]
    assert together.results == [0, 1, 2]


async def test_a_failure_cancels_the_rest_and_what_was_reported_streams_before_it_raises() -> None:
    done = anyio.Event()
    left: list[str] = []

    async def ends(report: Report) -> None:
        report("cost")
        done.set()

    async def fails(report: Report) -> None:
        await done.wait()
        raise KeyError("a bug")

    async def hangs(report: Report) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            left.append("left")

    seen: list[Any] = []
    together: Together[None] = Together([ends, hangs, fails])

    async def listen() -> None:
        async for event in together.events():
            seen.append(event)

    with anyio.fail_after(60):
        with pytest.raises(KeyError, match="a bug"):
            await listen()
    assert (seen, left, together.results) == (["cost"], ["left"], [])


async def test_nothing_to_do_is_done() -> None:
    together: Together[Any] = Together([])
    assert await outcome(together) == []
    assert together.results == []


async def test_a_request_as_thoughts_reports_what_it_would_stream() -> None:
    question = TextRequest(ScriptedLLM(["", ["four"]]), [Message.user("2 + 2?")], as_thoughts=True)
    together: Together[str] = Together([question])
    reported = await outcome(together)
    assert together.results == ["four"]
    assert [event.text for event in reported if isinstance(event, TextDelta)] == ["four"]
    assert all(event.thought for event in reported if isinstance(event, TextDelta))
    assert sum(isinstance(event, UsageReported) for event in reported) == 2


async def test_functions_may_be_sync_or_async() -> None:
    async def later(values: Sequence[int]) -> int:
        return sum(values)

    at_once: int = await maybe_await(3)
    in_time: int = await maybe_await(later([1, 2]))
    assert (at_once, in_time) == (3, 3)
