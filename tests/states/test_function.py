"""FunctionState: which functions it takes, and how its next state is chosen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from enum import Enum
from typing import Any

import pytest

from agent_brain import Brain, Memory, Message, Net
from agent_brain.errors import NetDefinitionError, StateDefinitionError
from agent_brain.states import FunctionState

pytestmark = pytest.mark.anyio


class Step(Enum):
    SORT = "sort"
    PRICE = "price"
    OTHER = "other"


async def text(memory: Memory) -> str:
    return "text"


async def no_memory() -> str:
    return "text"


async def too_many(memory: Memory, more: int) -> str:
    return "text"


def choose(memory: Memory) -> Step:
    return Step.PRICE


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda memory: "text", "write it as async def"),
        (no_memory, r"write it as async def f\(memory\)"),
        (too_many, r"write it as async def f\(memory\)"),
    ],
    ids=["sync", "no memory", "two arguments"],
)
def test_other_functions_are_refused_with_what_to_write(
    function: Callable[..., Any], problem: str
) -> None:
    with pytest.raises(StateDefinitionError, match=problem):
        FunctionState(function)


async def test_choose_decides_between_the_edges_of_the_net() -> None:
    async def price(memory: Memory) -> AsyncIterator[str]:
        yield "4 euros"

    states = {
        Step.SORT: FunctionState(text, choose=choose),
        Step.PRICE: FunctionState(price),
        Step.OTHER: FunctionState(text),
    }
    net = Net(states, transitions={Step.SORT: [Step.PRICE, Step.OTHER]})
    assert (await Brain(net).run("How much?")).answer == "4 euros"


def test_an_edge_without_on_done_or_choose_is_refused_with_both_names() -> None:
    states = {Step.SORT: FunctionState(text), Step.PRICE: FunctionState(text)}
    with pytest.raises(NetDefinitionError, match=r"on_done= or choose="):
        Net(states, transitions={Step.SORT: Step.PRICE})


@pytest.mark.parametrize("itself", [False, True], ids=["returned", "recorded by the function"])
async def test_returned_text_is_recorded_once(itself: bool) -> None:
    async def reply(memory: Memory) -> str:
        if itself:
            await memory.update([Message.assistant("4 euros")])
        return "4 euros"

    brain = Brain(Net({Step.PRICE: FunctionState(reply)}))
    for _ in range(2):
        result = await brain.run("How much?")
        assert [message.content for message in result.messages] == ["How much?", "4 euros"]


async def test_yielded_text_is_left_to_the_function_to_record() -> None:
    async def reply(memory: Memory) -> AsyncIterator[str]:
        yield "4 euros"

    result = await Brain(Net({Step.PRICE: FunctionState(reply)})).run("How much?")
    assert (result.answer, len(result.messages)) == ("4 euros", 1)
