"""Branches and nested brains that wait for a person, killed at their writes: nothing is repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Memory, MessagesMemory, react, tool
from agent_brain.memories import Journal, RamJournal, SQLiteJournal
from agent_brain.memories.store.session import is_branch
from agent_brain.nets import MapState, Net, ParallelState
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.memories.durable.life import OpenJournal
from tests.memories.durable.paying import IN_DOUBT, Step
from tests.nets.models import FunctionLLM
from tests.support.journals import Killed, MortalJournal
from tests.support.thorough import thorough

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]


class Life:
    """A run whose person answers one request at a time, in any number of processes.

    Args:
        kind: Its net.
        names: Its branches.
        pauses: Whether the person is asked about calls in doubt, which they then refuse.
        journal: Opens the journal, for each process anew.
    """

    def __init__(
        self, kind: str, names: str, *, pauses: bool = False, journal: OpenJournal | None = None
    ) -> None:
        store = RamJournal()
        self.kind, self.names, self.pauses = kind, names, pauses
        self.open = journal or (lambda: nullcontext(store))
        self.paid: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.writes = 0
        self.result: Any = None
        self.counted = (0, 0)  # steps and calls

        @tool(requires_approval=True)
        async def pay(name: str) -> str:
            """Pay."""
            self.paid[name] += 1
            return f"paid {name}"

        @tool(idempotent=True)
        async def look() -> str:
            """Look."""
            return "seen"

        self.tools = [pay, look]

    def llm(self, name: str) -> FunctionLLM:
        def reply(call: ModelCall) -> Any:
            self.asked[name] += 1
            results = [m.content for m in call.messages if m.role == "tool"]
            if len(results) == 2:
                return f"{name}: {results[-1]}"
            if results:
                return Action(name="pay", args={"name": name}, id=f"pay-{name}")
            return Action(name="look", id=f"look-{name}")

        return FunctionLLM(reply)

    def by_goal(self) -> FunctionLLM:
        def reply(call: ModelCall) -> Any:
            name = [m.content for m in call.messages if m.role == "user"][-1]
            return self.llm(name).reply(call)

        return FunctionLLM(reply)

    def calls(self) -> FunctionLLM:
        """Calls the helper once for each name."""

        def reply(call: ModelCall) -> Any:
            results = [m.content for m in call.messages if m.role == "tool"]
            if results:
                return "; ".join(results)
            return [Action(name="helper", args={"task": n}, id=f"h-{n}") for n in self.names]

        return FunctionLLM(reply)

    def brain(self, memory: Memory) -> Brain:
        options: dict[str, Any] = {"on_uncertain": "pause"} if self.pauses else {}
        branches = Net({Step.ALL: ParallelState({n: react(self.llm(n)) for n in self.names})})
        if self.kind == "parallel":
            return Brain(branches, memory, self.tools, **options)
        if self.kind == "mapped":
            net = Net({Step.ALL: MapState(lambda _: [*self.names], react(self.by_goal()))})
            return Brain(net, memory, self.tools, **options)
        if self.kind == "branch in branch":
            net = Net({Step.ALL: ParallelState({"out": branches})})
            return Brain(net, memory, self.tools, **options)
        inner = Brain(react(self.by_goal()), tools=self.tools)
        if self.kind == "branches in nested":
            inner = Brain(branches, tools=self.tools)
        helper = inner.as_tool("helper", "Help.")
        if self.kind == "nested in branch":
            net = Net({Step.ALL: ParallelState({"out": react(self.calls())})})
            return Brain(net, memory, [*self.tools, helper], **options)
        return Brain(react(self.calls()), memory, [helper], **options)

    def decide(self, memory: Memory) -> dict[str, Any]:
        """Answer the last thing that the run waits for."""
        control = memory.control
        asked = control.human_requests
        if control.status != "waiting" or asked is None:
            return {}
        call_id = asked.approvals[-1]
        if call_id in asked.uncertain:
            self.refused.add(call_id)
            return {"deny": {call_id: "it was paid"}}
        return {"approve": [call_id]}

    @asynccontextmanager
    async def process(self, journal: Journal) -> AsyncIterator[tuple[Brain, Memory]]:
        async with MessagesMemory(journal=journal) as memory:
            yield self.brain(memory), memory

    async def live(self, writes: int | None = None, *, after: bool = True) -> bool:
        """Live to the end, in one process for each answer; True if it was not killed."""
        async with self.open() as store:
            journal = MortalJournal(store, writes, after=after)
            try:
                while self.result is None:
                    async with self.process(journal) as (brain, memory):
                        begun = memory.control.run_id is not None
                        given = self.decide(memory)
                        result = await (brain.resume(**given) if begun else brain.run("go"))
                        self.counted = result.steps, memory.control.spent.tool_calls
                    self.result = None if result.stop_reason in ("approval", "input") else result
            except BaseException as error:
                if not (isinstance(error, Killed) or journal.dead):
                    raise
                return False
            finally:
                self.writes += journal.writes
        return True

    async def check_against(self, whole: Life, at: int) -> None:
        """Compare with a run that was never killed."""
        assert self.result.stop_reason == "done", at
        assert self.counted == whole.counted, at
        for name in self.names:
            assert self.paid[name] <= 1, at
            doubted = IN_DOUBT in self.result.answer
            assert self.paid[name] == 1 or doubted or self.refused, at
            assert self.asked[name] <= whole.asked[name] + 1, at
        if IN_DOUBT not in self.result.answer:
            assert self.result.answer == whole.result.answer, at
        async with self.open() as store:
            assert not [key for key in await store.sessions() if is_branch(key)], at


KINDS = [
    "parallel",
    "mapped",
    "branch in branch",
    "nested",
    "nested in branch",
    "branches in nested",
]


CASES = [
    *((kind, "a", False, 2) for kind in KINDS),
    *thorough((kind, "ab", True, 7) for kind in KINDS[:-1]),
    *thorough([("parallel", "abc", False, 11), ("nested", "abc", False, 11)]),
    ("nested", "a", True, 2),
]


@pytest.mark.parametrize("kind, names, pauses, every", CASES)
async def test_a_kill_after_a_write_changes_nothing(
    kind: str, names: str, pauses: bool, every: int
) -> None:
    whole = Life(kind, names, pauses=pauses)
    assert await whole.live()
    assert whole.paid == Counter(names)
    for write in range(1, whole.writes + 1, every):
        life = Life(kind, names, pauses=pauses)
        if not await life.live(write):
            assert await life.live(), write
        await life.check_against(whole, write)


async def test_a_nested_call_is_counted_once_where_no_write_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its branch has then ended before the other calls of its round are looked at."""
    at_once = SimpleNamespace(Lock=partial(anyio.Lock, fast_acquire=True))
    monkeypatch.setattr("agent_brain.memories.store.lock.anyio", at_once)
    whole = Life("nested", "a", pauses=False)
    assert await whole.live()
    for write in range(1, whole.writes + 1):
        life = Life("nested", "a", pauses=False)
        if not await life.live(write):
            assert await life.live(), write
        await life.check_against(whole, write)


@pytest.mark.parametrize("kind", ["parallel", "nested"])
async def test_two_kills_change_nothing(kind: str) -> None:
    whole = Life(kind, "ab")
    assert await whole.live()
    for write in range(1, whole.writes + 1, 12):
        for second in (1, 2, 4):
            life = Life(kind, "ab")
            ended = await life.live(write, after=False) or await life.live(second)
            assert ended or await life.live(), (write, second)
            assert life.result.stop_reason == "done"
            assert max(life.paid.values()) == 1


@pytest.mark.parametrize("kind", ["parallel", "nested"])
async def test_it_is_so_in_files(kind: str, tmp_path: Path) -> None:
    def opened(name: str) -> Callable[[], Any]:
        @asynccontextmanager
        async def open_it() -> AsyncIterator[Journal]:
            async with SQLiteJournal(tmp_path / f"{name}.db", durability="os") as journal:
                yield journal

        return open_it

    whole = Life(kind, "ab", journal=opened("whole"))
    assert await whole.live()
    for write in range(1, whole.writes + 1, 9):
        life = Life(kind, "ab", journal=opened(str(write)))
        if not await life.live(write):
            assert await life.live(), write
        await life.check_against(whole, write)
