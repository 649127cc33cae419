"""Forks of a memory without a journal whose run waits in branches: they have the branches too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Memory, Message, MessagesMemory, react
from agent_brain.memories import (
    DurableMemory,
    LayeredMemory,
    MemoryUseError,
    RamJournal,
    SharedMemory,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
)
from agent_brain.memories.runs.claim import Claim
from agent_brain.nets import Branch, Delegate, Net, ParallelState
from agent_brain.states import State, StreamItem
from agent_brain.tools import Action
from tests.brain.test_waiting_branches import Outer, Shop, asked, parallel
from tests.memories.durable.own import ListMemory
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio


def windowed(**place: Any) -> Memory:
    return WindowedMemory(max_messages=8, **place)


MEMORIES: dict[str, Callable[..., Memory]] = {
    "messages": MessagesMemory,
    "windowed": windowed,
    "vector": VectorMemory,
    "summary": SummaryMemory,
    "layered": lambda: LayeredMemory(WindowedMemory(max_messages=8), VectorMemory()),
    "todo": lambda: TodoMemory(MessagesMemory()),
    "own": ListMemory,
    "member": lambda: SharedMemory().member("me"),
    "in a journal in RAM": lambda: MessagesMemory(journal=RamJournal()),
    "own in a journal in RAM": lambda: DurableMemory(ListMemory, journal=RamJournal()),
}


def net(shop: Shop) -> Net:
    """Two branches, in one of which two branches wait."""
    inner = parallel({"a": react(shop.llm("a")), "b": react(shop.llm("b"))})
    return Net({Outer.ALL: ParallelState({"a": react(shop.llm("c")), "b": inner})})


async def finish(shop: Shop, memory: Memory, paid: int) -> None:
    """Let a person approve what waits, one after the other."""
    result = await Brain(net(shop), memory, shop.tools).resume(approve=["pay-a"])
    assert result.stop_reason == "approval"
    result = await Brain(net(shop), memory, shop.tools).resume(approve=True)
    assert result.stop_reason == "done"
    assert all(f"{name} paid {name}" in result.answer for name in "abc")
    assert shop.done == {f"look {n}": 1 for n in "abc"} | {f"pay {n}": paid for n in "abc"}


@pytest.mark.parametrize("kind", MEMORIES)
async def test_a_fork_and_its_original_both_continue(kind: str) -> None:
    shop, memory = Shop(), MEMORIES[kind]()
    await Brain(net(shop), memory, shop.tools).run("go")
    fork = await memory.fork()
    second = await fork.fork()
    await finish(shop, fork, 1)
    assert sorted(asked(memory)[0]) == ["pay-a", "pay-b", "pay-c"], "the original still waits"
    await finish(shop, memory, 2)
    await finish(shop, second, 3)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("kind", ["messages", "windowed", "vector", "summary"])
async def test_a_fork_with_a_journal_continues_in_another_process(
    kind: str, replace: bool, tmp_path: Path
) -> None:
    shop, memory, make = Shop(), MEMORIES[kind](), MEMORIES[kind]
    await Brain(net(shop), memory, shop.tools).run("go")
    path = tmp_path / "j.db"
    if replace:
        async with MessagesMemory(journal=path, session="s") as other:
            await other.update([Message.user("gone")])
    await (await memory.fork(journal=path, session="s", replace=replace)).aclose()  # type: ignore[call-arg]
    async with SQLiteJournal(path) as journal:
        await finish(shop, make(journal=journal, session="s"), 1)
    await finish(shop, memory, 2)


async def test_a_fork_with_a_journal_of_a_memory_of_ones_own(tmp_path: Path) -> None:
    shop = Shop()
    memory = DurableMemory(ListMemory, journal=RamJournal())
    await Brain(net(shop), memory, shop.tools).run("go")
    async with SQLiteJournal(tmp_path / "j.db") as journal:
        await memory.fork(journal=journal)
        await finish(shop, DurableMemory(ListMemory, journal=journal), 1)


def leading(shop: Shop, memory: Memory) -> Brain:
    """A brain that calls another one, which waits, as a tool."""

    def lead(call: Any) -> Any:
        results = [m.content for m in call.messages if m.role == "tool"]
        return results[-1] if results else Action(name="expert", args={"task": "t"}, id="e")

    expert = Brain(react(shop.llm("a")), memory, shop.tools).as_tool("expert", "Help.")
    return Brain(react(FunctionLLM(lead)), MessagesMemory(), [expert])


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("kind", ["messages", "summary", "todo", "layered"])
async def test_nested_brains_go_with_a_fork(kind: str, journal: bool, tmp_path: Path) -> None:
    shop = Shop()
    brain = leading(shop, MEMORIES[kind]())
    assert (await brain.run("go")).stop_reason == "approval"
    memory = brain.memory
    assert isinstance(memory, MessagesMemory)
    async with SQLiteJournal(tmp_path / "j.db") as file:
        fork = await memory.fork(journal=file if journal else None)
        for number, copied in enumerate([fork, memory], 1):
            result = await brain.over(copied).resume(approve=True)
            assert (result.stop_reason, result.answer) == ("done", "a paid a")
            assert shop.done == {"look a": 1, "pay a": number}


async def test_what_no_journal_can_hold_is_refused(tmp_path: Path) -> None:
    shop = Shop()
    brain = leading(shop, ListMemory())
    await brain.run("go")
    memory = brain.memory
    assert isinstance(memory, MessagesMemory)
    async with SQLiteJournal(tmp_path / "j.db") as file:
        with pytest.raises(MemoryUseError, match=r"expert.*waits in it over a ListMemory"):
            await memory.fork(journal=file)
        assert await file.sessions() == []
    result = await brain.over(await memory.fork()).resume(approve=True)
    assert result.answer == "a paid a"


class OnAFork(State):
    """Works on a branch of its own, and on a plain fork."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.seen: list[bool] = []

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        async with await memory.fork() as fork, await memory.branch("a") as branch:
            self.seen.append(await fork.has_branches())
            yield Delegate([Branch("a", self.net, branch)])

    async def next_state(self, memory: Memory) -> None:
        return None


async def test_a_fork_that_a_state_makes_has_no_branches_of_its_run() -> None:
    shop, memory = Shop(), MessagesMemory()
    state = OnAFork(react(shop.llm("a")))
    assert (await Brain({Outer.ALL: state}, memory, shop.tools).run("go")).stop_reason == "approval"
    await Brain({Outer.ALL: state}, memory, shop.tools).resume(approve=True)
    assert state.seen == [False, False]


async def test_a_fork_of_ones_own_takes_them_along() -> None:
    class Mine(ListMemory):
        async def fork(self) -> Memory:
            made = Mine()
            await made.restore(await self.snapshot())
            made.add_tools(self.available_tools.values())
            await self.copy_branches(made)
            return made

    shop, memory = Shop(), Mine()
    await Brain(net(shop), memory, shop.tools).run("go")
    await finish(shop, await memory.fork(), 1)


async def test_a_fork_of_ones_own_that_does_not_take_them_has_none() -> None:
    class Mine(ListMemory):
        async def fork(self) -> Memory:
            return deepcopy(self)

    shop, memory = Shop(), Mine()
    await Brain(net(shop), memory, shop.tools).run("go")
    fork = await memory.fork()
    assert (await fork.has_branches(), await memory.has_branches()) == (False, True)


class WithALock(ListMemory):
    """Says itself what a copy of it has."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self).copy()


@pytest.mark.parametrize("kind", [ListMemory, WithALock, MessagesMemory])
async def test_a_deep_copy_that_is_made_in_a_run_is_not_claimed(kind: type[Memory]) -> None:
    memory = kind()
    claim = await Claim.take(memory)
    copied = deepcopy(memory)
    assert (memory.busy, copied.busy) == (True, False)
    await Claim.take(copied)
    await claim.release()
    assert not memory.busy


@pytest.mark.parametrize("kind", [ListMemory, MessagesMemory])
async def test_a_copy_has_neither_the_run_nor_the_branches_of_the_original(
    kind: type[Memory],
) -> None:
    shop, memory = Shop(), kind()
    await Brain(net(shop), memory, shop.tools).run("go")
    await Claim.take(memory)
    copied = copy(memory)
    assert (copied.busy, await copied.has_branches()) == (False, False)
    assert await memory.has_branches()


async def test_forgetting_in_a_fork_leaves_the_original() -> None:
    shop, memory = Shop(), MessagesMemory()
    await Brain(net(shop), memory, shop.tools).run("go")
    fork = await memory.fork()
    await fork.clear()
    assert not await fork.has_branches()
    await finish(shop, memory, 1)
