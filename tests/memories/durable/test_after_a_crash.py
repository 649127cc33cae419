"""What a person does between a crash and the next run: forget, delete, clear, ask something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_brain import ResumeError
from agent_brain.memories import (
    DurableMemory,
    Journal,
    MessagesMemory,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
    session_key,
)
from agent_brain.memories.store.session import is_branch
from agent_brain.memories.views.groups import group, is_whole
from tests.memories.durable.whole_runs import WholeRun
from tests.support import postgres_server, redis_server
from tests.support.journals import Killed, MortalJournal
from tests.support.thorough import thorough

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

CHANGES = ["a new goal", "forget a call", "forget the goal", "delete a call", "clear"]


@pytest.fixture(params=["ram", "sqlite", "redis", "postgres"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    if request.param == "ram":
        yield RamJournal()
    elif request.param == "sqlite":
        yield SQLiteJournal(tmp_path / "journal.db", durability="os")
    elif request.param == "redis":
        url = redis_server.redis_url()
        with redis_server.journal_prefix() as prefix:
            yield RedisJournal(url, prefix=prefix)
    else:
        with postgres_server.new_schema() as schema:
            yield PostgresJournal(postgres_server.URL, schema=schema, durability="memory")


async def change(memory: MessagesMemory | DurableMemory, what: str) -> None:
    if what == "forget a call":
        await memory.forget(text="paid 0")
    elif what == "forget the goal":
        await memory.forget(text="What is")
    elif what == "delete a call":
        await memory.delete([m.id for m in await memory.messages() if m.tool_calls][:1])
    elif what == "clear":
        await memory.clear()


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize(("net", "memory"), [("react", "messages"), *thorough([("map", "own")])])
async def test_a_session_that_was_changed_after_a_crash(
    net: str, memory: str, what: str, journal: Journal, tmp_path: Path
) -> None:
    every = 3 if isinstance(journal, RamJournal) else 13
    async with journal:
        kill, writes = 1, 1
        while kill <= writes:
            run = WholeRun(net, memory, tmp_path, f"{kill}")
            mortal = MortalJournal(journal, kill, after=bool(kill % 2))
            try:
                await run.live(mortal)
                writes = 0
            except Killed:
                writes = kill + every
            await change_and_continue(run, what, journal)
            kill += every


async def change_and_continue(run: WholeRun, what: str, journal: Journal) -> None:
    async with run.open(journal) as memory:
        assert isinstance(memory, MessagesMemory | DurableMemory)
        began = memory.control.run_id is not None
        await change(memory, what)
        brain = run.brain(memory)
        if what == "a new goal" or not began:
            result = await brain.run("What is 3 + 3?")
        else:
            try:
                result = await brain.resume()
            except ResumeError:  # nothing is left that could be resumed
                result = await brain.run("What is 3 + 3?")
        assert result.stop_reason == "done"
        said = await memory.messages()
    assert all(is_whole(members) for members in group(said)), "half a group is left"
    assert all(times == 1 for times in run.noted("pay").values())
    if what.startswith(("forget the", "clear")):
        kept = await journal.read(session_key(run.session), history=True)
        assert "What is 2 + 2?" not in repr(kept)
    if what == "a new goal":
        assert [m.content for m in said if m.role == "user"][-1] == "What is 3 + 3?"
    async with run.open(journal) as later:
        assert isinstance(later, MessagesMemory | DurableMemory)
        assert [m.id for m in await later.messages()] == [m.id for m in said]
    name = session_key(run.session)[:-1]
    branches = [key for key in await journal.sessions(name) if is_branch(key)]
    assert not branches, "a branch is left"
