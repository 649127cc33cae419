"""Leases between processes and journals that share a Redis server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
import redis

from agent_brain.memories import Entry, RedisJournal
from agent_brain.memories.errors import LeaseHeldError, LeaseLostError
from agent_brain.memories.journal.lease import Lease, Owner
from tests.support.redis_server import URL, journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

WRITER = Path(__file__).parent / "redis_writer.py"
DAY = 24 * 60 * 60  # that a lease is kept when it has ended
ELSEWHERE = Owner("elsewhere", 1, "another machine", "1")


@pytest.fixture
def prefix() -> Iterator[str]:
    redis_url()
    with journal_prefix() as prefix:
        yield prefix


@pytest.fixture
async def journal(prefix: str) -> AsyncIterator[RedisJournal]:
    async with RedisJournal(URL, prefix=prefix) as journal:
        yield journal


@contextmanager
def other_process(prefix: str, seconds: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(WRITER), URL, prefix, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "leased\n"
        try:
            yield process
        finally:
            process.kill()


async def take(journal: RedisJournal, owner: Owner, seconds: float) -> Lease:
    """Store the lease of a process that does not renew it."""
    lease = replace(Lease.new("s", seconds), owner=owner)
    assert await journal._take_lease(lease) is None
    journal._heartbeat.remove(lease)
    return lease


def left(prefix: str) -> float:
    """The seconds that the lease still lasts."""
    with redis.Redis.from_url(URL) as client:
        return client.pttl(f"{prefix}:{{s:s}}:lease") / 1000 - DAY


def end(prefix: str) -> None:
    """Let the lease end now."""
    with redis.Redis.from_url(URL) as client:
        client.pexpire(f"{prefix}:{{s:s}}:lease", DAY * 1000)


async def test_the_lease_of_a_killed_process_is_taken_over_at_once(
    prefix: str, journal: RedisJournal
) -> None:
    with other_process(prefix, 1000) as process:
        with pytest.raises(LeaseHeldError, match=f"process {process.pid} on"):
            await journal.acquire("s")
        with pytest.raises(LeaseHeldError, match=f"process {process.pid} on"):
            await journal.append("s", [Entry("a", 1)])
        process.kill()
        process.wait()
        lease = await journal.acquire("s")
        await journal.append("s", [Entry("a", 1)], expect=1, lease=lease)
        await journal.release(lease)


async def test_a_lease_is_renewed_while_its_process_runs(
    prefix: str, journal: RedisJournal
) -> None:
    with other_process(prefix, 3):
        for _ in range(2):
            before = left(prefix)
            while left(prefix) <= before:
                await anyio.lowlevel.checkpoint()
        with pytest.raises(LeaseHeldError):
            await journal.acquire("s")


@pytest.mark.thorough
async def test_a_busy_event_loop_does_not_lose_its_lease(journal: RedisJournal) -> None:
    lease = await journal.acquire("s", seconds=3)
    before = left(journal.prefix)
    while left(journal.prefix) <= before:
        time.sleep(0.01)
    await journal.append("s", [Entry("a", 1)], lease=lease)
    await journal.release(lease)


async def test_the_lease_of_another_machine_is_taken_over_when_it_has_ended(
    journal: RedisJournal,
) -> None:
    old = await take(journal, ELSEWHERE, 100)
    with pytest.raises(LeaseHeldError, match="process 1 on elsewhere") as caught:
        await journal.acquire("s")
    assert 0 < caught.value.seconds <= 100
    end(journal.prefix)
    lease = await journal.acquire("s")
    with pytest.raises(LeaseLostError):
        await journal.append("s", [Entry("a", 1)], lease=old)
    await journal.release(old)
    await journal.append("s", [Entry("a", 1)], expect=0, lease=lease)
    await journal.release(lease)


async def test_an_ended_lease_is_good_until_it_is_taken_over(journal: RedisJournal) -> None:
    lease = await take(journal, ELSEWHERE, 1000)
    end(journal.prefix)
    await journal.append("s", [Entry("a", 1)], lease=lease)
    assert left(journal.prefix) > 900
    end(journal.prefix)
    await journal.release(await journal.acquire("s"))
    with pytest.raises(LeaseLostError):
        await journal.append("s", [Entry("a", 2)], lease=lease)


async def test_a_writer_without_a_lease_may_write_when_one_has_ended(journal: RedisJournal) -> None:
    lease = await take(journal, ELSEWHERE, 1000)
    with pytest.raises(LeaseHeldError):
        await journal.append("s", [Entry("a", 1)])
    end(journal.prefix)
    await journal.append("s", [Entry("a", 1)])
    await journal.append("s", [Entry("a", 2)], lease=lease)


async def test_one_of_many_gets_a_lease(journal: RedisJournal) -> None:
    got: list[Lease] = []

    async def get() -> None:
        with suppress(LeaseHeldError):
            got.append(await journal.acquire("s"))

    await asyncio.gather(*(get() for _ in range(30)))
    assert len(got) == 1
    await journal.release(got[0])


async def test_the_lease_is_checked_before_the_number(journal: RedisJournal) -> None:
    lease = await journal.acquire("s")
    with pytest.raises(LeaseHeldError):
        await journal.append("s", [Entry("a", 1)], expect=7)
    with pytest.raises(LeaseLostError):
        await journal.append("s", [Entry("a", 1)], expect=7, lease=replace(lease, token="x"))
    await journal.release(lease)


async def test_deleting_a_session_removes_its_lease(journal: RedisJournal) -> None:
    lease = await journal.acquire("s")
    await journal.append("s", [Entry("a", 1)], lease=lease)
    await journal.delete("s")
    await journal.append("s", [Entry("a", 1)], expect=0)
    with pytest.raises(LeaseLostError):
        await journal.append("s", [Entry("a", 1)], lease=lease)
    await journal.release(lease)


async def test_a_lease_that_somebody_else_wrote_is_no_obstacle(journal: RedisJournal) -> None:
    with redis.Redis.from_url(URL) as client:
        client.set(f"{journal.prefix}:{{s:s}}:lease", "not ours")
    lease = await journal.acquire("s")
    await journal.append("s", [Entry("a", 1)], lease=lease)
    await journal.release(lease)


async def test_closing_the_journal_ends_the_renewals(prefix: str) -> None:
    journal = RedisJournal(URL, prefix=prefix)
    lease = await journal.acquire("s", seconds=0.2)
    await journal.aclose()
    async with RedisJournal(URL, prefix=prefix) as other:
        taken = await other.acquire("s", wait=30)
        assert taken.token != lease.token
        await other.release(taken)
