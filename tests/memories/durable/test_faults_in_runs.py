"""Disks, servers and connections that fail while a run goes on: it continues, or says what failed.

When they work again, the run is resumed: it is whole, and nothing is done twice.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import pytest

from agent_brain.memories import (
    Entry,
    Journal,
    JournalError,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
)
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.journal.redis.scripts import APPEND
from tests.memories.durable.whole_runs import WholeRun
from tests.support import cutting_proxy_threads, postgres_server, redis_server
from tests.support.thorough import first_of

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

RUNS = [("react", "messages"), ("map", "own")]


async def payments_of(net: str, folder: Path) -> int:
    """How many payments a run without faults makes."""
    run = WholeRun(net, "messages", folder, f"{net} without faults")
    await run.live(RamJournal())
    return len(run.noted("pay"))


def failing(kind: type[Any], place: str, at: int, fault: Callable[[], None], **options: Any) -> Any:
    """A journal with a fault before its append of a number, counted from 1."""

    class Failing(kind):  # type: ignore[misc]
        appends = 0

        async def append(
            self,
            session: str,
            entries: Sequence[Entry],
            *,
            expect: int | None = None,
            lease: Lease | None = None,
        ) -> int:
            self.appends += 1
            if self.appends == at:
                fault()
            return int(await super().append(session, entries, expect=expect, lease=lease))

    return Failing(place, **options)


async def live(run: WholeRun, journal: Journal) -> JournalError | None:
    """Run until the end, or until the journal fails; return its error."""
    async with journal:
        try:
            await run.live(journal)
        except JournalError as error:
            return error
    return None


# The disk


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file may become larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("net", "memory"), first_of(RUNS, RUNS[-1]))
async def test_a_disk_that_is_full_at_any_write(net: str, memory: str, tmp_path: Path) -> None:
    payments = await payments_of(net, tmp_path)
    failed, size = 0, 65_536
    while True:
        run = WholeRun(net, memory, tmp_path, f"{size}")
        path = tmp_path / f"{size}.db"
        async with SQLiteJournal(path) as journal:
            await journal.last("s")  # the file is made
        with files_up_to(size):
            error = await live(run, SQLiteJournal(path))
        if error is not None:
            failed += 1
            assert "free space" in str(error)
            assert await live(run, SQLiteJournal(path)) is None
        async with SQLiteJournal(path) as journal:
            await run.check(journal, payments, failed=error is not None)
        if error is None:
            break
        size += 12_288 if net == "react" else 45_056
    assert failed > 3


# Connections

CUTS = 4  # an append is tried twice: with three branches, one is cut off both times


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize(("net", "memory"), first_of(RUNS, RUNS[-1]))
async def test_a_connection_to_postgres_that_breaks(
    net: str, memory: str, how: Literal["before", "after"], tmp_path: Path
) -> None:
    payments, failed = await payments_of(net, tmp_path), 0
    parts = urlsplit(postgres_server.URL)
    with postgres_server.new_schema() as schema:
        for at in (2, 5, 9):
            run = WholeRun(net, memory, tmp_path, f"{at}")
            with cutting_proxy_threads.CuttingProxy("127.0.0.1", parts.port or 5432) as proxy:
                there = f"{parts.username}@127.0.0.1:{proxy.port}"
                url = urlunsplit(parts._replace(netloc=there, query="sslmode=disable"))

                def cut(proxy: cutting_proxy_threads.CuttingProxy = proxy) -> None:
                    proxy.at, proxy.how, proxy.times = b"COMMIT\0", how, CUTS

                error = await live(run, failing(PostgresJournal, url, at, cut, schema=schema))
            if error is not None:
                failed += 1
                assert "lost its connection" in str(error)
                assert "written by" not in str(error)
                assert await live(run, PostgresJournal(postgres_server.URL, schema=schema)) is None
            async with PostgresJournal(postgres_server.URL, schema=schema) as journal:
                await run.check(journal, payments, failed=error is not None)
    assert failed


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize(("net", "memory"), first_of(RUNS, RUNS[-1]))
async def test_a_connection_to_redis_that_breaks(
    net: str, memory: str, how: Literal["before", "after"], tmp_path: Path
) -> None:
    payments, failed = await payments_of(net, tmp_path), 0
    url = redis_server.redis_url()
    with redis_server.journal_prefix() as prefix:
        for at in (2, 5, 9):
            run = WholeRun(net, memory, tmp_path, f"{at}")
            port = urlsplit(url).port or 6379
            with cutting_proxy_threads.CuttingProxy("127.0.0.1", port) as proxy:

                def cut(proxy: cutting_proxy_threads.CuttingProxy = proxy) -> None:
                    proxy.at, proxy.how, proxy.times = APPEND.sha.encode(), how, CUTS

                there = f"redis://127.0.0.1:{proxy.port}/0"
                error = await live(run, failing(RedisJournal, there, at, cut, prefix=prefix))
            if error is not None:
                failed += 1
                assert "Redis at" in str(error)  # whichever call of a branch was cut off
                assert await live(run, RedisJournal(url, prefix=prefix)) is None
            async with RedisJournal(url, prefix=prefix) as journal:
                await run.check(journal, payments, failed=error is not None)
    assert failed or how == "after"  # an append that was done is found by reading


# Servers

ON_DISK = ("--appendonly", "yes", "--appendfsync", "always")


@pytest.mark.parametrize(("net", "memory"), first_of(RUNS, RUNS[-1]))
async def test_a_redis_server_that_is_killed(net: str, memory: str, tmp_path: Path) -> None:
    payments = await payments_of(net, tmp_path)
    with redis_server.own_server(tmp_path, *ON_DISK) as server:

        def restart() -> None:
            server.kill()
            server.start()

        for at in (1, 9):
            for number, fault in enumerate((restart, server.kill)):
                run = WholeRun(net, memory, tmp_path, f"{at} {number}")
                journal = failing(RedisJournal, server.url, at, fault, durability="disk")
                error = await live(run, journal)
                if fault == server.kill:
                    assert "Redis at" in str(error)  # the kill may cut off another branch's write
                    server.start()
                if error is not None:  # also of a restart, if another branch was writing
                    assert await live(run, RedisJournal(server.url, durability="disk")) is None
                async with RedisJournal(server.url) as later:
                    await run.check(later, payments, failed=error is not None)


async def test_a_postgres_server_that_crashes(tmp_path: Path) -> None:
    payments = {net: await payments_of(net, tmp_path) for net, _ in RUNS}
    with postgres_server.new_server() as server:

        def restart() -> None:
            server.stop()
            server.start()

        for (net, memory), at in zip(RUNS, (1, 6), strict=True):
            for number, fault in enumerate((restart, server.stop)):
                run = WholeRun(net, memory, tmp_path, f"{net} {at} {number}")
                error = await live(run, failing(PostgresJournal, server.url(), at, fault))
                if fault == server.stop:
                    assert error is not None
                    server.start()
                if error is not None:  # also of a restart, if the server lost the lease
                    assert await live(run, PostgresJournal(server.url())) is None
                async with PostgresJournal(server.url()) as later:
                    await run.check(later, payments[net], failed=error is not None)
