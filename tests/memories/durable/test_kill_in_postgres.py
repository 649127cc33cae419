"""A run over PostgreSQL that is killed after each write: it continues as if it were not."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from agent_brain import Brain
from agent_brain.memories import MessagesMemory, PostgresJournal
from agent_brain.nets import create_net
from tests.memories.durable.test_kill_after_each_write import GOAL, Effects, clever
from tests.nets.models import FunctionLLM
from tests.support.journals import Killed, MortalJournal
from tests.support.postgres_server import URL, new_schema

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.fixture(scope="module")
def schema():
    with new_schema() as name:
        yield name


class Life:
    """One run, through any number of deaths; each process has connections of its own."""

    def __init__(self, net: str, schema: str) -> None:
        self.net, self.schema = net, schema
        self.session = uuid4().hex
        self.effects = Effects()
        self.writes = 0
        self.result: Any = None

    async def live(self, writes: int | None = None, *, after: bool = True) -> bool:
        """Begin or resume; True if the run came to its end, False if it was killed before."""
        store = PostgresJournal(URL, schema=self.schema)
        journal = MortalJournal(store, writes, after=after)
        try:
            memory = MessagesMemory(journal=journal, session=self.session)
            await memory.open()
            brain = Brain(create_net(self.net, FunctionLLM(clever)), memory, self.effects.tools)
            began = memory.control.run_id is not None
            self.result = await (brain.resume() if began else brain.run(GOAL))
        except Killed:
            return False
        finally:
            self.writes += journal.writes
            await store.aclose()
        return True

    async def told(self) -> list[tuple[str, str]]:
        async with PostgresJournal(URL, schema=self.schema, readonly=True) as journal:
            memory = MessagesMemory(journal=journal, session=self.session, readonly=True)
            return [(m.role.value, m.content) for m in await memory.goal() + await memory.dump()]


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("net", ["react", "plan_execute"])
async def test_a_kill_at_each_write_changes_nothing(schema, net, after) -> None:
    whole = Life(net, schema)
    assert await whole.live()
    wanted = await whole.told()
    for write in range(1, whole.writes + 1):
        life = Life(net, schema)
        if not await life.live(write, after=after):
            assert await life.live(), write
        assert life.result.answer == whole.result.answer
        told = await life.told()
        assert [role for role, _ in told] == [role for role, _ in wanted]
        for (_, content), (_, wanted_content) in zip(told, wanted, strict=True):
            assert content == wanted_content or "may or may not have taken effect" in content
        assert life.effects.done["pay 1"] <= whole.effects.done["pay 1"]
