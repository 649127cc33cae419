"""Runs over a journal in Redis, killed at each write: they continue as if they were not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain
from agent_brain.memories import RedisJournal
from agent_brain.memories.journal.redis_scripts import Script
from agent_brain.nets import create_net, net_names
from tests.memories.durable.test_kill_after_each_write import BRANCHING, Effects, clever, make
from tests.nets.models import FunctionLLM
from tests.support.journals import Killed
from tests.support.redis_server import URL, journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

GOAL = "What is 2 + 2?"
FOR_EVER = 10**9


class MortalRedisJournal(RedisJournal):
    """Its process dies at one of its writes, before or after Redis has done it."""

    def __init__(self, prefix: str, dies_at: int, *, after: bool) -> None:
        super().__init__(URL, prefix=prefix)
        self.left = dies_at
        self.after = after
        self.writes = 0

    async def _run(self, script: Script, session: str, *args: str | bytes | int) -> Any:
        self.writes += not script.repeatable
        self.left -= not script.repeatable
        if self.left < 0 or (self.left == 0 and not script.repeatable and not self.after):
            self.left = -1
            raise Killed("dead")
        answer = await super()._run(script, session, *args)
        if self.left == 0 and not script.repeatable:
            self.left = -1
            raise Killed("dead")
        return answer


@pytest.fixture
def prefix() -> Iterator[str]:
    redis_url()
    with journal_prefix() as prefix:
        yield prefix


class Life:
    """One run, in processes that die."""

    def __init__(self, net: str, memory: str, prefix: str) -> None:
        self.net, self.memory, self.prefix = net, memory, prefix
        self.effects = Effects()
        self.writes = 0
        self.result: Any = None

    async def live(self, dies_at: int = FOR_EVER, *, after: bool = False) -> bool:
        """Begin or resume; True if the run came to its end, False if it was killed before."""
        async with MortalRedisJournal(self.prefix, dies_at, after=after) as journal:
            try:
                async with make(self.memory, journal, Path("unused")) as memory:
                    net = create_net(self.net, FunctionLLM(clever))
                    brain = Brain(net, memory, self.effects.tools)
                    began = memory.control.run_id is not None
                    self.result = await (brain.resume() if began else brain.run(GOAL))
            except Killed:
                return False
            finally:
                self.writes += journal.writes
        return True

    async def told(self) -> list[tuple[str, str]]:
        async with (
            RedisJournal(URL, prefix=self.prefix) as journal,
            make(self.memory, journal, Path("unused")) as memory,
        ):
            messages = await memory.goal() + await memory.dump()
        return [(message.role.value, message.content) for message in messages]


async def check(net: str, memory: str, prefix: str, *, after: bool) -> None:
    whole = Life(net, memory, f"{prefix}-whole")
    assert await whole.live()
    wanted = await whole.told()
    assert whole.writes >= 3
    for write in range(1, whole.writes + 1):
        life = Life(net, memory, f"{prefix}-{write}")
        assert not await life.live(write, after=after) or write == whole.writes
        assert await life.live() or write == whole.writes
        assert life.result.answer == whole.result.answer
        told = await life.told()
        assert [role for role, _ in told] == [role for role, _ in wanted]
        unsure = ["may or may not have taken effect" in content for _, content in told]
        for doubt, (_, content), (_, wanted_content) in zip(unsure, told, wanted, strict=True):
            assert doubt or content == wanted_content
        paid = life.effects.done["pay 1"], whole.effects.done["pay 1"]
        assert net in BRANCHING or paid[0] == paid[1] or (paid[0] < paid[1] and any(unsure))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("net", net_names())
async def test_a_kill_at_each_write_changes_nothing(net: str, after: bool, prefix: str) -> None:
    await check(net, "messages", prefix, after=after)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("memory", ["windowed", "layered", "todo"])
async def test_every_memory_continues(memory: str, after: bool, prefix: str) -> None:
    await check("react", memory, prefix, after=after)
