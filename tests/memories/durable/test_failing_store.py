"""A store that fails while the process lives on leaves what a kill at that point would leave."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent_brain import Brain, Memory, MessagesMemory, react, tool
from agent_brain.memories import (
    Journal,
    JournalError,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
)
from agent_brain.memories.store.session import is_branch
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
from tests.nets.models import FunctionLLM, last_user, text_of
from tests.support import cutting_proxy_threads, postgres_server, redis_server
from tests.support.journals import Killed, MortalJournal
from tests.support.thorough import first_of, thorough

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

SECRET = "postgres://ann:hunter2@db.example"
IN_DOUBT = "may or may not have taken effect"


class Lost(JournalError):
    """The error of a store, whose text no model may see."""

    def __init__(self, _: str) -> None:
        super().__init__(f"{SECRET} does not answer")


class Step(Enum):
    ALL = "all"


class Life:
    """A run whose tools pay, in one process or several.

    Args:
        kind: Its net.
        names: Its branches.
    """

    def __init__(self, kind: str, names: str) -> None:
        self.kind, self.names = kind, names
        self.paid: Counter[str] = Counter()
        self.result: Any = None

        @tool(requires_approval=kind.startswith("approval"))
        async def pay(name: str) -> str:
            """Pay."""
            self.paid[name] += 1
            return f"paid {name}"

        self.pay = pay

    def _agent(self, call: ModelCall) -> Any:
        """Pays for whoever it was asked for."""
        assert SECRET not in text_of(call.messages)
        name = last_user(call.messages)[-1]
        results = [m.content for m in call.messages if m.role == "tool"]
        return "; ".join(results) or Action(name="pay", args={"name": name}, id=f"pay-{name}")

    def _lead(self, call: ModelCall) -> Any:
        """Calls an agent for each name, and pays too."""
        assert SECRET not in text_of(call.messages)
        results = [m.content for m in call.messages if m.role == "tool"]
        if results:
            return " | ".join(results)
        agents = [Action(name="agent", args={"task": f"Do {n}"}, id=f"do-{n}") for n in self.names]
        return [*agents, Action(name="pay", args={"name": "lead"}, id="pay-lead")]

    def brain(self, memory: Memory) -> Brain:
        """A brain for the run."""
        agent = react(FunctionLLM(self._agent))
        kind = self.kind.removeprefix("approval ")
        items = [f"Do {name}" for name in self.names]
        if kind == "mapped":
            net = Net({Step.ALL: MapState(lambda _: items, agent, on_item_error="collect")})
            return Brain(net, memory, [self.pay])
        if kind == "functions":
            net = Net({Step.ALL: MapState(lambda _: items, self._ask, on_item_error="collect")})
            return Brain(net, memory)
        if kind == "parallel":
            agents = {n: react(FunctionLLM(self._named(n))) for n in self.names}
            return Brain(
                Net({Step.ALL: ParallelState(agents, on_error="report")}), memory, [self.pay]
            )
        helper = Brain(agent, tools=[self.pay]).as_tool("agent", "Do something.")
        lead = react(FunctionLLM(self._lead))
        if kind == "nested in branch":
            lead = Net({Step.ALL: ParallelState({"out": lead}, on_error="report")})
        return Brain(lead, memory, [self.pay, helper])

    def _named(self, name: str) -> Any:
        def reply(call: ModelCall) -> Any:
            assert SECRET not in text_of(call.messages)
            results = [m.content for m in call.messages if m.role == "tool"]
            return "; ".join(results) or Action(name="pay", args={"name": name}, id=f"pay-{name}")

        return reply

    async def _ask(self, item: str) -> str:
        return f"seen {item}"

    async def go_on(self, brain: Brain) -> None:
        """Begin the run, or continue it, until it has ended."""
        memory = brain.memory
        await memory.open()
        while self.result is None:
            if memory.control.run_id is None:
                result = await brain.run("Begin.")
            else:
                asked = memory.control.human_requests
                waits = memory.control.status == "waiting" and asked is not None
                given: dict[str, Any] = {}
                if waits and asked is not None:
                    given = {"approve": [asked.approvals[-1]]}
                result = await brain.resume(**given)
            if result.stop_reason != "approval":
                self.result = result

    @asynccontextmanager
    async def process(self, journal: Journal) -> AsyncIterator[Brain]:
        async with MessagesMemory(journal=journal) as memory:
            yield self.brain(memory)

    async def check(self, whole: Life, store: Journal) -> None:
        """Compare the end with that of a run without failures."""
        assert self.result.stop_reason == "done"
        assert max(self.paid.values(), default=0) <= 1, "paid twice"
        answer = self.result.answer
        assert SECRET not in answer
        assert "was not run:" not in answer, "a call was left behind"
        if IN_DOUBT not in answer:
            assert (answer, self.paid) == (whole.result.answer, whole.paid)
        assert not [key for key in await store.sessions() if is_branch(key)]


async def record_of(store: Journal) -> list[str]:
    """All that a store has, with the same IDs and times for every run."""
    found = []
    for key in await store.sessions():
        for entry in await store.read(key, history=True):
            line = json.dumps(entry.data, sort_keys=True)
            found.append(f"{key} {entry.seq} {entry.kind} {entry.retired} {line}")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "T", "\n".join(found))
    text = re.sub(r'"seconds": [\d.e-]+', '"seconds": 0', text)
    ids: dict[str, str] = {}
    text = re.sub(
        r"[a-z]+_[0-9a-f]{17,}", lambda id_: ids.setdefault(id_[0], f"id-{len(ids)}"), text
    )
    return text.splitlines()


async def killed(life: Life, store: Journal, write: int, *, after: bool) -> None:
    """Live until the process is killed at a write."""
    journal = MortalJournal(store, write, after=after)
    try:
        async with life.process(journal) as brain:
            await life.go_on(brain)
    except BaseException:
        if not journal.dead:
            raise


KINDS = [  # the net, its branches, and which writes: every one, every second …
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
    for write in range(1 + after * (every // 2), journal.writes + 1, every):
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


async def test_a_request_that_fails_can_be_made_again() -> None:
    whole, counted = Life("approval nested", "a"), Flaky(RamJournal())
    async with whole.process(counted) as brain:
        opened = counted.requests
        await whole.go_on(brain)
    for request in range(opened + 1, counted.requests + 1):
        life, store = Life("approval nested", "a"), RamJournal()
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


# Real stores


class Disturbed(MortalJournal):
    """Something happens to the store before one of its writes, which is then done nevertheless.

    Args:
        store: The store.
        dies_at: The number of the write.
        disturb: What happens.
    """

    def __init__(self, store: Journal, dies_at: int, disturb: Callable[[], object]) -> None:
        super().__init__(store, dies_at)
        self._disturb = disturb

    def _die(self) -> None:
        self._disturb()


Faulty = tuple[Journal, Callable[[], object], Callable[[], object]]
"""A journal, what makes it fail, and what makes it work again."""


@asynccontextmanager
async def behind_a_proxy(kind: str, how: Any) -> AsyncIterator[Faulty]:
    """A journal behind a proxy that cuts two connections, as it tries twice."""
    target = urlsplit(postgres_server.URL if kind == "postgres" else redis_server.redis_url())
    mark = b"COMMIT\0" if kind == "postgres" else b"EVALSHA"
    with cutting_proxy_threads.CuttingProxy("127.0.0.1", target.port or 6379) as proxy:

        def cut() -> None:
            proxy.at, proxy.how, proxy.times = mark, how, 2

        def mend() -> None:
            proxy.at = None

        if kind == "postgres":
            url = f"postgresql://{target.username}@127.0.0.1:{proxy.port}{target.path}"
            with postgres_server.new_schema() as schema:
                async with PostgresJournal(f"{url}?sslmode=disable", schema=schema) as journal:
                    yield journal, cut, mend
        else:
            with redis_server.journal_prefix() as prefix:
                url = f"redis://127.0.0.1:{proxy.port}/0"
                seconds = 3.0 if how == "never" else 30.0
                async with RedisJournal(url, prefix=prefix, timeout=seconds) as opened:
                    yield opened, cut, mend


@asynccontextmanager
async def behind_a_lock(path: Path) -> AsyncIterator[Faulty]:
    """A journal in a file that another process locks for longer than it waits."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        async with SQLiteJournal(path, busy_timeout=0.02, durability="os") as journal:
            await journal.last("s")  # the file is made

            yield journal, lambda: other.execute("BEGIN IMMEDIATE"), other.rollback


FAULTS = [
    ("sqlite", "busy"),
    ("redis", "before"),
    ("redis", "after"),
    ("redis", "never"),
    ("postgres", "before"),
    ("postgres", "after"),
]


@pytest.mark.parametrize("kind", ["approval nested", *thorough(["approval mapped"])])
@pytest.mark.parametrize(("store", "how"), FAULTS)
async def test_a_store_that_fails_at_a_write_loses_and_repeats_nothing(
    store: str, how: str, kind: str, tmp_path: Path
) -> None:
    whole, counted = Life(kind, "a"), MortalJournal(RamJournal())
    async with whole.process(counted) as brain:
        await whole.go_on(brain)
    failed = 0
    for write in range(2, counted.writes + 1, 12 if how == "never" else 6):
        opened = (
            behind_a_lock(tmp_path / f"{write}.db")
            if store == "sqlite"
            else behind_a_proxy(store, how)
        )
        async with opened as (journal, disturb, mend):
            life, disturbed = Life(kind, "a"), Disturbed(journal, write, disturb)
            async with life.process(disturbed) as brain:
                try:
                    await life.go_on(brain)
                except JournalError:
                    failed += 1
                    mend()
                    await life.go_on(brain)
            await life.check(whole, journal)
    assert failed
