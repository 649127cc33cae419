"""The output of a net inside a net: what is kept of it, and what is the output of the run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Memory, MessagesMemory, Net, SubnetState, react
from agent_brain.memories import RamJournal
from agent_brain.nets import Branch, MapState, ParallelState
from agent_brain.states import AnswerState, StreamItem, TellState
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


class Step(Enum):
    ONE = "one"
    TWO = "two"
    THREE = "three"


class City(BaseModel):
    name: str


def found(*values: Any) -> Net:
    """Return a net whose output is each value in turn."""
    calls = [Action(name="final_result", args={"value": value}) for value in values]
    return react(ScriptedLLM(calls), output_type=City | None)


async def silent(memory: Memory) -> Literal[Step.TWO] | None:
    return None


def without_output() -> Net:
    """Return a net that has an output type and ends without an output."""
    return Net({Step.ONE: silent, Step.TWO: AnswerState(ScriptedLLM([]), output_type=City)})


def tells(text: str, **options: Any) -> TellState:
    return TellState(lambda memory: text, output_type=City, **options)


@pytest.mark.parametrize("fork", [False, True])
async def test_what_another_state_has_made_is_not_kept(fork: bool) -> None:
    inner = SubnetState(without_output(), into="city", fork=fork)
    brain = Brain(Net({Step.ONE: tells('{"name": "Oslo"}', on_done=Step.TWO), Step.TWO: inner}))
    result = await brain.run("Go")
    assert "city" not in brain.memory.control.scratch
    assert result.output == City(name="Oslo")


async def test_what_the_same_net_has_made_before_is_not_kept_again() -> None:
    texts = ['{"name": "Oslo"}', None]
    kept: list[Any] = []

    def keep(memory: Memory, data: Any) -> None:
        kept.append(data)

    async def again(memory: Memory) -> Literal[Step.ONE] | None:
        return Step.ONE if texts else None

    telling = TellState(lambda memory: texts.pop(0), output_type=City)
    deeper = Net({Step.ONE: SubnetState(Net({Step.ONE: telling}))})
    state = SubnetState(deeper, into=keep, on_done=Step.TWO)
    await Brain(Net({Step.ONE: state, Step.TWO: again})).run("Go")
    assert kept == [City(name="Oslo")]


@pytest.mark.parametrize("fork", [False, True, "empty"])
async def test_an_output_of_none_is_kept(fork: Any) -> None:
    seen: list[Any] = []

    async def look(memory: Memory) -> Literal[Step.ONE] | None:
        seen.append(memory.control.scratch["city"])
        return Step.ONE if len(seen) < 2 else None

    state = SubnetState(
        found({"name": "Oslo"}, None) if fork == "empty" else each_turn(),
        fork=fork,
        into="city",
        on_done=Step.TWO,
    )
    await Brain(Net({Step.ONE: state, Step.TWO: look})).run("Go")
    assert seen == [{"name": "Oslo"}, None]


def each_turn() -> Net:
    """Return a net that finds a city, and nothing when it is run again."""
    texts = ['{"name": "Oslo"}', "null"]
    state = TellState(lambda memory: texts.pop(0), output_type=City | None)
    return Net({Step.ONE: state})


async def test_join_gets_an_output_of_none() -> None:
    got: list[Any] = []

    def join(memory: Memory, output: Any) -> str:
        got.append(output)
        return "joined"

    await Brain(Net({Step.ONE: SubnetState(found(None), fork=True, join=join)})).run("Go")
    assert got == [None]


@pytest.mark.parametrize("fork", [False, True, "empty"])
async def test_the_output_of_a_subnet_that_answers_is_that_of_the_run(fork: Any) -> None:
    inner = SubnetState(found({"name": "Oslo"}), fork=fork)
    outer = SubnetState(Net({Step.ONE: inner}), into="city", on_done=Step.TWO)
    brain = Brain(Net({Step.ONE: outer, Step.TWO: silent_end}))
    result = await brain.run("Go")
    assert result.output == City(name="Oslo")
    assert brain.memory.control.scratch["city"] == {"name": "Oslo"}


async def silent_end(memory: Memory) -> None:
    return None


async def test_the_output_of_a_subnet_whose_answer_is_joined_is_not() -> None:
    state = SubnetState(found({"name": "Oslo"}), fork=True, join=lambda memory, city: "joined")
    result = await Brain(Net({Step.ONE: state})).run("Go")
    assert (result.answer, result.output) == ("joined", None)


async def test_branches_say_whether_they_have_made_an_output() -> None:
    told: list[tuple[Any, bool]] = []

    def join(memory: Memory, branches: Sequence[Branch]) -> str:
        told.extend((branch.output, branch.has_output) for branch in branches)
        return "joined"

    await Brain(Net({Step.ONE: ParallelState([found(None), without_output()], join=join)})).run("x")
    assert told == [(None, True), (None, False)]


async def says(memory: Memory) -> AsyncIterator[StreamItem]:
    yield "said"


def in_steps(fork: bool) -> Net:
    """Return a net with a subnet that goes on after it has made its output."""
    inner = Net({Step.ONE: tells('{"name": "Oslo"}', on_done=Step.TWO), Step.TWO: says})
    return Net(
        {
            Step.ONE: tells('{"name": "Rome"}', on_done=Step.TWO),
            Step.TWO: SubnetState(inner, fork=fork, into="city", on_done=Step.THREE),
            Step.THREE: MapState(lambda memory: [memory.control.scratch["city"]], str),
        }
    )


@pytest.mark.parametrize("fork", [False, True])
async def test_a_run_that_is_killed_keeps_the_output_all_the_same(fork: bool) -> None:
    whole = MortalJournal(RamJournal())
    result = await Brain(in_steps(fork), MessagesMemory(journal=whole, session="x")).run("Go")
    assert result.answer == "{'name': 'Oslo'}"
    for at in range(2, whole.writes):
        store = RamJournal()
        mortal = MortalJournal(store, at, after=True)
        with pytest.raises(Killed):
            await Brain(in_steps(fork), MessagesMemory(journal=mortal, session="x")).run("Go")
        brain = Brain(in_steps(fork), MessagesMemory(journal=store, session="x"))
        resumed = await brain.resume()
        assert (at, resumed.answer, resumed.output) == (at, result.answer, result.output)
