"""Leaving early, cancelling and running out of time stop at once and leave a usable memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, MessagesMemory, State, StopReason, react, tool
from agent_brain.errors import MemoryBusyError
from agent_brain.memories import Role
from agent_brain.states import ActionRequested, RunStarted, StateEntered, TextDelta
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Hang, HangingLLM, Say, Steps, single
from tests.support.clock import fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Tools:
    """A tool that returns at once and one that never does, and what they saw."""

    def __init__(self) -> None:
        self.running = anyio.Event()
        self.stopped = 0

        @tool
        async def quick() -> str:
            """Return at once."""
            return "quick result"

        @tool
        async def slow() -> str:
            """Never return."""
            self.running.set()
            try:
                await anyio.sleep_forever()
            finally:
                self.stopped += 1
            return "never"

        self.both = [quick, slow]


def asking_brain(tools: Tools, **options: Any) -> Brain:
    actions = [Action(name="quick"), Action(name="slow"), Action(name="quick")]
    return Brain(react(ScriptedLLM([actions, "never said"])), tools=tools.both, **options)


async def no_call_is_open(memory: Memory) -> bool:
    messages = await memory.context()
    asked = [call.id for message in messages for call in message.tool_calls]
    return asked == [message.tool_call_id for message in messages if message.role is Role.TOOL]


async def test_cancelling_stops_a_running_tool_and_keeps_what_had_finished() -> None:
    tools = Tools()
    brain = asking_brain(tools)
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "go")
        await tools.running.wait()
        group.cancel_scope.cancel()
    assert tools.stopped == 1
    assert await no_call_is_open(brain.memory)
    results = [m for m in await brain.memory.dump() if m.role is Role.TOOL]
    assert [(m.content, m.is_error) for m in results[::2]] == [("quick result", False)] * 2
    assert results[1].is_error
    assert "interrupted while it was running" in results[1].content


async def test_a_timeout_stops_a_running_tool() -> None:
    tools = Tools()
    brain = asking_brain(tools, limits=Limits(timeout=0.02))
    with fake_clock():
        result = await brain.run("go")
    assert (result.stop_reason, tools.stopped) == (StopReason.TIMEOUT, 1)
    assert await no_call_is_open(brain.memory)


async def test_cancelling_closes_a_running_model_call_and_keeps_what_it_said() -> None:
    llm = HangingLLM()
    brain = Brain(react(llm))
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "go")
        await llm.waiting.wait()
        group.cancel_scope.cancel()
    assert llm.closed == 1
    assert [message.content for message in await brain.memory.dump()] == ["word"]


async def test_a_timeout_closes_a_running_model_call() -> None:
    llm = HangingLLM()
    with fake_clock():
        result = await Brain(react(llm), limits=Limits(timeout=0.02)).run("go")
    assert (llm.closed, result.stop_reason, result.answer) == (1, StopReason.TIMEOUT, "word")


async def test_leaving_a_stream_early_closes_the_model_call_before_the_next_line() -> None:
    llm = HangingLLM()
    brain = Brain(react(llm))
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    assert llm.closed == 1
    assert run.result.stop_reason is StopReason.CANCELLED
    assert not brain.memory.busy


async def test_leaving_after_calls_were_asked_for_answers_them() -> None:
    brain = asking_brain(Tools())
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, StateEntered) and event.state == "ACTION":
                break
    assert await no_call_is_open(brain.memory)
    assert "cancelled" in (await brain.memory.dump())[-1].content


async def test_leaving_while_calls_are_requested_leaves_nothing_behind() -> None:
    brain = asking_brain(Tools())
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, ActionRequested):
                break
    assert await brain.memory.dump() == []


async def test_closing_an_answer_early_ends_the_run() -> None:
    llm = HangingLLM()
    brain = Brain(react(llm))
    chunks = brain.answer("go")
    assert await anext(chunks) == "word"
    await chunks.aclose()
    assert (llm.closed, brain.memory.busy) == (1, False)


async def test_a_stream_that_is_never_read_does_nothing() -> None:
    brain = Brain(single(Say("x")))
    async with brain.stream("go"):
        pass
    assert await brain.memory.context() == []


async def test_on_exit_may_await_although_the_run_is_cancelled() -> None:
    noted: list[str] = []
    with fake_clock():
        result = await Brain(single(Hang(noted)), limits=Limits(timeout=0.02)).run("go")
    assert (result.stop_reason, noted) == (StopReason.TIMEOUT, ["left", "exited"])


async def test_a_consumer_that_takes_its_time_is_not_cancelled_by_the_limit() -> None:
    brain = Brain(single(Say("a", "b")), limits=Limits(timeout=0.01))
    seen = []
    with fake_clock():
        async with brain.stream("go") as run:
            async for event in run:
                seen.append(event.kind)
                if isinstance(event, RunStarted):
                    with anyio.move_on_after(0.02) as own:
                        await anyio.sleep_forever()
                    assert own.cancelled_caught
    assert seen == ["run_started", "run_finished"]
    assert run.result.stop_reason is StopReason.TIMEOUT


async def test_a_cancel_from_outside_wins_over_a_timeout_that_has_not_come() -> None:
    brain = Brain(single(Hang([])), limits=Limits(timeout=60))
    with fake_clock(), anyio.move_on_after(0.02) as outside:
        await brain.run("go")
    assert outside.cancelled_caught
    assert brain.memory.control.stop_reason == "cancelled"


class Stubborn(State):
    """Swallows its cancellation once, as careless code does."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "begun"
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep_forever()
        await anyio.sleep_forever()

    async def next_state(self, memory: Memory) -> Steps | None:
        return None


async def test_a_scope_inside_a_state_does_not_confuse_the_limit() -> None:
    with fake_clock():
        result = await Brain(single(Stubborn()), limits=Limits(timeout=0.02)).run("go")
    assert result.stop_reason is StopReason.TIMEOUT


async def test_two_runs_on_one_memory_are_refused() -> None:
    memory = MessagesMemory()
    brains = [Brain(single(Say("x")), memory) for _ in range(2)]
    async with brains[0].stream("go") as run:
        async for _ in run:
            with pytest.raises(MemoryBusyError, match="memory of its own"):
                await brains[1].run("go too")
    assert (await brains[1].run("go now")).answer == "x"
    assert [m.content for m in await memory.context()] == ["go", "go now"]


@pytest.mark.parametrize(
    "leave", [lambda run: run.aclose(), lambda run: run.__aexit__(None, None, None)]
)
async def test_closing_is_idempotent(leave: Callable[[Any], Any]) -> None:
    run = Brain(single(Say("x"))).stream("go")
    async for _ in run:
        break
    await leave(run)
    await leave(run)
