"""Copies of a session whose run was interrupted in branches: the branches go with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import anyio
import pytest

from agent_brain import Brain
from agent_brain.memories import (
    AutoMemory,
    DurableMemory,
    Entry,
    Journal,
    JournalError,
    LayeredMemory,
    LeaseHeldError,
    Message,
    MessagesMemory,
    RamJournal,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    session_key,
)
from agent_brain.memories.journal.transfer import export_session, import_session
from agent_brain.memories.store.session import is_branch
from agent_brain.memories.views.summary_writer import outline
from tests.cli.support import invoke
from tests.memories.durable.branching_runs import KINDS, BranchingRun, Outcome
from tests.memories.durable.killed_runs import open_journal
from tests.memories.durable.own import ListMemory
from tests.memories.durable.test_branches import NAMES, Work
from tests.support.journals import MortalJournal
from tests.support.thorough import first_of

TO = "copy"


def opened(journal: Journal) -> MessagesMemory:
    return MessagesMemory(journal=journal, session="s")


async def exported(source: Journal, target: Journal) -> None:
    lines = [line async for line in export_session(source, session_key("s"))]
    await import_session(target, lines, session_key(TO))


async def forked(source: Journal, target: Journal) -> None:
    async with opened(source) as memory:
        await memory.fork(journal=target, session=TO)


async def forked_in_ram_first(source: Journal, target: Journal) -> None:
    async with opened(source) as memory, await memory.fork() as copied:
        await copied.fork(journal=target, session=TO)


async def forked_over_another(source: Journal, target: Journal) -> None:
    async with MessagesMemory(journal=target, session=TO) as other:
        await other.keep("note", "gone")
    async with opened(source) as memory:
        copied = await memory.fork(journal=target, session=TO, replace=True)
        assert await copied.kept("note") is None


async def as_of_the_last_step(source: Journal, target: Journal) -> None:
    async with opened(source) as memory:
        earlier = await memory.as_of((await memory.steps())[-1])
        await earlier.fork(journal=target, session=TO)


WAYS = (exported, forked, forked_in_ram_first, forked_over_another, as_of_the_last_step)


@cache
def usual(kind: str) -> tuple[Outcome, int]:
    """Return how a run ends that is not killed, and how many writes it has."""

    async def whole() -> tuple[Outcome, int]:
        with TemporaryDirectory() as folder:
            run, journal = BranchingRun(kind, Path(folder), "usual"), MortalJournal(RamJournal())
            await run.live(journal)
            return await run.outcome(journal), journal.writes

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, whole).result()


async def killed(kind: str, folder: Path, store: Journal, dies_at: int) -> BranchingRun:
    """Return a run that was killed in branches."""
    run = BranchingRun(kind, folder, "s")
    with pytest.raises(BaseException):  # noqa: B017, PT011 - alone or in a group
        await run.live(MortalJournal(store, dies_at))
    assert any(is_branch(key) for key in await store.sessions())
    return run


async def finish(run: BranchingRun, journal: Journal, outcome: Outcome) -> None:
    """Let the copy of a run finish, and check that nothing was done twice."""
    run.session = TO
    await run.live(journal)
    await run.check(journal, outcome)


@pytest.mark.anyio
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", first_of(KINDS, "nested in branch", "waiting"))
async def test_branches_finish_in_a_copy(
    kind: str, way: Callable[[Journal, Journal], Awaitable[None]], tmp_path: Path
) -> None:
    outcome, writes = usual(kind)
    store, target = RamJournal(), RamJournal()
    run = await killed(kind, tmp_path, store, int(writes * (0.4 + 0.1 * WAYS.index(way))))
    before = {key: await store.read(key, history=True) for key in await store.sessions()}
    await way(store, target)
    await finish(run, target, outcome)
    after = {key: await store.read(key, history=True) for key in await store.sessions()}
    assert after == before, "the original has changed"


@pytest.mark.parametrize(("kind", "way"), [("nested in branch", exported), ("waiting", forked)])
def test_branches_finish_in_any_journal(
    kind: str,
    way: Callable[[Journal, Journal], Awaitable[None]],
    journal: tuple[str, str],
    tmp_path: Path,
) -> None:
    async def copied() -> None:
        store = RamJournal()
        outcome, writes = usual(kind)
        run = await killed(kind, tmp_path, store, writes // 2)
        async with open_journal(*journal) as target:
            await way(store, target)
            await finish(run, target, outcome)

    anyio.run(copied)


def layered(journal: Journal) -> LayeredMemory:
    long = VectorMemory(journal=journal, session="long")
    return LayeredMemory(WindowedMemory(journal=journal, max_messages=30), long)


MEMORIES: dict[str, Callable[[Journal], Any]] = {
    "windowed": lambda journal: WindowedMemory(journal=journal, max_messages=30),
    "summary": lambda journal: SummaryMemory(journal=journal, max_messages=30),
    "vector": lambda journal: VectorMemory(journal=journal),
    "auto": lambda journal: AutoMemory(journal=journal, max_tokens=2_000, summarize=outline),
    "own": lambda journal: DurableMemory(ListMemory, journal=journal),
    "todo": lambda journal: TodoMemory(MessagesMemory(journal=journal)),
    "layered": layered,
}


@pytest.mark.anyio
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("kind", MEMORIES)
async def test_branches_of_any_memory_go_with_a_fork(kind: str, earlier: bool) -> None:
    work, store = Work(), RamJournal()
    make = MEMORIES[kind]
    with pytest.raises(RuntimeError, match="provider is down"):
        await Brain(work.parallel(), make(store), work.tools).run("go")
    work.broken, asked = False, work.asked.copy()
    async with make(store) as memory:
        if earlier:
            copied = await memory.as_of((await memory.steps())[-1])
        else:
            copied = await memory.fork()
        result = await Brain(work.parallel(), copied, work.tools).resume()
        assert all(f"{name} is done" in result.answer for name in NAMES)
        assert {*work.done.values()} == {1}
        assert work.asked - asked == {"c": 1}
        assert await memory.has_branches(), "the original still has them"


@pytest.mark.anyio
async def test_what_a_branch_gave_a_long_term_memory_goes_with_a_fork() -> None:
    store = RamJournal()
    first = layered(store)
    await first.begin(Message.user("go"), "run_1", "STATE")
    branch = await first.branch("a")
    await branch.checkpoint()
    await cast("LayeredMemory", branch).long.update([Message.user("kept")])
    async with layered(store) as memory:
        for copied in (await memory.fork(), await memory.as_of((await memory.steps())[-1])):
            again = cast("LayeredMemory", await copied.branch("a"))
            assert again.resumed
            assert [m.content for m in await again.long.messages()] == ["kept"]
            assert not await copied.long.messages()


@pytest.mark.anyio
async def test_a_fork_that_fails_leaves_nothing(tmp_path: Path) -> None:
    class Full(RamJournal):
        async def load(self, session: str, entries: Sequence[Entry]) -> None:
            if not is_branch(session):
                raise JournalError("full")
            await super().load(session, entries)

    store, target = RamJournal(), Full()
    await killed("parallel", tmp_path, store, 30)
    with pytest.raises(JournalError, match="full"):
        await forked(store, target)
    assert await target.sessions() == []


@pytest.mark.anyio
async def test_a_session_in_use_is_not_replaced(tmp_path: Path) -> None:
    store, target = RamJournal(), RamJournal()
    await killed("parallel", tmp_path, store, 30)
    await MessagesMemory(journal=target, session=TO).set_goal("mine")
    lease = await target.acquire(session_key(TO))
    with pytest.raises(LeaseHeldError):
        await forked_over_another(store, target)
    await target.release(lease)
    assert [m.content for m in await MessagesMemory(journal=target, session=TO).goal()] == ["mine"]


@pytest.mark.parametrize("command", ["fork", "export"])
def test_branches_go_with_what_the_command_line_copies(command: str, tmp_path: Path) -> None:
    place = tmp_path / "j.db"

    async def interrupted() -> tuple[BranchingRun, Outcome, int]:
        outcome, writes = usual("nested in branch")
        async with SQLiteJournal(place) as store:
            run = await killed("nested in branch", tmp_path, store, writes // 2)
            return run, outcome, (await opened(store).steps())[-1].number

    async def finished() -> None:
        async with SQLiteJournal(place) as store:
            for key in await store.sessions():
                if key.startswith(session_key("s")[:-1]):
                    await store.delete(key)
            await finish(run, store, outcome)

    def sessions(command: str, *args: Any) -> None:
        done = invoke("sessions", command, "--journal", str(place), *map(str, args))
        assert (done.exit_code, done.stderr) == (0, "")

    run, outcome, step = anyio.run(interrupted)
    if command == "fork":
        sessions("fork", "s", "--step", step, "--to", TO)
    else:
        sessions("export", "s", "-o", tmp_path / "s.jsonl")
        sessions("import", tmp_path / "s.jsonl", "--as", TO)
    anyio.run(finished)
