"""A run that is killed at any write continues at the same place, subnets included."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agent_brain import (
    Brain,
    LayeredMemory,
    MessagesMemory,
    Net,
    State,
    SubnetState,
    TodoMemory,
    WindowedMemory,
    react,
    tool,
)
from agent_brain.memories import Memory, Message, RamJournal
from agent_brain.nets import Branch, Delegate
from agent_brain.tools import Action
from tests.brain.nets import Say, Steps, single
from tests.nets.models import FunctionLLM
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


@tool(idempotent=True)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Notes(Say):
    """Records its text, and says it."""

    async def run(self, memory: Any) -> AsyncIterator[str]:
        await memory.update([Message.assistant(self.chunks[0])])
        yield self.chunks[0]


class Twice(State):
    """Has one net run twice in one step."""

    def __init__(self, net: Net) -> None:
        self.net = net

    @property
    def subnets(self) -> Any:
        return {"twice": self.net}

    async def run(self, memory: Any) -> AsyncIterator[Any]:
        first, second = Branch("", self.net, memory), Branch("", self.net, memory)
        yield Delegate([first], as_thoughts=True)
        yield Delegate([second])
        assert (first.answer, second.answer) == ("two", "two"), (first.answer, second.answer)

    async def next_state(self, memory: Any) -> None:
        return None

    def targets(self) -> tuple[None]:
        return (None,)


def two_steps() -> Net:
    return Net({Steps.ONE: Notes("one", then=Steps.TWO), Steps.TWO: Notes("two")}, name="inner")


def in_a_row() -> Net:
    """A subnet, then a state, then the subnet again."""
    return Net(
        {
            Steps.ONE: SubnetState(two_steps(), on_done=Steps.TWO),
            Steps.TWO: Notes("between", then=Steps.THREE),
            Steps.THREE: SubnetState(two_steps()),
        }
    )


def nested() -> Net:
    return Net(
        {
            Steps.ONE: SubnetState(in_a_row(), on_done=Steps.TWO),
            Steps.TWO: Notes("last"),
        }
    )


def reply(call: Any) -> Any:
    if call.messages[-1].role == "user":
        return Action(name="add", args={"a": 1, "b": 1})
    return "It is 2."


def thinking() -> Net:
    return Net(
        {
            Steps.ONE: SubnetState(react(FunctionLLM(reply)), on_done=Steps.TWO),
            Steps.TWO: Notes("said"),
        }
    )


NETS: dict[str, Callable[[], Net]] = {
    "in a row": in_a_row,
    "nested": nested,
    "twice in a step": lambda: single(Twice(two_steps())),
    "react inside": thinking,
}


def layered(journal: Any) -> LayeredMemory:
    short = WindowedMemory([add], journal=journal, max_messages=3)
    return LayeredMemory(short, MessagesMemory(journal=journal, session="long"))


MEMORIES: dict[str, Callable[[Any], Memory]] = {
    "messages": lambda journal: MessagesMemory([add], journal=journal),
    "todo": lambda journal: TodoMemory(MessagesMemory([add], journal=journal)),
    "layered": layered,
}


async def story(
    net: Net, make: Callable[[Any], Memory], journal: Any, kills: list[int]
) -> tuple[list[str], Any]:
    """Run, die at each of ``kills`` (appends since the last death), resume; what was recorded."""
    first = True
    for appends in [*kills, None]:
        brain = Brain(net, make(MortalJournal(journal, appends, after=True)))
        try:
            if first and await journal.last(await _key(journal)) == 0:
                result = await brain.run("go")
            else:
                result = await brain.resume()
        except Killed:
            first = False
            continue
        break
    memory: Any = make(journal)
    return [m.content for m in await memory.messages()], result


async def _key(journal: Any) -> str:
    return (await journal.sessions() or ["none"])[0]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_kill_after_each_write_leaves_the_same_messages_and_the_same_answer(
    name: str, memory: str
) -> None:
    make = MEMORIES[memory]
    wanted, result = await story(NETS[name](), make, RamJournal(), [])
    counting = MortalJournal(RamJournal())
    await Brain(NETS[name](), make(counting)).run("go")
    for appends in range(1, counting.writes + 1):
        told, after = await story(NETS[name](), make, RamJournal(), [appends])
        assert told == wanted, f"after {appends} appends"
        assert (after.answer, after.stop_reason) == (result.answer, "done"), appends
    told, after = await story(NETS[name](), make, RamJournal(), [1] * counting.writes)
    assert (after.answer, after.stop_reason) == (result.answer, "done")
