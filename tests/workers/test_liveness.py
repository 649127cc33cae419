"""The runs of a worker that has died are taken over by one of the others."""

from __future__ import annotations

import pytest

from agent_brain.memories import RamJournal
from agent_brain.workers.liveness import Liveness

pytestmark = pytest.mark.anyio


async def test_a_worker_that_fails_to_take_over_leaves_it_to_another() -> None:
    journal, taken = RamJournal(), []

    async def fail(worker: str) -> None:
        raise OSError("the queue is down")

    async def take_over(worker: str) -> None:
        taken.append(worker)

    with pytest.raises(OSError, match="down"):
        await Liveness(journal, "first", seconds=30).replace_dead("dead", fail)
    assert await Liveness(journal, "second", seconds=30).replace_dead("dead", take_over)
    assert taken == ["dead"]
