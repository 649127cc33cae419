"""What run_state says about states that are written wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Literal

import pytest

from agent_brain import Memory, Message, State
from agent_brain.errors import (
    MemoryUseError,
    ScratchError,
    StateDefinitionError,
    StateMutationError,
    TransitionError,
)
from agent_brain.testing import FakeMemory, run_state

pytestmark = pytest.mark.anyio


class Shop(Enum):
    GREET = "greet"
    SELL = "sell"


class Right(State):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield "Hello"

    async def next_state(self, memory: Memory) -> Literal[Shop.SELL] | None:
        return Shop.SELL


class AssignsToItself(Right):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        self.greeted = True
        yield "Hello"


class Coroutine(Right):
    async def run(self, memory: Memory) -> Any:  # type: ignore[override]
        return "Hello"


class ReturnsAList(Right):
    def run(self, memory: Memory) -> Any:
        return ["Hello"]


class YieldsNumbers(Right):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield 5


class NextStateIsSync(Right):
    def next_state(self, memory: Memory) -> Any:
        return None


class ProposesAName(Right):
    async def next_state(self, memory: Memory) -> Any:
        return "sell"


class ProposesWhatItDoesNotDeclare(Right):
    async def next_state(self, memory: Memory) -> Literal[Shop.SELL] | None:
        return Shop.GREET  # type: ignore[return-value]


class NeverEndsAsDeclared(Right):
    async def next_state(self, memory: Memory) -> Literal[Shop.SELL]:
        return None  # type: ignore[return-value]


class KeepsAnObject(Right):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield "Hello"
        memory.control.scratch["seen"] = {Shop.SELL}


class RecordsText(Right):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield "Hello"
        await memory.update(["Hello"])  # type: ignore[list-item]


class RecordsOneMessage(Right):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield "Hello"
        await memory.update(Message.assistant("Hello"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "error", "why"),
    [
        (AssignsToItself, StateMutationError, "Store run data in memory.control.scratch"),
        (Coroutine, StateDefinitionError, "Coroutine.run .* with at least one 'yield' in it"),
        (ReturnsAList, TypeError, r"ReturnsAList.run\(\) returned .* list: write it as an async"),
        (YieldsNumbers, TypeError, "yielded 5: yield text, an event .*, or work"),
        (NextStateIsSync, StateDefinitionError, "Write it as 'async def next_state"),
        (ProposesAName, TransitionError, "proposed 'sell', .* members of the Enum of its net"),
        (ProposesWhatItDoesNotDeclare, TransitionError, "Shop.GREET.* may only go to: Shop.SELL"),
        (NeverEndsAsDeclared, TransitionError, "proposed None, but may only go to: Shop.SELL"),
        (KeepsAnObject, ScratchError, "use a sorted list"),
        (RecordsText, MemoryUseError, "'Hello' is not one: create one with Message.user"),
        (RecordsOneMessage, MemoryUseError, r"await memory.update\(\[message\]\)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_wrong_state_fails_with_what_to_do(
    state: type[State], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        await run_state(state(), FakeMemory("Hi"))


async def test_a_right_state_passes() -> None:
    assert (await run_state(Right(), FakeMemory("Hi"))).next_state is Shop.SELL


async def test_a_state_that_is_done_may_propose_the_end() -> None:
    class Done(NeverEndsAsDeclared):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            yield "Bye"
            memory.done = True

    assert (await run_state(Done(), FakeMemory("Hi"))).next_state is None
