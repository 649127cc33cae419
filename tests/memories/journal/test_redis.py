"""RedisJournal passes the conformance suite of journals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from agent_brain.memories import RedisJournal
from agent_brain.testing import Check, journal_conformance
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


@pytest.mark.parametrize("check", journal_conformance(new_journal), ids=str)
async def test_the_journal_behaves(check: Check) -> None:
    await check()


@pytest.mark.parametrize("check", journal_conformance(with_ttl), ids=str)
async def test_a_journal_with_a_ttl_behaves(check: Check) -> None:
    await check()
