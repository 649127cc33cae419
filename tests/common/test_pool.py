"""Work on a list, some of it at once: in order, within limits, and with the first error raised."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_brain.common.aio import work_off

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Work:
    """Notes what began and ended, and how many things were worked on at once."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.most = 0

    async def __call__(self, thing: int) -> None:
        self.begun.append(thing)
        self.most = max(self.most, len(self.begun) - len(self.ended))
        for _ in range(3):
            await checkpoint()
        self.ended.append(thing)


@pytest.mark.parametrize("at_once, most", [(1, 1), (3, 3), (None, 7), (20, 7)])
async def test_things_begin_in_order_and_as_many_as_may(at_once, most):
    work = Work()

    await work_off(range(7), work, at_once=at_once)

    assert work.begun == sorted(work.ended) == [*range(7)]
    assert work.most == most


async def test_nothing_to_do_is_done():
    await work_off([], Work(), at_once=3)


async def test_no_other_begins_once_none_may_and_those_that_run_are_completed():
    work = Work()

    await work_off(range(9), work, at_once=2, may_begin=lambda: len(work.begun) < 4)

    assert sorted(work.ended) == sorted(work.begun) == [0, 1, 2, 3]


async def test_what_has_no_room_is_passed_by_and_done_later():
    work = Work()
    running: list[int] = []

    async def one(thing: int) -> None:
        running.append(thing % 2)
        await work(thing)
        running.remove(thing % 2)

    with anyio.fail_after(60):
        await work_off(
            [0, 2, 4, 1, 3], one, at_once=3, has_room=lambda thing: thing % 2 not in running
        )

    assert work.begun[:2] == [0, 1]
    assert sorted(work.ended) == [0, 1, 2, 3, 4]
    assert work.most == 2


async def test_the_first_error_ends_the_others_and_is_raised_as_it_is():
    stopped: list[int] = []

    async def one(thing: int) -> None:
        if thing == 2:
            raise KeyError(thing)
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(thing)

    with pytest.raises(KeyError, match="2"):
        await work_off(range(9), one, at_once=3)

    assert sorted(stopped) == [0, 1]


async def test_a_cancellation_ends_all():
    work = Work()

    async def one(thing: int) -> None:
        await work(thing)
        if thing == 1:
            scope.cancel()
        await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        await work_off(range(5), one, at_once=2)

    assert scope.cancelled_caught
    assert work.begun == [0, 1]
