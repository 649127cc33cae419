"""A run that dies and is resumed, over any journal, net and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias

from agent_brain import Brain, Replay, tool
from agent_brain.memories import (
    AutoMemory,
    DurableMemory,
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
from agent_brain.memories.views.summary_writer import outline
from agent_brain.nets import create_net
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.memories.durable.own import ListMemory, NotedMemory
from tests.nets.models import FunctionLLM
from tests.nets.test_nets_by_memories import FILLED
from tests.support.journals import Killed, MortalJournal

OpenJournal: TypeAlias = Callable[[], AbstractAsyncContextManager[Journal]]
GOAL = "What is 2 + 2?"


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
    if name == "auto":
        return AutoMemory(journal=journal, max_tokens=200, summarize=outline)
    if name == "own":
        return DurableMemory(ListMemory, journal=journal)
    if name == "own with state":
        return DurableMemory(NotedMemory, journal=journal)
    if name == "vector":
        return VectorMemory(journal=journal, path=folder)
    return LayeredMemory(
        WindowedMemory(journal=journal, max_messages=6),
        MessagesMemory(journal=journal, session="long"),
    )


def in_ram() -> OpenJournal:
    """One journal in RAM, which outlives each death."""
    store = RamJournal()
    return lambda: nullcontext(store)


class Life:
    """One run, through any number of deaths.

    Args:
        net: The name of its net.
        memory: The name of its memory.
        folder: For the vectors of a memory.
        journal: Opens the journal, for each life anew.
        trace: Whether model calls are recorded.
    """

    def __init__(
        self,
        net: str,
        memory: str,
        folder: Path,
        journal: OpenJournal | None = None,
        *,
        trace: bool = False,
    ) -> None:
        self.trace = trace
        self.net, self.memory, self.folder = net, memory, folder
        self.open = journal or in_ram()
        self.effects = Effects()
        self.writes = 0
        self.models_saw: set[str] = set()
        self.result: Any = None

    async def live(self, writes: int | None = None, *, after: bool = True) -> bool:
        """Begin or resume; True if the run came to its end, False if it was killed before.

        Args:
            writes: The number of the write that it is killed at.
            after: Whether that write has been done.
        """
        llm = FunctionLLM(clever)
        async with self.open() as store:
            journal = MortalJournal(store, writes, after=after)
            try:
                async with make(self.memory, journal, self.folder) as memory:
                    brain = self._brain(llm, memory)
                    began = memory.control.run_id is not None
                    self.result = await (brain.resume() if began else brain.run(GOAL))
            except Killed:
                return False
            finally:
                self.writes += journal.writes
                self.models_saw |= {m.content for call in llm.calls for m in call.messages}
        return True

    def _brain(self, llm: FunctionLLM, memory: Memory) -> Brain[Any]:
        return Brain(create_net(self.net, llm), memory, self.effects.tools, trace=self.trace)

    async def replay(self) -> Replay:
        """Replay the run."""
        async with self.open() as store, make(self.memory, store, self.folder) as memory:
            return await self._brain(FunctionLLM(clever), memory).replay()

    async def told(self) -> list[tuple[str, str]]:
        """What the memory holds in the end: roles and contents."""
        async with self.open() as store, make(self.memory, store, self.folder) as memory:
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
        async with self.open() as store:
            assert not [key for key in await store.sessions() if is_branch(key)]
