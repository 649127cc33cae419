"""What another program did to a session's keys is told with its place; what is before is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
import redis

from agent_brain.memories import Entry, JournalError, RedisJournal
from agent_brain.memories.errors import JournalDamagedError
from agent_brain.memories.journal.redis.entries import Keys
from tests.support.redis_server import URL, journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.fixture
async def journal() -> AsyncIterator[RedisJournal]:
    with journal_prefix() as prefix:
        async with RedisJournal(redis_url(), prefix=prefix) as journal:
            await journal.append("s", [Entry("kind", f"data {n}") for n in range(6)])
            await journal.retire("s", [2, 5])
            yield journal


def keys(journal: RedisJournal) -> dict[str, str]:
    names = ("head", "entries", "history", "lease", "deleted", "sessions")
    return dict(zip(names, Keys(journal.prefix).of("s"), strict=True))


def client() -> redis.Redis:
    return redis.Redis.from_url(URL)


async def until_damage(journal: RedisJournal, **options: int) -> tuple[list[int], int]:
    """The numbers that can be read, and the number of the damaged entry."""
    found: list[int] = []
    pages = journal.pages("s", **options)  # type: ignore[arg-type]
    with pytest.raises(JournalDamagedError) as caught:
        await gather(pages, found)
    assert caught.value.session == "s"
    return found, caught.value.seq


async def gather(pages: AsyncIterator[Sequence[Entry]], found: list[int]) -> None:
    async for page in pages:
        found += [entry.seq for entry in page]


def flip(text: bytes, at: int) -> bytes:
    return text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
async def test_every_flipped_byte_of_an_entry_is_found(journal: RedisJournal, size: int) -> None:
    name = keys(journal)["entries"]
    with client() as other:
        (whole,) = other.zrangebyscore(name, 4, 4)
        for at in range(len(whole)):
            other.zremrangebyscore(name, 4, 4)
            other.zadd(name, {flip(whole, at): 4})
            assert await until_damage(journal, size=size) == ([1, 3], 4)
            assert await until_damage(journal, size=size, history=True) == ([1, 2, 3], 4)
        with pytest.raises(JournalDamagedError, match="Entry 4 of session 's'"):
            await journal.read("s")
        with pytest.raises(JournalDamagedError, match="Entry 4 of session 's'"):
            await journal.rows("s")
        assert [entry.seq for entry in await journal.read("s", 4)] == [6]


async def test_a_flipped_byte_of_the_history_is_found(journal: RedisJournal) -> None:
    name = keys(journal)["history"]
    with client() as other:
        (whole,) = other.zrangebyscore(name, 5, 5)
        other.zremrangebyscore(name, 5, 5)
        other.zadd(name, {flip(whole, 0): 5})
    assert [entry.seq for entry in await journal.read("s")] == [1, 3, 4, 6]
    assert await until_damage(journal, history=True) == ([1, 2, 3, 4], 5)


async def test_every_flipped_byte_of_the_head_is_found(journal: RedisJournal) -> None:
    name = keys(journal)["head"]
    with client() as other:
        whole = other.get(name)
        for at in range(len(whole)):
            other.set(name, flip(whole, at))
            with pytest.raises(JournalDamagedError, match="head"):
                await journal.last("s")
            for expect in (None, 0, 6):
                with pytest.raises(JournalDamagedError, match="head"):
                    await journal.append("s", [Entry("a", 1)], expect=expect)
            assert await until_damage(journal) == ([1, 3, 4, 6], 0)
            with pytest.raises(JournalDamagedError, match="head"):
                await journal.records()
        assert await journal.sessions() == ["s"]


@pytest.mark.parametrize("gone", ["head", "entries", "history"])
async def test_a_missing_key_is_found(journal: RedisJournal, gone: str) -> None:
    with client() as other:
        other.delete(keys(journal)[gone])
    found, seq = await until_damage(journal, history=True)
    wanted = {"head": [1, 2, 3, 4, 5, 6], "entries": [2, 5], "history": [1, 3, 4, 6]}
    assert (found, seq) == (wanted[gone], 0)


async def test_a_session_of_which_only_the_name_is_left_is_damaged(journal: RedisJournal) -> None:
    with client() as other:
        other.delete(*[keys(journal)[name] for name in ("head", "entries", "history")])
    with pytest.raises(JournalDamagedError, match="missing"):
        await journal.append("s", [Entry("a", 1)], expect=0)
    assert await until_damage(journal) == ([], 0)


async def test_an_entry_that_is_gone_or_was_added_is_found(journal: RedisJournal) -> None:
    with client() as other:
        other.zremrangebyscore(keys(journal)["entries"], 6, 6)
        assert await until_damage(journal) == ([1, 3, 4], 0)
        other.zadd(keys(journal)["entries"], {b"6": 6})
        assert await until_damage(journal) == ([1, 3, 4], 6)


@pytest.mark.parametrize("which", ["entries", "history"])
async def test_nothing_is_appended_to_a_session_that_has_lost_entries(
    journal: RedisJournal, which: str
) -> None:
    await journal.retire("s", [1])
    with client() as server:
        server.delete(keys(journal)[which])
        before = sorted(server.keys(f"{journal.prefix}*"))
        for entries in ([Entry("a", 1)], []):
            with pytest.raises(JournalDamagedError, match="entries are missing"):
                await journal.append("s", entries)
        assert sorted(server.keys(f"{journal.prefix}*")) == before


async def test_an_entry_at_another_place_is_found(journal: RedisJournal) -> None:
    with client() as other:
        (text,) = other.zrangebyscore(keys(journal)["entries"], 1, 1)
        other.zadd(keys(journal)["entries"], {text: 5})
    assert await until_damage(journal, size=1) == ([3, 4], 5)


async def test_an_entry_of_another_session_is_found(journal: RedisJournal) -> None:
    await journal.append("other", [Entry("kind", f"data {n}") for n in range(6)])
    with client() as other:
        name = keys(journal)["entries"]
        (text,) = other.zrangebyscore(name.replace("{s:s}", "{s:other}"), 4, 4)
        other.zremrangebyscore(name, 4, 4)
        other.zadd(name, {text: 4})
    assert await until_damage(journal) == ([1, 3], 4)


async def test_the_head_of_another_session_is_found(journal: RedisJournal) -> None:
    await journal.append("other", [Entry("kind", f"data {n}") for n in range(6)])
    with client() as other:
        name = keys(journal)["head"]
        other.copy(name.replace("{s:s}", "{s:other}"), name, replace=True)
    with pytest.raises(JournalDamagedError, match="head"):
        await journal.append("s", [Entry("a", 1)], expect=6)
    with pytest.raises(JournalDamagedError, match="head"):
        await journal.records("s")


@pytest.mark.parametrize("which", ["head", "entries", "history"])
async def test_a_key_of_another_type_is_found(journal: RedisJournal, which: str) -> None:
    with client() as other:
        other.delete(keys(journal)[which])
        other.lpush(keys(journal)[which], "mine")
    found, seq = await until_damage(journal)
    assert (found, seq) == ([] if which == "entries" else [1, 3, 4, 6], 0)
    assert await journal.delete("s") == {"head": 6, "entries": 2, "history": 4}[which]
    assert await journal.sessions() == []
    assert await journal.append("s", [Entry("a", 1)], expect=0) > 5


async def test_foreign_keys_of_the_journal_are_told(journal: RedisJournal) -> None:
    with client() as other:
        other.delete(keys(journal)["sessions"])
        other.set(keys(journal)["sessions"], "mine")
    with pytest.raises(JournalError, match="prefix of its own"):
        await journal.sessions()
    with pytest.raises(JournalError, match="prefix of its own"):
        await journal.append("t", [Entry("a", 1)])


async def test_a_session_that_is_deleted_while_it_is_read_is_not_half_of_two(
    journal: RedisJournal,
) -> None:
    pages = journal.pages("s", size=2)
    assert [entry.seq for entry in await anext(pages)] == [1, 3]
    await journal.delete("s")
    await journal.append("s", [Entry("a", 1)] * 9)
    with pytest.raises(JournalError, match="read it again"):
        await anext(pages)
