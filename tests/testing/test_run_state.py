"""Running one state alone, by the rules of a net."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain.memories import Memory
from agent_brain.states import (
    Event,
    State,
    StateDefinitionError,
    StateMutationError,
    TextDelta,
    Thought,
    Usage,
    UsageReported,
)
from agent_brain.testing import FakeMemory, run_state

pytestmark = pytest.mark.anyio


class N(Enum):
    A = 1


class Noting(State):
    """Notes what is done to it in the memory's scratch."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def note(self, memory: Memory, what: str) -> None:
        memory.control.scratch.setdefault("notes", []).append(what)

    async def on_enter(self, memory: Memory) -> None:
        self.note(memory, "enter")

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        self.note(memory, "run")
        for item in self.items:
            if isinstance(item, BaseException):
                raise item
            yield item

    async def on_exit(self, memory: Memory) -> None:
        self.note(memory, "exit")

    async def next_state(self, memory: Memory) -> Enum | None:
        self.note(memory, "next")
        return N.A


def notes(memory: Memory) -> object:
    return memory.control.scratch["notes"]


async def test_a_state_is_entered_run_exited_and_proposes_the_next():
    memory = FakeMemory()
    done = await run_state(Noting(), memory)

    assert notes(memory) == ["enter", "run", "exit", "next"]
    assert done.next_state is N.A
    assert done.memory is memory


async def test_text_thoughts_and_events_are_separated():
    event = TextDelta("c", thought=True)
    done = await run_state(Noting("a", Thought("b"), event, TextDelta("d")), FakeMemory())

    assert done.chunks == ["a", "d"]
    assert done.thoughts == ["b", "c"]
    assert done.events == [event, TextDelta("d")]
    assert done.text == "ad"
    assert done.of(TextDelta) == done.events


async def test_the_finish_reason_is_that_of_the_last_model_call():
    calls = [UsageReported(Usage(), finish_reason=reason) for reason in ("tool_calls", "length")]

    assert (await run_state(Noting(*calls), FakeMemory())).finish_reason == "length"
    assert (await run_state(Noting("a"), FakeMemory())).finish_reason is None


async def test_on_exit_is_called_when_run_raised_and_the_error_propagates():
    memory = FakeMemory()

    with pytest.raises(OSError, match="gone"):
        await run_state(Noting("a", OSError("gone")), memory)
    assert notes(memory) == ["enter", "run", "exit"]


async def test_on_exit_is_called_when_on_enter_raised():
    class Closed(Noting):
        async def on_enter(self, memory: Memory) -> None:
            raise OSError("closed")

    memory = FakeMemory()
    with pytest.raises(OSError, match="closed"):
        await run_state(Closed(), memory)
    assert notes(memory) == ["exit"]


async def test_assigning_to_itself_raises_as_in_a_net():
    class Selfish(Noting):
        async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
            self.count = 1
            yield ""

    with pytest.raises(StateMutationError, match=r"Selfish\.count"):
        await run_state(Selfish(), FakeMemory())


@pytest.mark.parametrize("item", [5, None, {"type": "text"}])
async def test_yielding_anything_else_raises(item):
    with pytest.raises(TypeError, match=r"yield text, an event .*, or work"):
        await run_state(Noting(item), FakeMemory())


async def test_the_generator_is_closed_when_the_caller_is_cancelled():
    closed = []
    waiting = anyio.Event()

    class Waiting(Noting):
        async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
            try:
                yield "a"
                waiting.set()
                await anyio.sleep_forever()
            finally:
                closed.append(True)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run_state, Waiting(), FakeMemory())
            await waiting.wait()
            group.cancel_scope.cancel()

    assert closed == [True]


async def test_a_function_runs_as_the_state_that_it_is_in_a_net() -> None:
    async def greet(memory: Memory) -> str:
        return f"Hello, {(await memory.goal())[-1].content}!"

    done = await run_state(greet, FakeMemory("Ann"))
    assert (done.text, done.next_state) == ("Hello, Ann!", None)


@pytest.mark.parametrize("wrong", ["Greet", Memory, lambda memory: "Hello"])
async def test_what_is_no_state_is_refused(wrong: Any) -> None:
    with pytest.raises(StateDefinitionError, match="pass a state, or an async function"):
        await run_state(wrong, FakeMemory("Ann"))
