"""Journals refuse what they cannot do, all with the same error, and write nothing then."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from agent_brain.memories import (
    Entry,
    Journal,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
)
from agent_brain.memories.errors import MemoryUseError
from tests.support.postgres_server import URL, new_schema
from tests.support.redis_server import journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

Call = Callable[[Any], Any]
A = [Entry("a", 1)]


@pytest.fixture(params=["ram", "sqlite", "redis", "postgres"])
async def journal(request: pytest.FixtureRequest) -> AsyncIterator[Journal]:
    """A journal with the entries 1, 2 and 3 in session s."""
    if request.param == "ram":
        found: Journal = RamJournal()
        await found.append("s", A * 3)
        yield found
    elif request.param == "sqlite":
        async with SQLiteJournal(":memory:") as found:
            await found.append("s", A * 3)
            yield found
    elif request.param == "redis":
        with journal_prefix() as prefix:
            async with RedisJournal(redis_url(), prefix=prefix) as found:
                await found.append("s", A * 3)
                yield found
    else:
        with new_schema() as schema:
            async with PostgresJournal(URL, schema=schema) as found:
                await found.append("s", A * 3)
                yield found


async def pages(journal: Journal, session: Any = "s", **options: Any) -> list[int]:
    return [len(page) async for page in journal.pages(session, **options)]


def numbered(*seqs: Any) -> list[Entry]:
    return [Entry("a", 1, seq) for seq in seqs]


SESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "append": lambda journal, key: journal.append(key, A),
    "append nothing": lambda journal, key: journal.append(key, []),
    "read": lambda journal, key: journal.read(key),
    "rows": lambda journal, key: journal.rows(key),
    "pages": pages,
    "last": lambda journal, key: journal.last(key),
    "delete": lambda journal, key: journal.delete(key),
    "delete some": lambda journal, key: journal.delete(key, [1]),
    "retire": lambda journal, key: journal.retire(key, [1]),
    "trim": lambda journal, key: journal.trim(key),
    "load": lambda journal, key: journal.load(key, numbered(1)),
    "load nothing": lambda journal, key: journal.load(key, []),
    "sessions": lambda journal, key: journal.sessions(key),
    "records": lambda journal, key: journal.records(key),
    "lasts": lambda journal, key: journal.lasts(key),
    "acquire": lambda journal, key: journal.acquire(key),
}


async def test_a_session_that_is_no_text_is_refused(journal: Journal) -> None:
    for call in SESSIONS.values():
        for key in (None, 5, b"s", True, ["s"]):
            with pytest.raises(MemoryUseError, match="key of a session is a text"):
                await call(journal, key)
    assert await journal.sessions() == ["s"]


async def test_an_exchange_of_a_session_that_is_no_text_removes_none(journal: Journal) -> None:
    keys: list[Any] = ["s", 5]
    with pytest.raises(MemoryUseError, match="key of a session is a text"):
        await journal.exchange(keys, {})
    assert len(await journal.read("s")) == 3


async def test_a_size_of_pages_that_is_no_number_from_1_is_refused(journal: Journal) -> None:
    for size in (0, -1, True, 1.5, None, "x"):
        with pytest.raises(MemoryUseError, match="size="):
            await pages(journal, size=size)
    assert await pages(journal, size=2) == [2, 1]


async def test_a_number_to_read_after_that_is_none_is_refused(journal: Journal) -> None:
    wrong: list[Any] = [None, "x", 1.5, math.nan, True]
    for after in wrong:
        for call in (
            journal.read("s", after),
            journal.rows("s", after),
            pages(journal, after=after),
        ):
            with pytest.raises(MemoryUseError, match="after="):
                await call


async def test_a_sequence_number_that_is_none_is_refused(journal: Journal) -> None:
    wrong: list[Any] = [None, "1", 1.0, math.nan, True]
    for seq in wrong:
        calls = [journal.delete("s", [1, seq]), journal.retire("s", [1, seq])]
        if seq is not None:
            calls += [journal.trim("s", seq), journal.append("s", A, expect=seq)]
        for call in calls:
            with pytest.raises(MemoryUseError, match="sequence number is a whole number"):
                await call
    assert [entry.seq for entry in await journal.read("s")] == [1, 2, 3]


UNREADABLE: list[Any] = [
    ([1], "not an Entry"),
    (["x"], "not an Entry"),
    ("abc", "not an Entry"),
    (None, "in a list.*not None"),
    (A[0], "in a list.*not Entry"),
    ([*A, Entry(None, 1)], "kind of entry 1"),  # type: ignore[arg-type]
    ([Entry(5, 1)], "kind of entry 0"),  # type: ignore[arg-type]
    ([*A, Entry("a", 1, version="x")], "version of entry 1"),  # type: ignore[arg-type]
    ([Entry("a", 1, version=None)], "version"),  # type: ignore[arg-type]
    ([Entry("a", 1, version=1.5)], "version"),  # type: ignore[arg-type]
    ([Entry("a", 1, version=1.0)], "version"),  # type: ignore[arg-type]
    ([Entry("a", 1, version=True)], "version"),
    ([Entry("a", 1, version=0)], "version"),
    ([Entry("a", 1, version=2**70)], "version"),
    ([*A, Entry("b", b"x")], r"entry 1 \('b'\) is not JSON.*bytes"),  # type: ignore[arg-type]
    ([Entry("a", {"k": {1, 2}})], "entry 0.*is not JSON.*set"),  # type: ignore[dict-item]
    ([Entry("a", [object()])], "entry 0.*is not JSON.*object"),  # type: ignore[list-item]
    ([Entry("a", {(1, 2): 3})], "entry 0.*keys must be str"),  # type: ignore[dict-item]
    ([Entry("a", {"k": 10**5_000})], "entry 0.*is not JSON.*digits"),
]


async def test_entries_that_could_not_be_read_are_refused(journal: Journal) -> None:
    for entries, match in UNREADABLE:
        with pytest.raises(MemoryUseError, match=match):
            await journal.append("s", entries)
        with pytest.raises(MemoryUseError, match=match):
            await journal.load("t", entries)
        assert await journal.sessions() == ["s"]
        assert len(await journal.read("s")) == 3


async def test_loaded_numbers_that_do_not_grow_are_refused(journal: Journal) -> None:
    pairs = [(5, 3), (3, 3), (0, 1), (-3, 2)]
    for seqs in [*pairs, (0,), (2**53,), (2**70,), (True,), (1.5,), ("1",), (None,)]:
        with pytest.raises(MemoryUseError, match="numbers grow from 1"):
            await journal.load("t", numbered(*seqs))
    assert await journal.sessions() == ["s"]
    assert await journal.last("t") == 0


async def test_loaded_numbers_may_have_gaps(journal: Journal) -> None:
    await journal.load("t", numbered(2, 7, 9))
    assert await journal.append("t", A) == 10
    assert [entry.seq for entry in await journal.read("t")] == [2, 7, 9, 10]


async def test_entries_may_come_from_a_generator(journal: Journal) -> None:
    assert await journal.append("s", (entry for entry in A * 2)) == 5  # type: ignore[arg-type]
    await journal.load("t", (entry for entry in numbered(1, 2)))  # type: ignore[arg-type]
    assert [entry.seq for entry in await journal.read("t")] == [1, 2]
    assert await journal.retire("s", (n for n in (1, 2))) == 2  # type: ignore[arg-type]
    assert await journal.delete("s", (n for n in (1, 4))) == 2  # type: ignore[arg-type]
    assert [entry.seq for entry in await journal.read("s")] == [3, 5]


async def test_a_time_of_a_lease_that_makes_no_sense_is_refused(journal: Journal) -> None:
    wrong: list[Any] = [0, -1, math.nan, math.inf, "x", None, True, 1e-9, 1e300]
    for seconds in wrong:
        with pytest.raises(MemoryUseError, match="seconds="):
            await journal.acquire("s", seconds=seconds)
    await journal.release(await journal.acquire("s"))


async def test_a_time_to_wait_that_makes_no_sense_is_refused(journal: Journal) -> None:
    wrong: list[Any] = [-1, math.nan, "x", None, True]
    for wait in wrong:
        with pytest.raises(MemoryUseError, match="wait="):
            await journal.acquire("s", wait=wait)
    await journal.release(await journal.acquire("s", wait=math.inf))
