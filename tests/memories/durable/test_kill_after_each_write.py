"""Nets over memories and journals, killed at each write: they continue as if they were not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import aclosing, nullcontext
from itertools import count
from pathlib import Path

import pytest

from agent_brain.memories import Journal, PostgresJournal, RedisJournal, SQLiteJournal
from agent_brain.nets import net_names
from tests.memories.durable.life import Life, OpenJournal
from tests.support import postgres_server, redis_server
from tests.support.thorough import first_of, thorough

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

MEMORIES = ["messages", "windowed", "summary", "layered", "todo", "vector", "auto"]
LONG = 40  # writes; nets that write more do so in branches that are alike


@pytest.mark.parametrize("memory", first_of(MEMORIES, "messages"))
@pytest.mark.parametrize("net", net_names())
async def test_a_kill_after_each_write_changes_nothing(
    net: str, memory: str, tmp_path: Path
) -> None:
    """Each write of each net; of a long run each memory but the first has another fifth of them."""
    whole = Life(net, memory, tmp_path / "whole")
    assert await whole.live()
    wanted = await whole.told()
    number = MEMORIES.index(memory)
    first, every = (number, 5) if number and whole.writes > LONG else (1, 1)
    for write in range(first, whole.writes + 1, every):
        life = Life(net, memory, tmp_path / str(write))
        ended = await life.live(write)
        if not ended:
            assert await life.live(), write
        await life.check_against(whole, wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("memory", ["messages", "layered"])
@pytest.mark.parametrize("net", net_names())
async def test_kills_at_random_writes_change_nothing(net: str, memory: str, tmp_path: Path) -> None:
    whole = Life(net, memory, tmp_path / "whole")
    assert await whole.live()
    wanted = await whole.told()
    rng = random.Random(net + memory)
    for number in range(5 if whole.writes <= LONG else 2):
        life = Life(net, memory, tmp_path / str(number))
        while not await life.live(rng.randrange(2, 8)):
            assert life.writes < 1000, "it does not get on"
        await life.check_against(whole, wanted)


class Place:
    """A place for journals of one kind.

    Args:
        empty: Returns a journal without sessions.
    """

    def __init__(self, empty: Callable[[], Journal]) -> None:
        self.empty = empty
        self.opened: list[Journal] = []

    def journal(self) -> OpenJournal:
        """Return how to open an empty journal; it stays open until the end."""
        journal = self.empty()
        self.opened.append(journal)
        return lambda: nullcontext(journal)

    async def aclose(self) -> None:
        for journal in self.opened:
            await journal.aclose()


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    number = count()
    if request.param == "sqlite":
        yield Place(lambda: SQLiteJournal(tmp_path / f"{next(number)}.db", durability="os"))
    elif request.param == "redis":
        url = redis_server.redis_url()
        with redis_server.journal_prefix() as prefix:
            yield Place(lambda: RedisJournal(url, prefix=f"{prefix}-{next(number)}"))
    else:
        with postgres_server.new_schema() as schema:
            url = postgres_server.URL
            shared = PostgresJournal(url, schema=schema, durability="memory")

            def cleared() -> Journal:
                postgres_server.clear(schema)
                return shared

            yield Place(cleared)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("net", "memory"),
    [
        ("react", "messages"),
        *thorough([("react", "layered"), ("self_consistency", "messages")]),
    ],
)
async def test_it_is_so_in_every_journal(
    net: str, memory: str, after: bool, place: Place, tmp_path: Path
) -> None:
    async with aclosing(place):
        whole = Life(net, memory, tmp_path, place.journal())
        assert await whole.live()
        wanted = await whole.told()
        for write in range(1, whole.writes + 1, 1 if net == "react" else 7):
            life = Life(net, memory, tmp_path, place.journal())
            if not await life.live(write, after=after):
                assert await life.live(), write
            await life.check_against(whole, wanted)
