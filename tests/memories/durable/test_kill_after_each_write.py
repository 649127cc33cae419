"""Nets over memories and journals, killed at each write: they continue as if they were not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_brain.memories import PostgresJournal, RedisJournal, SQLiteJournal
from agent_brain.nets import net_names
from tests.memories.durable.life import Life, OpenJournal
from tests.support import postgres_server, redis_server

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

MEMORIES = ["messages", "windowed", "summary", "layered", "todo", "vector"]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("net", net_names())
async def test_a_kill_after_each_write_changes_nothing(
    net: str, memory: str, tmp_path: Path
) -> None:
    whole = Life(net, memory, tmp_path / "whole")
    assert await whole.live()
    wanted = await whole.told()
    for write in range(1, whole.writes + 1):
        life = Life(net, memory, tmp_path / str(write))
        ended = await life.live(write)
        if not ended:
            assert await life.live(), write
        await life.check_against(whole, wanted)


@pytest.mark.parametrize("memory", ["messages", "layered"])
@pytest.mark.parametrize("net", net_names())
async def test_kills_at_random_writes_change_nothing(net: str, memory: str, tmp_path: Path) -> None:
    whole = Life(net, memory, tmp_path / "whole")
    assert await whole.live()
    wanted = await whole.told()
    rng = random.Random(net + memory)
    for number in range(5):
        life = Life(net, memory, tmp_path / str(number))
        while not await life.live(rng.randrange(2, 8)):
            assert life.writes < 1000, "it does not get on"
        await life.check_against(whole, wanted)


class Place:
    """Opens journals of one kind, each empty."""

    def __init__(self, kind: str, place: str) -> None:
        self.kind, self.place = kind, place

    def __call__(self, name: str) -> OpenJournal:
        if self.kind == "sqlite":
            return lambda: SQLiteJournal(f"{self.place}/{name}.db", durability="os")
        if self.kind == "redis":
            return lambda: RedisJournal(redis_server.URL, prefix=f"{self.place}-{name}")
        postgres_server.clear(self.place)
        url = postgres_server.URL
        return lambda: PostgresJournal(url, schema=self.place, durability="memory")


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield Place("sqlite", str(tmp_path))
    elif request.param == "redis":
        redis_server.redis_url()
        with redis_server.journal_prefix() as prefix:
            yield Place("redis", prefix)
    else:
        with postgres_server.new_schema() as schema:
            yield Place("postgres", schema)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("net", "memory"),
    [("react", "messages"), ("react", "layered"), ("self_consistency", "messages")],
)
async def test_it_is_so_in_every_journal(
    net: str, memory: str, after: bool, place: Place, tmp_path: Path
) -> None:
    whole = Life(net, memory, tmp_path, place("whole"))
    assert await whole.live()
    wanted = await whole.told()
    step = 1 if net == "react" else 7
    for write in range(1, whole.writes + 1, step):
        life = Life(net, memory, tmp_path, place(str(write)))
        if not await life.live(write, after=after):
            assert await life.live(), write
        await life.check_against(whole, wanted)
