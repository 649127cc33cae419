"""A store that fails while the process lives on leaves what a kill at that point would leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Memory, MessagesMemory, SharedMemory, Team, react, tool
from agent_brain.memories import Journal, Message, RamJournal, VectorMemory
from agent_brain.nets import MapState, Net, ParallelState, SubnetState
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
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action
from tests.memories.durable.paying import Lost, Step, killed, record_of
from tests.memories.durable.paying_agents import life_of
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
    ("approval handoff", "ab", 5),
    ("approval handoff with brains", "ab", 9),
    ("handoffs at once", "ab", 7),
    ("handoff as a tool", "ab", 7),
    ("brains mapped", "ab", 9),
    ("debate", "ab", 5),
    ("vote", "ab", 3),
    ("plan", "ab", 3),
    ("router", "ab", 3),
    ("tree", "ab", 1),
    ("team", "a", 3),
]
USUAL = [KINDS[at] for at in (1, 5, 7, 9, 13, 16, 26)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("kind", "names", "every"), first_of(KINDS, *USUAL))
async def test_a_write_that_fails_leaves_what_a_kill_leaves(
    kind: str, names: str, every: int, after: bool
) -> None:
    whole, journal = life_of(kind, names), MortalJournal(RamJournal())
    async with whole.process(journal) as brain:
        await whole.go_on(brain)
    first = 1 if THOROUGH else 1 + after * (every // 2)
    for write in range(first, journal.writes + 1, 1 if THOROUGH else every):
        dead, dead_store = life_of(kind, names), RamJournal()
        await killed(dead, MortalJournal(dead_store, write, after=after))
        life, store = life_of(kind, names), RamJournal()
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
    """Fails at a request, once or from then on, whether it reads or writes.

    Args:
        store: The store.
        fails_at: The number of the request, from 1; 0 for none.
        error: What is raised.
    """

    def __init__(
        self, store: Journal, fails_at: int = 0, error: type[BaseException] = Lost
    ) -> None:
        super().__init__(store, error=error)
        self.requests, self.fails_at = 0, fails_at
        self.down = False  # whether it fails from then on
        self.left = 0  # how many writes were done when it failed

    def _check(self) -> None:
        super()._check()
        self.requests += 1
        if self.requests == self.fails_at or (self.down and self.requests > self.fails_at):
            self.left = self.writes
            self._die()


async def check_left(store: Journal, left_by_kill: Journal, names: str) -> None:
    found, wanted = await record_of(store), await record_of(left_by_kill)
    if names == "a":
        assert found == wanted
    # where several run, another one may write before it is cancelled, but not that it was
    assert repr(found).count("was not run") <= repr(wanted).count("was not run")


@pytest.mark.parametrize(("kind", "names"), first_of([kind[:2] for kind in KINDS], ("nested", "a")))
async def test_a_request_that_fails_can_be_made_again(kind: str, names: str) -> None:
    whole, counted = life_of(kind, names), Flaky(RamJournal())
    async with whole.process(counted) as brain:
        opened = counted.requests
        await whole.go_on(brain)
    for request in range(opened + 1, counted.requests + 1):
        left_by_kill, store = RamJournal(), RamJournal()
        await killed(life_of(kind, names), Flaky(left_by_kill, request, Killed))
        life = life_of(kind, names)
        async with life.process(Flaky(store, request)) as brain:
            with pytest.raises(Lost):
                await life.go_on(brain)
            if request % 2:
                await check_left(store, left_by_kill, names)
                await life.go_on(brain)  # with the same memory object
        if life.result is None:  # also when that is closed
            await check_left(store, left_by_kill, names)
            async with life.process(store) as brain:
                await life.go_on(brain)
        await life.check(whole, store)


@pytest.mark.parametrize("kind", ["approval parallel", "approval mapped"])
async def test_what_a_person_has_decided_is_not_asked_again_after_a_kill(kind: str) -> None:
    life, store = life_of(kind, "ab"), RamJournal()
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


class Beside:
    """Two agents at once: one pays and waits, and beside it the store fails or the process dies."""

    def __init__(self, kind: str, *, kill: bool) -> None:
        self.kind, self.store, self.paid = kind, RamJournal(), Counter[str]()
        self.journal = MortalJournal(self.store)
        self.waits, self.failed = anyio.Event(), False

        @tool
        async def pay(name: str) -> str:
            """Pay, and wait for a receipt."""
            self.paid[name] += 1
            if not self.waits.is_set():
                self.waits.set()
                await anyio.sleep_forever()
            return f"paid {name}"

        @tool(idempotent=True)
        async def look() -> str:
            """Look something up in a store that fails while somebody pays."""
            if self.failed:
                return "seen"
            await self.waits.wait()
            self.failed = True
            if kill:
                self.journal.die()
            raise Lost("")

        self.tools = [pay, look]

    def _reply(self, call: ModelCall) -> Any:
        results = [m.content for m in call.messages if m.role == "tool"]
        pays = [Action(name="pay", args={"name": name}, id=f"pay-{name}") for name in "ab"]
        return "; ".join(results) or pays

    def _leads(self, *wanted: Action) -> FunctionLLM:
        def reply(call: ModelCall) -> Any:
            results = [m.content for m in call.messages if m.role == "tool"]
            return "; ".join(results) or [*wanted]

        return FunctionLLM(reply)

    async def live(self, journal: Journal) -> str:
        """Begin, or continue, with one of the kinds of agents."""
        payer = react(FunctionLLM(self._reply), max_concurrency=1)  # the second one has not begun
        look = Action(name="look", id="look")
        if self.kind == "team":
            async with SharedMemory(journal) as shared:
                nets = {"a": payer, "b": react(self._leads(look))}
                made = [
                    Brain(net, shared.member(name, watch={"task"}), self.tools)
                    for name, net in nets.items()
                ]
                team, begun = Team(made), await shared.messages(last=1)
                await (team.resume() if begun else team.run("Begin."))
                return "; ".join([m.content for m in await shared.messages()])
        lead = Net({Step.ALL: ParallelState([payer, react(self._leads(look))])})
        if self.kind == "nested":
            helper = Brain(payer, tools=self.tools).as_tool("agent", "Pay.")
            call = Action(name="agent", args={"task": "Pay."}, id="do")
            lead = Net({Step.ALL: SubnetState(react(self._leads(call, look)))}, tools=[helper])
        async with MessagesMemory(journal=journal) as memory:
            brain = Brain(lead, memory, self.tools)
            began = memory.control.run_id is not None
            return (await (brain.resume() if began else brain.run("Begin."))).answer


@pytest.mark.parametrize("kind", ["nested", "parallel", "team"])
async def test_an_agent_beside_one_whose_store_fails_leaves_what_a_kill_leaves(kind: str) -> None:
    dead, life = Beside(kind, kill=True), Beside(kind, kill=False)
    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await dead.live(dead.journal)
    with pytest.raises(Lost):
        await life.live(life.journal)
    assert await record_of(life.store) == await record_of(dead.store)
    answers = [await one.live(one.store) for one in (life, dead)]
    assert answers[0] == answers[1]
    assert "paid b" in answers[0], "its call was left behind"
    assert life.paid == dead.paid == {"a": 1, "b": 1}


def _pays_once(messages: list[Message]) -> Any:
    return Action(name="pay", args={"euros": 5}) if messages[-1].role == "user" else "done"


async def _map(store: Journal) -> None:
    @tool
    def pay(euros: int) -> str:
        """Pay."""
        return "paid"

    net = react(ScriptedLLM([_pays_once] * 6), tools=[pay])
    each = MapState(lambda memory: ["a", "b", "c"], net, goal=lambda item: f"Do {item}.")
    memory = VectorMemory(journal=store, session="map")
    await Brain(Net({Two.WORK: each}), memory).run("Begin.")


async def _debate(store: Journal) -> None:
    await Brain("debate", MessagesMemory(journal=store), llm=ScriptedLLM(["x"] * 12)).run("Begin.")


@pytest.mark.parametrize("run", [_map, _debate])
async def test_nothing_is_written_when_a_branch_cannot_be_opened(
    run: Callable[[Journal], Awaitable[None]],
) -> None:
    counted = Flaky(RamJournal())
    await run(counted)
    for request in range(1, counted.requests + 1):
        store = Flaky(RamJournal(), request)
        with pytest.raises(Lost):
            await run(store)
        assert store.writes == store.left, request


@pytest.mark.parametrize("lasts", [False, True], ids=["once", "until it is resumed"])
async def test_a_run_over_a_shared_session_goes_on_after_a_failure(lasts: bool) -> None:
    paid: list[int] = []

    @tool
    def pay(euros: int) -> str:
        """Pay."""
        paid.append(euros)
        return "paid"

    async def run(store: Flaky) -> str:
        memory = MessagesMemory(journal=store, session="log", shared=True)
        brain = Brain("react", memory, [pay], llm=ScriptedLLM([_pays_once] * 4))
        try:
            result = await brain.run("Begin.")
        except Lost:
            store.fails_at, store.down = 0, False
            if memory.control.status == "idle":
                result = await brain.run("Begin.")
            else:
                result = await brain.resume()
        assert await memory.update([Message.user("More.", id="more")]) == ["more"]
        return result.answer

    counted = Flaky(RamJournal())
    await run(counted)
    for request in range(1, counted.requests - 1):
        paid.clear()
        store = Flaky(RamJournal(), request)
        store.down = lasts
        assert await run(store) == "done", request
        assert len(paid) <= 1, request
