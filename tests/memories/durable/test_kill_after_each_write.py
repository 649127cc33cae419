"""Every net over every journaled memory, killed after each write: it continues as if it were not."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, tool
from agent_brain.memories import (
    Journal,
    LayeredMemory,
    Memory,
    MessagesMemory,
    RamJournal,
    Role,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
)
from agent_brain.memories.store.session import is_branch
from agent_brain.nets import create_net, net_names
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM
from tests.nets.test_nets_by_memories import FILLED
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

GOAL = "What is 2 + 2?"
MEMORIES = ["messages", "windowed", "summary", "layered", "todo", "vector"]


class Effects:
    """Two tools that note what they did: one that may be repeated, one that may not."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()

        @tool(idempotent=True)
        async def look(n: int) -> str:
            """Look something up."""
            self.done[f"look {n}"] += 1
            return f"seen {n}"

        @tool
        async def pay(n: int) -> str:
            """Pay, once."""
            self.done[f"pay {n}"] += 1
            return f"paid {n}"

        self.tools = [look, pay]


def clever(call: ModelCall) -> Any:
    """Calls each tool once in a context without results, then knows; fills every shape."""
    if call.output_type is not None:
        return FILLED[call.output_type]
    if call.tools and not any(m.role is Role.TOOL for m in call.messages):
        return [
            "Let me see.",
            Action(name="look", args={"n": 1}, id="look-1"),
            Action(name="pay", args={"n": 1}, id="pay-1"),
        ]
    return "It is 4."


def make(name: str, journal: Journal, folder: Path) -> Memory:
    if name == "messages":
        return MessagesMemory(journal=journal)
    if name == "windowed":
        return WindowedMemory(journal=journal, max_messages=8)
    if name == "summary":
        return SummaryMemory(journal=journal, max_messages=8)
    if name == "todo":
        return TodoMemory(MessagesMemory(journal=journal))
    if name == "vector":
        return VectorMemory(journal=journal, path=folder)
    return LayeredMemory(
        WindowedMemory(journal=journal, max_messages=6),
        MessagesMemory(journal=journal, session="long"),
    )


class Life:
    """One run, through any number of deaths."""

    def __init__(self, net: str, memory: str, folder: Path) -> None:
        self.net, self.memory, self.folder = net, memory, folder
        self.store = RamJournal()
        self.effects = Effects()
        self.writes = 0
        self.models_saw: set[str] = set()
        self.result: Any = None

    async def live(self, writes: int | None = None) -> bool:
        """Begin or resume; True if the run came to its end, False if it was killed before."""
        journal = MortalJournal(self.store, writes, after=True)
        llm = FunctionLLM(clever)
        try:
            async with make(self.memory, journal, self.folder) as memory:
                brain = Brain(create_net(self.net, llm), memory, self.effects.tools)
                began = memory.control.run_id is not None
                self.result = await (brain.resume() if began else brain.run(GOAL))
        except Killed:
            return False
        finally:
            self.writes += journal.writes
            self.models_saw |= {m.content for call in llm.calls for m in call.messages}
        return True

    async def told(self) -> list[tuple[str, str]]:
        """What the memory holds in the end: roles and contents."""
        async with make(self.memory, self.store, self.folder) as memory:
            messages = await memory.goal() + await memory.dump()
        return [(m.role.value, m.content) for m in messages]

    async def check_against(self, whole: Life, wanted: list[tuple[str, str]]) -> None:
        """Compare with a run that was never killed."""
        assert self.result.stop_reason == "done"
        assert self.result.answer == whole.result.answer
        told = await self.told()
        assert len(told) == len(wanted)
        for (role, content), (wanted_role, wanted_content) in zip(told, wanted, strict=True):
            assert role == wanted_role
            if "may or may not have taken effect" not in content:
                assert content == wanted_content
        paid, wanted_paid = self.effects.done["pay 1"], whole.effects.done["pay 1"]
        assert paid <= wanted_paid
        if paid < wanted_paid and self.memory != "summary":  # which may have compacted the result
            seen = {content for _, content in told} | self.models_saw
            assert any("may or may not have taken effect" in content for content in seen)
        assert not [key for key in await self.store.sessions() if is_branch(key)]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("net", net_names())
async def test_a_kill_after_each_write_changes_nothing(
    net: str, memory: str, tmp_path: Path
) -> None:
    whole = Life(net, memory, tmp_path / "whole")
    assert await whole.live()
    wanted = await whole.told()
    for write in range(1, whole.writes + 1):
        life = Life(net, memory, tmp_path / str(write))
        ended = await life.live(write)
        if not ended:
            assert await life.live(), write
        await life.check_against(whole, wanted)


@pytest.mark.parametrize("memory", ["messages", "layered"])
@pytest.mark.parametrize("net", net_names())
async def test_kills_at_random_writes_change_nothing(net: str, memory: str, tmp_path: Path) -> None:
    whole = Life(net, memory, tmp_path / "whole")
    assert await whole.live()
    wanted = await whole.told()
    rng = random.Random(net + memory)
    for number in range(5):
        life = Life(net, memory, tmp_path / str(number))
        while not await life.live(rng.randrange(2, 8)):
            assert life.writes < 1000, "it does not get on"
        await life.check_against(whole, wanted)
