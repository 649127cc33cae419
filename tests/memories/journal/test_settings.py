"""Journals on servers refuse settings that make no sense, before they connect."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agent_brain.memories import PostgresJournal, RedisJournal
from agent_brain.memories.errors import MemoryDefinitionError

Make = Callable[..., Any]
pytest.importorskip("redis")
pytest.importorskip("psycopg")


@pytest.fixture(params=["redis", "postgres"])
def make(request: pytest.FixtureRequest) -> Make:
    if request.param == "redis":
        return lambda **options: RedisJournal("redis://localhost", **options)
    return lambda **options: PostgresJournal("postgresql://localhost/test", **options)


@pytest.mark.parametrize(
    "ttl",
    [0, -1, math.nan, math.inf, True, "x", 1e-9, 0.0005, 1e300, timedelta(0), timedelta.resolution],
    ids=str,
)
def test_a_ttl_that_makes_no_sense_is_refused(make: Make, ttl: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="ttl"):
        make(ttl=ttl)


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, True, "x", None, 1e-9, 1e300])
def test_a_timeout_that_makes_no_sense_is_refused(make: Make, timeout: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="timeout"):
        make(timeout=timeout)


@pytest.mark.parametrize("ttl", [None, 0.001, 1, 10**9, timedelta(days=1)], ids=str)
def test_a_ttl_from_a_millisecond_is_taken(make: Make, ttl: Any) -> None:
    make(ttl=ttl, timeout=0.5)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "x", None])
def test_a_size_of_the_pool_that_is_no_number_from_1_is_refused(size: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="pool_size"):
        PostgresJournal("postgresql://localhost/test", pool_size=size)


@pytest.mark.parametrize("url", ["", "  ", None, 5])
def test_a_url_that_names_nothing_is_refused(url: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="cannot be read"):
        PostgresJournal(url)


@pytest.mark.parametrize("path", ["x", "0x", "1.5", "0/1", "x?db=1"])
@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_a_database_of_redis_that_is_no_number_is_refused(scheme: str, path: str) -> None:
    with pytest.raises(MemoryDefinitionError, match="cannot be read"):
        RedisJournal(f"{scheme}://user:word@localhost/{path}")


@pytest.mark.parametrize("path", ["", "/", "/3", "?db=3", "/3?socket_timeout=5"])
def test_a_database_of_redis_that_is_a_number_is_taken(path: str) -> None:
    wanted = 3 if "3" in path else 0
    assert f"/{wanted}'" in repr(RedisJournal(f"redis://localhost{path}"))
