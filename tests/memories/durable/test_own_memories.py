"""Memories of a user's own over a journal, killed at each write: runs continue as if they were not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memories.durable.life import Life
from tests.support.thorough import thorough

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.mark.parametrize("memory", ["own", "own with state"])
@pytest.mark.parametrize(
    ("net", "every"), [("react", 1), *thorough([("plan_execute", 3), ("debate", 11)])]
)
async def test_a_kill_at_a_write_changes_nothing(
    net: str, every: int, memory: str, tmp_path: Path
) -> None:
    whole = Life(net, memory, tmp_path)
    assert await whole.live()
    wanted = await whole.told()
    for write in range(1, whole.writes + 1, every):
        for after in (False, True):
            life = Life(net, memory, tmp_path)
            if not await life.live(write, after=after):
                assert await life.live(), write
            await life.check_against(whole, wanted)
