"""Sessions that are not written to for the journal's ``ttl`` are gone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import anyio
import pytest
import redis

from agent_brain.memories import Entry, RedisJournal
from agent_brain.memories.errors import MemoryDefinitionError
from tests.support.redis_server import URL, journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

SHORT = 0.05
LONG = timedelta(days=1)


@pytest.fixture
def prefix() -> Iterator[str]:
    redis_url()
    with journal_prefix() as prefix:
        yield prefix


@pytest.fixture
async def journal(prefix: str) -> AsyncIterator[RedisJournal]:
    async with RedisJournal(URL, prefix=prefix, ttl=SHORT) as journal:
        yield journal


async def outlive(journal: RedisJournal, session: str = "s") -> None:
    while await journal.last(session):
        await anyio.lowlevel.checkpoint()


async def test_a_session_that_has_expired_is_unknown(journal: RedisJournal) -> None:
    last = await journal.append("s", [Entry("a", n) for n in range(4)])
    await journal.retire("s", [1, 2])
    await outlive(journal)
    assert await journal.read("s", history=True) == []
    assert [page async for page in journal.pages("s")] == []
    assert (await journal.sessions(), await journal.records()) == ([], [])
    assert await journal.delete("s") == await journal.retire("s", [3]) == 0
    assert await journal.append("s", [Entry("a", 9)], expect=0) == last + 1
    assert [entry.data for entry in await journal.read("s", history=True)] == [9]


async def test_nothing_of_an_expired_session_is_left(journal: RedisJournal) -> None:
    await journal.append("s", [Entry("a", n) for n in range(4)])
    await journal.retire("s", [1, 2])
    await outlive(journal)
    with redis.Redis.from_url(URL) as client:
        left = {key.decode() for key in client.scan_iter(match=f"{journal.prefix}:*")}
    assert not [key for key in left if "{" in key]
    assert await journal.purge() == 1
    assert await journal.purge() == 0


async def test_an_append_removes_names_of_expired_sessions(journal: RedisJournal) -> None:
    await journal.append("s", [Entry("a", 1)])
    await outlive(journal)
    await journal.append("t", [Entry("a", 1)])
    with redis.Redis.from_url(URL) as client:
        assert client.zscore(f"{journal.prefix}:sessions", "s") is None


async def test_an_append_renews_the_whole_session(prefix: str) -> None:
    async with RedisJournal(URL, prefix=prefix, ttl=LONG) as journal:
        await journal.append("s", [Entry("a", n) for n in range(4)])
        await journal.retire("s", [1])
        with redis.Redis.from_url(URL) as client:
            keys = [f"{prefix}:{{s:s}}:{name}" for name in ("head", "entries", "history")]
            before = [client.execute_command("PEXPIRETIME", key) for key in keys]
            assert len({*before}) == 1
            await journal.append("s", [Entry("a", 5)])
            after = [client.execute_command("PEXPIRETIME", key) for key in keys]
            assert len({*after}) == 1
            assert before[0] < after[0]
            for key in keys:
                assert (
                    LONG - timedelta(minutes=5) < timedelta(milliseconds=client.pttl(key)) <= LONG
                )


async def test_other_writes_do_not_renew_it(prefix: str) -> None:
    async with RedisJournal(URL, prefix=prefix, ttl=LONG) as journal:
        await journal.append("s", [Entry("a", n) for n in range(4)])
        with redis.Redis.from_url(URL) as client:
            before = client.execute_command("PEXPIRETIME", f"{prefix}:{{s:s}}:head")
            await journal.retire("s", [1, 2])
            await journal.trim("s", 2)
            await journal.delete("s", [3])
            for name in ("head", "entries", "history"):
                key = f"{prefix}:{{s:s}}:{name}"
                assert client.execute_command("PEXPIRETIME", key) == before


async def test_a_loaded_session_expires(journal: RedisJournal) -> None:
    await journal.load("s", [Entry("a", 1, seq=7), Entry("a", 2, seq=9, retired=True)])
    await outlive(journal)
    assert await journal.append("s", [Entry("a", 1)]) == 10


async def test_a_journal_without_a_ttl_keeps_what_it_appends_to(
    prefix: str, journal: RedisJournal
) -> None:
    await journal.append("t", [Entry("a", 1)])
    async with RedisJournal(URL, prefix=prefix, ttl=LONG) as long:
        await long.append("s", [Entry("a", 1)])
    async with RedisJournal(URL, prefix=prefix) as for_ever:
        await for_ever.append("s", [Entry("a", 2)])
        await outlive(journal, "t")
        assert await for_ever.sessions() == ["s"]
    with redis.Redis.from_url(URL) as client:
        assert client.pttl(f"{prefix}:{{s:s}}:entries") == -1


@pytest.mark.parametrize("ttl", [0, -1, "1", timedelta(0)])
def test_a_ttl_that_makes_no_sense_is_refused(ttl, anyio_backend: str) -> None:
    with pytest.raises(MemoryDefinitionError, match="ttl"):
        RedisJournal(URL, ttl=ttl)
