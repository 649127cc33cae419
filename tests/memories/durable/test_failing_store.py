"""A store that fails while the process lives on leaves what a kill at that point would leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Memory, MessagesMemory, react, tool
from agent_brain.memories import (
    Journal,
    RamJournal,
)
from agent_brain.nets import MapState, Net, ParallelState
from agent_brain.states import (
    FunctionState,
    GuardedState,
    Hook,
    RunFailed,
    State,
    StreamItem,
    ToolRequest,
    ToolResponse,
)
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.memories.durable.paying import Life, Lost, killed, record_of
from tests.nets.models import FunctionLLM
from tests.support.journals import Killed, MortalJournal
from tests.support.thorough import THOROUGH, first_of

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

KINDS = [  # the net, its branches, and which writes: every one, every second …; all in CI
    ("nested", "a", 1),
    ("nested", "ab", 3),
    ("nested", "abc", 7),
    ("nested in branch", "a", 2),
    ("mapped", "a", 1),
    ("mapped", "ab", 3),
    ("mapped", "abc", 5),
    ("functions", "abc", 1),
    ("parallel", "a", 1),
    ("parallel", "ab", 3),
    ("parallel", "abc", 5),
    ("approval nested", "a", 1),
    ("approval nested", "ab", 7),
    ("approval mapped", "ab", 5),
    ("approval parallel", "ab", 5),
    ("approval nested in branch", "a", 3),
]
USUAL = [KINDS[at] for at in (1, 5, 7, 9, 13)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("kind", "names", "every"), first_of(KINDS, *USUAL))
async def test_a_write_that_fails_leaves_what_a_kill_leaves(
    kind: str, names: str, every: int, after: bool
) -> None:
    whole, journal = Life(kind, names), MortalJournal(RamJournal())
    async with whole.process(journal) as brain:
        await whole.go_on(brain)
    first = 1 if THOROUGH else 1 + after * (every // 2)
    for write in range(first, journal.writes + 1, 1 if THOROUGH else every):
        dead, dead_store = Life(kind, names), RamJournal()
        await killed(dead, dead_store, write, after=after)
        life, store = Life(kind, names), RamJournal()
        async with life.process(MortalJournal(store, write, after=after, error=Lost)) as brain:
            with pytest.raises(Lost):
                await life.go_on(brain)
            assert await record_of(store) == await record_of(dead_store), write
            assert life.paid == dead.paid, write
            await life.go_on(brain)  # with the same memory object
        await life.check(whole, store)
        async with dead.process(dead_store) as brain:
            await dead.go_on(brain)
        assert (life.result.answer, life.paid) == (dead.result.answer, dead.paid), write


class Flaky(MortalJournal):
    """Fails once, at a request, whether it reads or writes.

    Args:
        store: The store.
        fails_at: The number of the request, from 1; 0 for none.
    """

    def __init__(self, store: Journal, fails_at: int = 0) -> None:
        super().__init__(store)
        self.requests, self.fails_at = 0, fails_at

    def _check(self) -> None:
        self.requests += 1
        if self.requests == self.fails_at:
            raise Lost("")


@pytest.mark.parametrize(
    ("kind", "names"), first_of([kind[:2] for kind in KINDS], ("approval nested", "a"))
)
async def test_a_request_that_fails_can_be_made_again(kind: str, names: str) -> None:
    whole, counted = Life(kind, names), Flaky(RamJournal())
    async with whole.process(counted) as brain:
        opened = counted.requests
        await whole.go_on(brain)
    for request in range(opened + 1, counted.requests + 1):
        life, store = Life(kind, names), RamJournal()
        async with life.process(Flaky(store, request)) as brain:
            with pytest.raises(Lost):
                await life.go_on(brain)
            await life.go_on(brain)  # with the same memory object
        await life.check(whole, store)


@pytest.mark.parametrize("kind", ["approval parallel", "approval mapped"])
async def test_what_a_person_has_decided_is_not_asked_again_after_a_kill(kind: str) -> None:
    life, store = Life(kind, "ab"), RamJournal()
    async with life.process(store) as brain:
        assert (await brain.run("Begin.")).stop_reason == "approval"
    with pytest.raises(Killed):
        async with life.process(MortalJournal(store, 1, after=True)) as brain:
            await brain.resume(approve=True)
    async with life.process(store) as brain:
        asked = (await brain.resume()).stop_reason
    assert (asked, life.paid["a"], life.paid["b"]) == ("done", 1, 1)


class Two(Enum):
    WORK = "work"
    AFTER = "after"


class Broken(State):
    """Reads from a store that fails."""

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        yield ""
        raise Lost("")

    async def next_state(self, memory: Memory) -> None:
        return None


@tool
def archive() -> str:
    """Look something up in a store that fails."""
    raise Lost("")


async def _after(memory: Memory) -> str:
    return "after"


async def broken_function(item: object) -> str:
    raise Lost("")


class Forgiving(Hook):
    """Would answer in place of whatever fails."""

    async def on_tool_error(self, request: ToolRequest, error: Exception) -> ToolResponse | None:
        raise AssertionError(error)


def _forgive(memory: Memory, error: Exception) -> bool:
    raise AssertionError(error)


def handlers() -> dict[str, Net]:
    """Nets that would take the error for something else."""
    broken, model = Net({Two.WORK: Broken()}), FunctionLLM(lambda _: Action(name="archive"))
    items = lambda _: ["a", "b", "c"]  # noqa: E731
    collected: Any = {"on_item_error": "collect"}
    return {
        "a tool": react(model),
        "a state": broken,
        "a hook of the net": Net({Two.WORK: Broken()}, on_error=_forgive),
        "an edge": Net(
            {Two.WORK: Broken(), Two.AFTER: FunctionState(_after)},
            on_error={Two.WORK: Two.AFTER},
        ),
        "retries": Net({Two.WORK: GuardedState(Broken(), retries=2, retry_on=lambda _: True)}),
        "retries of an item": Net({Two.WORK: MapState(items, broken, **collected)}),
        "a function": Net({Two.WORK: MapState(items, broken_function, **collected)}),
        "a branch": Net({Two.WORK: ParallelState({"a": broken, "b": broken}, on_error="report")}),
        "the first branch": Net(
            {Two.WORK: ParallelState([broken, broken], on_error="report", until="first")}
        ),
    }


async def _last_event(brain: Brain) -> None:
    async with brain.stream("Begin.") as run:
        assert [type(event) async for event in run][-1] is RunFailed


@pytest.mark.parametrize("streams", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("taken_by", handlers())
async def test_nothing_takes_an_error_of_a_store_for_its_own(
    taken_by: str, streams: bool, tmp_path: Path
) -> None:
    path = tmp_path / "journal.db"
    async with MessagesMemory(journal=path) as memory:
        brain = Brain(handlers()[taken_by], memory, [archive], hooks=[Forgiving()])
        with pytest.raises(Lost):
            await (_last_event(brain) if streams else brain.run("Begin."))
        assert await memory.last_result() is None, "the run has not ended"
    async with MessagesMemory(journal=path) as later:
        assert later.control.status == "running"


async def test_the_error_of_a_store_that_a_tool_reads_is_raised_without_a_journal_too() -> None:
    paid = []

    @tool
    def pay() -> str:
        """Pay."""
        paid.append(1)
        return "paid"

    def reply(call: ModelCall) -> Any:
        done = [m.content for m in call.messages if m.role == "tool"]
        return "; ".join(done) or [Action(name="pay"), Action(name="archive")]

    net = react(FunctionLLM(reply), max_concurrency=1)  # the payment is over when the store fails
    brain = Brain(net, tools=[pay, archive])
    with pytest.raises(Lost):
        await brain.run("Begin.")
    assert "paid" in (await brain.resume()).answer
    assert paid == [1]
