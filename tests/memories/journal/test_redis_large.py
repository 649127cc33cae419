"""Long sessions and large entries are read in pages and do not stop the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_brain.memories import Entry, JournalConflictError, JournalError, RedisJournal
from agent_brain.memories.journal.redis import scripts
from agent_brain.memories.journal.redis.entries import pack as packed
from agent_brain.memories.journal.redis.journal import PAGE_BYTES, STAGED
from agent_brain.memories.journal.redis.scripts import Script
from tests.support.redis_server import URL, journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

MANY = 2 * STAGED + 1


@pytest.fixture
async def journal() -> AsyncIterator[RedisJournal]:
    redis_url()
    with journal_prefix() as prefix:
        async with RedisJournal(URL, prefix=prefix) as journal:
            yield journal


@asynccontextmanager
async def longest_stop() -> AsyncIterator[list[float]]:
    """The longest work of the event loop without a pause, in seconds of its thread."""
    longest = [0.0]

    async def watch() -> None:
        while True:
            began = time.thread_time()  # unlike other clocks it stands still on a busy machine
            await asyncio.sleep(0)
            longest[0] = max(longest[0], time.thread_time() - began)

    watching = asyncio.create_task(watch())
    yield longest
    watching.cancel()


async def test_a_long_session_is_read_as_written(journal: RedisJournal) -> None:
    entries = [Entry("a", f"data {n}", version=1 + n % 2) for n in range(MANY)]
    assert await journal.append("s", entries, expect=0) == MANY
    await journal.retire("s", range(1, MANY, 2))
    wanted = [(n + 1, "a", f'"data {n}"') for n in range(MANY)]
    assert [*await journal.rows("s", history=True)] == wanted
    assert [*await journal.rows("s")] == wanted[1::2] + wanted[-1:]
    everything = await journal.read("s", history=True)
    await journal.load("copy", everything)
    assert await journal.read("copy", history=True) == everything
    assert await journal.delete("s", range(1, MANY + 1)) == MANY


async def test_reading_a_long_session_lets_other_tasks_run(journal: RedisJournal) -> None:
    entries = [Entry("message", {"role": "user", "content": "x" * 200})] * 20_000
    await journal.append("s", entries)
    async with longest_stop() as longest:
        assert len(await journal.rows("s")) == 20_000
    assert 0 < longest[0] < 0.02


async def test_pages_of_large_entries_are_short(journal: RedisJournal) -> None:
    await journal.append("s", [Entry("a", "x" * (PAGE_BYTES // 10))] * 200)
    pages = [len(page) async for page in journal.pages("s")]
    assert sum(pages) == 200
    assert max(pages) < 100
    await journal.append("t", [Entry("a", "x" * PAGE_BYTES * 3)] * 2)
    assert len(await journal.read("t")) == 2


class Failing(RedisJournal):
    """Fails when it has sent some parts of a session that is loaded."""

    def fail_at(self, number: int, journal_script: Script) -> None:
        run = self._server.run

        def failing(script: Script, keys: Any, *args: Any) -> Any:
            nonlocal number
            number -= script is journal_script
            if not number:
                raise JournalError("the connection broke")
            return run(script, keys, *args)

        self._server.run = failing  # type: ignore[method-assign]


@pytest.mark.parametrize("part", [1, 2, 3])
async def test_a_load_that_fails_leaves_nothing(journal: RedisJournal, part: int) -> None:
    entries = [Entry("a", n, seq=n + 1) for n in range(MANY)]
    async with Failing(URL, prefix=journal.prefix) as failing:
        failing.fail_at(part, scripts.STAGE)
        with pytest.raises(JournalError, match="the connection broke"):
            await failing.load("s", entries)
    assert await journal.sessions() == []
    assert journal._server.ask("KEYS", f"{journal.prefix}:{{*") == []
    await journal.load("s", entries)
    assert await journal.last("s") == MANY


async def test_one_of_many_loads_wins(journal: RedisJournal) -> None:
    loads = [journal.load("s", [Entry("a", n, seq=1), Entry("a", n, seq=5)]) for n in range(10)]
    outcomes = await asyncio.gather(*loads, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(JournalConflictError) == 9
    (data,) = {entry.data for entry in await journal.read("s")}
    assert outcomes[data] is None  # type: ignore[index]


async def test_writers_without_a_check_lose_nothing(journal: RedisJournal) -> None:
    async with RedisJournal(URL, prefix=journal.prefix) as other:

        async def write(into: RedisJournal, name: str) -> None:
            for number in range(20):
                await into.append("s", [Entry(name, number)] * 2)

        await asyncio.gather(*(write(j, f"{n}") for n in range(3) for j in (journal, other)))
    entries = await journal.read("s")
    assert [entry.seq for entry in entries] == [*range(1, 241)]
    pairs = list(zip(entries[::2], entries[1::2], strict=True))
    assert all((a.kind, a.data) == (b.kind, b.data) for a, b in pairs)


@pytest.mark.parametrize(
    "data", ["x", "x" * 60_000, {"a": [{"b": "x" * 60_000}]}], ids=["small", "text", "nested"]
)
async def test_data_is_packed_in_a_thread(
    journal: RedisJournal, monkeypatch: pytest.MonkeyPatch, data: Any
) -> None:
    found = []

    def pack(*args: Any) -> bytes:
        found.append(threading.current_thread() is not threading.main_thread())
        return packed(*args)

    monkeypatch.setattr("agent_brain.memories.journal.redis.journal.pack", pack)
    await journal.append("s", [Entry("a", data)])
    assert found == [True]
    assert [entry.data for entry in await journal.read("s")] == [data]
