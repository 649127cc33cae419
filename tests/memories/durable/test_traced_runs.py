"""Runs whose model calls are recorded, killed at each write: the record is whole."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from tests.memories.durable.life import Life
from tests.memories.durable.test_kill_after_each_write import Place, place
from tests.support.thorough import thorough

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

__all__ = ["place"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("net", ["react", *thorough(["plan_execute", "self_consistency"])])
async def test_a_kill_at_each_write_changes_nothing(net: str, after: bool, tmp_path: Path) -> None:
    whole = Life(net, "messages", tmp_path, trace=True)
    assert await whole.live()
    wanted = await whole.told()
    assert (await whole.replay()).equal
    # before a write is after the one before it
    every = {"react": 1, "plan_execute": 2, "self_consistency": 11}[net]
    for write in range(1, whole.writes + 1, every):
        life = Life(net, "messages", tmp_path, trace=True)
        if not await life.live(write, after=after):
            assert await life.live(), write
        await life.check_against(whole, wanted)
        before = dict(life.effects.done)
        report = await life.replay()
        assert report.equal, f"write {write}: {report}"
        assert dict(life.effects.done) == before


async def test_every_journal_keeps_the_record(place: Place, tmp_path: Path) -> None:
    async with aclosing(place):
        for write in (None, 3, 5):
            life = Life("react", "messages", tmp_path, place.journal(), trace=True)
            if not await life.live(write):
                assert await life.live()
            report = await life.replay()
            assert report.equal, str(report)
            assert report.requests == 2
