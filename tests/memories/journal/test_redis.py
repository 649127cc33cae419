"""RedisJournal passes the conformance suite of journals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from agent_brain.memories import RedisJournal
from agent_brain.testing import journal_conformance
from tests.support.conformance import pass_all
from tests.support.redis_server import journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

PREFIXES = ExitStack()


def new_journal() -> RedisJournal:
    return RedisJournal(redis_url(), prefix=PREFIXES.enter_context(journal_prefix()))


def with_ttl() -> RedisJournal:
    return RedisJournal(redis_url(), prefix=PREFIXES.enter_context(journal_prefix()), ttl=3600)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    redis_url()
    with PREFIXES:
        yield


@pytest.mark.parametrize("make", [new_journal, with_ttl])
async def test_the_journal_behaves(make: Callable[[], RedisJournal]) -> None:
    await pass_all(journal_conformance(make))
