"""A start that fails leaves a run that was killed inside a step as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

import pytest

from agent_brain import Brain, Memory, Message, MessagesMemory, Net, ResumeError, State, tool
from agent_brain.memories import RamJournal, session_key
from agent_brain.nets import ParallelState
from agent_brain.states import StreamItem
from agent_brain.states.tool_round import ToolRound
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


class One(Enum):
    PAY = "pay"


class Another(Enum):
    ELSE = "else"


class Pay(State):
    """Says something and pays, in one step."""

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        call = Action(name="pay", args={})
        said = [Message.assistant("Paying."), Message.assistant("", tool_calls=[call])]
        await memory.update(said)
        memory.control.request_calls([call])
        yield ToolRound(memory, "Pay")

    async def next_state(self, memory: Memory) -> None:
        return None


PAYING = Net({One.PAY: Pay()})


class Shop:
    """A payment, and a run that is killed in it the first time."""

    def __init__(self) -> None:
        self.store = RamJournal()
        self.paid = 0
        journal = MortalJournal(self.store)

        @tool
        def pay() -> str:
            """Pay."""
            self.paid += 1
            if self.paid == 1:
                journal.die()
                raise Killed
            return "paid"

        self.journal, self.tools = journal, [pay]

    async def killed(self, net: Net = PAYING) -> MessagesMemory:
        with pytest.raises(Killed):
            await Brain(net, MessagesMemory(self.tools, journal=self.journal)).run("go")
        memory = MessagesMemory(self.tools, journal=self.store)
        await memory.open()
        return memory

    async def entries(self) -> list[Any]:
        found = await self.store.read(session_key("default"), history=True)
        return [(entry.seq, entry.kind, entry.data) for entry in found]


WRONG: dict[str, tuple[Net, dict[str, Any]]] = {
    "another net": (Net({Another.ELSE: Pay()}), {}),
    "decisions": (PAYING, {"approve": True}),
}


@pytest.mark.parametrize(("net", "options"), WRONG.values(), ids=WRONG)
async def test_a_refused_resume_changes_nothing(net: Net, options: dict[str, Any]) -> None:
    shop = Shop()
    memory = await shop.killed()
    before, said = await shop.entries(), await memory.messages()
    with pytest.raises(ResumeError):
        await Brain(net, memory, dry_run=True).resume(**options)
    assert await shop.entries() == before
    assert await memory.messages() == said
    assert not memory.control.dry_run
    assert (await Brain(PAYING, memory).resume()).stop_reason == "done"


async def test_a_start_that_fails_leaves_a_memory_without_dry_runs() -> None:
    class Broken(MessagesMemory):
        async def set_goal(self, goal: str | Message) -> None:
            raise OSError("the disk is full")

    memory = Broken()
    with pytest.raises(OSError, match="full"):
        await Brain("react", memory, llm=ScriptedLLM(["yes"]), dry_run=True).run("go")
    assert not memory.control.dry_run


@pytest.mark.parametrize("branches", [0, 2])
async def test_a_killed_run_that_is_resumed_as_a_dry_run_calls_no_tools(branches: int) -> None:
    net = Net({Another.ELSE: ParallelState([PAYING] * branches)}) if branches else PAYING
    shop = Shop()
    memory = await shop.killed(net)
    before = shop.paid
    await Brain(net, memory, dry_run=True).resume()
    assert shop.paid == before
