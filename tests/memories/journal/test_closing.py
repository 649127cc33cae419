"""A journal that is closed gives back its leases, and does nothing any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from agent_brain.memories import Entry, Journal, PostgresJournal, RamJournal, RedisJournal
from agent_brain.memories.errors import JournalError
from tests.support.postgres_server import URL, new_schema
from tests.support.redis_server import journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

Make = Callable[[], Any]
A = [Entry("a", 1)]


@pytest.fixture(params=["redis", "postgres"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    """Make journals of one place."""
    with ExitStack() as stack:
        if request.param == "redis":
            prefix = stack.enter_context(journal_prefix())
            yield lambda: RedisJournal(redis_url(), prefix=prefix)
        else:
            schema = stack.enter_context(new_schema())
            yield lambda: PostgresJournal(URL, schema=schema)


async def test_closing_gives_back_the_leases(make: Make) -> None:
    async with make() as journal:
        await journal.acquire("s")
        lease = await journal.acquire("t")
        await journal.append("t", A, lease=lease)
    async with make() as other:
        await other.acquire("s")
        await other.append("t", A)


async def test_closing_leaves_a_lease_that_was_taken_over(make: Make) -> None:
    async with make() as other:
        async with make() as journal:
            lease = await journal.acquire("s")
            await journal.append("s", A, lease=lease)
            await journal.delete("s")
            taken = await other.acquire("s")
            assert taken.token != lease.token
        await other.append("s", A, lease=taken)


@pytest.mark.parametrize("turns", [1, 2, 5, 20, 100])
async def test_nobody_has_a_lease_of_a_journal_that_was_closed_meanwhile(
    make: Make, turns: int
) -> None:
    journal = make()
    await journal.append("s", A)
    asked = [asyncio.create_task(journal.acquire(f"s{n}")) for n in range(20)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await journal.aclose()
    for got in await asyncio.gather(*asked, return_exceptions=True):
        assert not isinstance(got, BaseException) or isinstance(got, JournalError), got
    assert journal._heartbeat._thread is None
    async with make() as other:
        for n in range(20):
            await other.acquire(f"s{n}")


@pytest.mark.parametrize("turns", [1, 3, 10, 50])
async def test_a_cancelled_call_leaves_no_lease(make: Make, turns: int) -> None:
    async with make() as journal:
        await journal.last("s")
        asked = asyncio.create_task(journal.acquire("s"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if asked.cancel():
            with pytest.raises(asyncio.CancelledError):
                await asked
            await journal.release(await journal.acquire("s"))


CALLS: dict[str, Callable[[Journal, Any], Any]] = {
    "append": lambda journal, lease: journal.append("s", A),
    "append nothing": lambda journal, lease: journal.append("s", []),
    "read": lambda journal, lease: journal.read("s"),
    "last": lambda journal, lease: journal.last("s"),
    "delete": lambda journal, lease: journal.delete("s"),
    "retire": lambda journal, lease: journal.retire("s", []),
    "trim": lambda journal, lease: journal.trim("s"),
    "load": lambda journal, lease: journal.load("t", []),
    "sessions": lambda journal, lease: journal.sessions(),
    "records": lambda journal, lease: journal.records(),
    "lasts": lambda journal, lease: journal.lasts(),
    "purge": lambda journal, lease: journal.purge(),
    "acquire": lambda journal, lease: journal.acquire("t"),
    "release": lambda journal, lease: journal.release(lease),
}


async def refuses(journal: Journal, name: str) -> None:
    lease = await journal.acquire("s")
    await journal.append("s", A, lease=lease)
    await journal.aclose()
    await journal.aclose()
    with pytest.raises(JournalError, match="is closed"):
        await CALLS[name](journal, lease)


@pytest.mark.parametrize("name", CALLS)
async def test_a_closed_journal_does_nothing(make: Make, name: str) -> None:
    await refuses(make(), name)


@pytest.mark.parametrize("name", CALLS)
async def test_a_closed_journal_in_ram_does_nothing(name: str) -> None:
    await refuses(RamJournal(), name)
