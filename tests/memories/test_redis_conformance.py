"""Every built-in memory lasts in a journal in Redis."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from agent_brain.memories import MessagesMemory, RedisJournal
from agent_brain.testing import memory_conformance
from tests.memories.test_conformance import holds, make_memory
from tests.support.conformance import pass_all
from tests.support.redis_server import journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

MEMORIES = [("messages", None), ("summary", 1), ("todo-messages", None)]
MEMORIES += [(name, size) for name in ("windowed", "layered") for size in (1, 30)]


@pytest.mark.parametrize("name, size", MEMORIES)
async def test_a_memory_lasts(name: str, size: int | None) -> None:
    def made(journal, session, tenant):
        return make_memory(name, size, journal=journal, session=session, tenant=tenant)

    with ExitStack() as prefixes:

        def new_journal() -> RedisJournal:
            return RedisJournal(redis_url(), prefix=prefixes.enter_context(journal_prefix()))

        general = len(memory_conformance(MessagesMemory, holds=holds(name, size)))
        every = memory_conformance(
            MessagesMemory, journaled=made, journal=new_journal, holds=holds(name, size)
        )
        await pass_all(every[general:])
