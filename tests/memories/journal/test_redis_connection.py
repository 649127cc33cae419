"""Servers that end, connections that break, and callers that do not wait."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from agent_brain.memories import (
    Entry,
    JournalConflictError,
    JournalError,
    Message,
    MessagesMemory,
    RedisJournal,
)
from tests.support.cutting_proxy import CuttingProxy, cutting_proxy
from tests.support.redis_server import URL, OwnServer, journal_prefix, own_server, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

ON_DISK = ("--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture
async def proxy() -> AsyncIterator[CuttingProxy]:
    redis_url()
    async with cutting_proxy(urlsplit(URL).port or 6379) as proxy:
        yield proxy


@pytest.fixture
async def journal(proxy: CuttingProxy) -> AsyncIterator[RedisJournal]:
    with journal_prefix() as prefix:
        async with RedisJournal(f"redis://127.0.0.1:{proxy.port}/0", prefix=prefix) as journal:
            await journal.append("s", [Entry("a", 0)])
            yield journal


async def data(journal: RedisJournal, session: str = "s") -> list[object]:
    return [entry.data for entry in await journal.read(session)]


@pytest.mark.parametrize("when", ["request", "reply"])
async def test_an_append_without_a_number_is_not_repeated(
    journal: RedisJournal, proxy: CuttingProxy, when: str
) -> None:
    proxy.cut = when  # the reply is the number that the entry is to get
    with pytest.raises(JournalError, match="it may have been done"):
        await journal.append("s", [Entry("a", 1)])
    await journal.append("s", [Entry("a", 2)])
    assert (await data(journal), proxy.cuts) == ([0, 2], 1)


@pytest.mark.parametrize("session", ["s", "new"])
@pytest.mark.parametrize("when", ["request", "reply"])
async def test_an_append_with_a_number_is_repeated_and_done_once(
    journal: RedisJournal, proxy: CuttingProxy, when: str, session: str
) -> None:
    last = await journal.last(session)
    before = await data(journal, session)
    proxy.cut = when
    written = await journal.append(session, [Entry("a", 1), Entry("a", 1)], expect=last)
    assert proxy.cuts == 1
    assert written == await journal.last(session)
    await journal.append(session, [Entry("a", 2)], expect=written)
    assert await data(journal, session) == [*before, 1, 1, 2]


async def test_an_append_that_another_writer_preceded_is_not_taken_for_done(
    journal: RedisJournal, proxy: CuttingProxy
) -> None:
    proxy.cut = "request"
    async with RedisJournal(URL, prefix=journal.prefix) as other:
        await other.append("s", [Entry("a", 1), Entry("a", 1)], expect=1)
    with pytest.raises(JournalConflictError):
        await journal.append("s", [Entry("a", 1)], expect=1)
    assert (await data(journal), proxy.cuts) == ([0, 1, 1], 1)


@pytest.mark.parametrize("when", ["request", "reply"])
async def test_removing_entries_is_repeated(
    journal: RedisJournal, proxy: CuttingProxy, when: str
) -> None:
    await journal.append("s", [Entry("a", number) for number in range(1, 5)])
    for remove in (
        lambda: journal.retire("s", [1, 2]),
        lambda: journal.delete("s", [3], scrub=False),
        lambda: journal.trim("s"),
    ):
        proxy.cut = when
        await remove()
    assert proxy.cuts == 3
    assert [entry.data for entry in await journal.read("s", history=True)] == [3, 4]


@pytest.mark.parametrize("when", ["request", "reply"])
async def test_reading_is_repeated(journal: RedisJournal, proxy: CuttingProxy, when: str) -> None:
    proxy.cut = when
    assert len(await journal.read("s")) == 1
    proxy.cut = when
    assert len(await journal.rows("s")) == 1
    proxy.cut = when
    assert await journal.last("s") == 1
    proxy.cut = when
    assert await journal.sessions() == ["s"]
    assert proxy.cuts == 4


@pytest.mark.parametrize("when", ["request", "reply"])
async def test_a_lease_is_got_once(journal: RedisJournal, proxy: CuttingProxy, when: str) -> None:
    proxy.cut = when
    lease = await journal.acquire("s")
    await journal.append("s", [Entry("a", 1)], lease=lease)
    proxy.cut = when
    await journal.release(lease)
    assert proxy.cuts == 2
    await journal.release(await journal.acquire("s"))


@pytest.mark.parametrize("when", ["request", "reply"])
async def test_a_memory_knows_what_an_interrupted_append_has_written(
    journal: RedisJournal, proxy: CuttingProxy, when: str
) -> None:
    memory = MessagesMemory(journal=journal)
    await memory.update([Message.user("one", id="1")])
    proxy.cut, proxy.times = when, 3
    with pytest.raises(JournalError):
        await memory.update([Message.user("two", id="2")])
    await memory.update([Message.user("two", id="2")])
    await memory.update([Message.user("three", id="3")])
    assert [m.id for m in await memory.messages()] == ["1", "2", "3"]
    later = MessagesMemory(journal=journal)
    assert [m.id for m in await later.messages()] == ["1", "2", "3"]


async def test_a_connection_that_ended_between_two_calls_is_not_used(tmp_path: Path) -> None:
    with own_server(tmp_path, *ON_DISK) as server:
        async with RedisJournal(server.url, durability="disk") as journal:
            for number in range(3):
                await journal.append("s", [Entry("a", number)], expect=number)
                server.kill()
                server.start()  # without a turn of the event loop between
            assert await data(journal) == [0, 1, 2]


async def test_a_server_that_is_away_is_told_and_used_when_it_is_back(tmp_path: Path) -> None:
    with own_server(tmp_path, *ON_DISK) as server:
        async with RedisJournal(server.url) as journal:
            await journal.append("s", [Entry("a", 0)])
            server.kill()
            for _ in range(25):  # more often than there are connections
                with pytest.raises(JournalError, match="cannot be reached"):
                    await journal.append("s", [Entry("a", 1)])
                with pytest.raises(JournalError, match="cannot be reached"):
                    await journal.read("s")
            server.start()
            await journal.append("s", [Entry("a", 2)], expect=1)
            assert await data(journal) == [0, 2]


async def test_a_server_that_hangs_is_not_waited_for_longer_than_asked(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        async with RedisJournal(server.url, timeout=1.0) as journal:
            await journal.append("s", [Entry("a", 0)])
            assert server.process is not None
            os.kill(server.process.pid, signal.SIGSTOP)
            try:
                with pytest.raises(JournalError, match="did not answer"):
                    await journal.append("s", [Entry("a", 1)], expect=1)
            finally:
                os.kill(server.process.pid, signal.SIGCONT)
            assert await data(journal) in ([0], [0, 1])


async def test_what_was_appended_survives_a_kill(tmp_path: Path) -> None:
    with own_server(tmp_path, *ON_DISK) as server:
        async with RedisJournal(server.url, durability="disk") as journal:
            await journal.append("s", [Entry("a", 1), Entry("a", 2)])
            await journal.retire("s", [1])
            await journal.append("t", [Entry("a", 1)])
            await journal.delete("t")
            wanted = await journal.read("s", history=True)
            server.kill()
            server.start()
            assert await journal.read("s", history=True) == wanted
            assert await journal.sessions() == ["s"]
            assert await journal.append("t", [Entry("a", 1)], expect=0) == 2


async def test_a_cancelled_append_is_done_before_the_next_call(journal: RedisJournal) -> None:
    for number in range(20):
        task = asyncio.create_task(journal.append("s", [Entry("a", number)] * 2))
        for _ in range(number):
            await asyncio.sleep(0)
        task.cancel()
        count = len(await journal.read("s"))
        await asyncio.wait([task])
        assert count == len(await journal.read("s"))
        assert count % 2 == 1


async def test_many_calls_at_once_share_the_connections(journal: RedisJournal) -> None:
    async with anyio.create_task_group() as group:
        for number in range(200):
            group.start_soon(journal.append, f"session {number}", [Entry("a", number)])
    assert len(await journal.sessions("session")) == 200


async def test_several_cancelled_readers_leave_the_connections_usable(
    journal: RedisJournal,
) -> None:
    for _ in range(50):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await journal.read("s")
    assert await data(journal) == [0]


def test_a_journal_is_used_in_one_event_loop_after_the_other(anyio_backend: str) -> None:
    with journal_prefix() as prefix:
        journal = RedisJournal(redis_url(), prefix=prefix)
        for number in range(3):
            asyncio.run(journal.append("s", [Entry("a", number)]))
        assert asyncio.run(data(journal)) == [0, 1, 2]
        asyncio.run(journal.aclose())


def test_a_journal_is_used_in_two_event_loops_at_once(anyio_backend: str) -> None:
    async def main() -> None:
        with journal_prefix() as prefix:
            journal = RedisJournal(redis_url(), prefix=prefix)

            async def append() -> None:
                for number in range(20):
                    await journal.append("s", [Entry("a", number)])

            await asyncio.gather(append(), asyncio.to_thread(asyncio.run, append()))
            assert len(await journal.read("s")) == 40
            await journal.aclose()

    asyncio.run(main())


def test_a_journal_is_used_on_trio(anyio_backend: str) -> None:
    async def main() -> None:
        with journal_prefix() as prefix:
            async with RedisJournal(redis_url(), prefix=prefix) as journal:
                lease = await journal.acquire("s")
                await journal.append("s", [Entry("a", 1)], lease=lease)
                assert await data(journal) == [1]

    anyio.run(main, backend="trio")


async def test_an_append_that_the_server_never_got_is_not_in_doubt(tmp_path: Path) -> None:
    server = OwnServer(tmp_path)  # not started
    async with RedisJournal(server.url) as journal:
        with pytest.raises(JournalError, match=r"127\.0\.0\.1:\d+/0 cannot be reached"):
            await journal.append("s", [Entry("a", 1)])
