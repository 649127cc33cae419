"""The pool: each value is opened once, shared, and closed when it is surplus, idle or discarded."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from agent_brain.serving.pool import Pool
from tests.support.clock import clock_backend, fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return clock_backend(request.param)


class Value:
    def __init__(self, key: str) -> None:
        self.key = key
        self.closed = 0


class Shelf:
    """A pool of values, and every value that it has opened."""

    def __init__(self, *, most: int = 10, of_group: int = 10, idle: float | None = None) -> None:
        self.opened: list[Value] = []
        self.pool: Pool[str, Value] = Pool(
            self.open, self.close, most=most, idle=idle, group=self.group, most_of_group=of_group
        )
        self.error: BaseException | None = None
        self.closing = anyio.Event()

    def group(self, key: str) -> Hashable | None:
        """The part before the slash; None without one."""
        return key.partition("/")[0] if "/" in key else None

    async def close(self, value: Value) -> None:
        self.closing.set()
        await anyio.wait_all_tasks_blocked()
        value.closed += 1
        if self.error is not None:
            raise self.error

    async def open(self, key: str) -> Value:
        await anyio.lowlevel.checkpoint()
        self.opened.append(Value(key))
        return self.opened[-1]

    def take(self, key: str) -> Any:
        return self.pool.take(key)

    async def touch(self, *keys: str) -> None:
        for key in keys:
            async with self.take(key):
                pass

    async def hold(self, key: str, *, task_status: TaskStatus[None]) -> None:
        async with self.take(key):
            task_status.started()
            await anyio.sleep_forever()

    @property
    def left(self) -> list[str]:
        """The keys of the values that are open."""
        return [value.key for value in self.opened if not value.closed]


async def test_a_value_that_is_taken_while_others_are_closed_stays_open():
    shelf, expired = Shelf(idle=0), anyio.Event()

    async def expire() -> None:
        await shelf.pool.expire()
        expired.set()

    await shelf.touch("a", "b")
    async with anyio.create_task_group() as group:
        group.start_soon(expire)
        await shelf.closing.wait()
        async with shelf.take("b"):
            await expired.wait()
            assert shelf.left == ["b"]


async def test_users_of_a_key_share_one_value():
    shelf = Shelf()
    async with shelf.take("a") as one, shelf.take("a") as other:
        assert one is other
    await shelf.touch("a")
    assert len(shelf.opened) == 1


async def test_users_who_come_while_it_opens_share_one_value():
    shelf = Shelf()
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(shelf.touch, "a")
    assert len(shelf.opened) == 1


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_the_least_recently_used_is_closed_when_there_are_too_many(most):
    shelf = Shelf(most=most)
    await shelf.touch("a", "b", "c", "d", "a")
    assert set(shelf.left) == set(["a", "d", "c"][:most])
    assert len(shelf.pool) == most


async def test_what_is_used_is_not_closed_even_if_there_are_too_many():
    shelf = Shelf(most=1)
    async with shelf.take("a"), shelf.take("b"):
        assert shelf.left == ["a", "b"]
    await shelf.touch("c")
    assert shelf.left == ["c"]


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_a_group_that_is_full_closes_its_own_and_no_other(most):
    shelf = Shelf(of_group=most)
    await shelf.touch("bob/1", "free", *[f"ann/{n}" for n in range(6)])
    assert shelf.left == ["bob/1", "free", *[f"ann/{n}" for n in range(6 - most, 6)]]


async def test_a_full_group_in_a_full_pool_closes_only_what_is_needed():
    shelf = Shelf(most=3, of_group=2)
    await shelf.touch("bob/1", "ann/1", "ann/2", "ann/3")
    assert shelf.left == ["bob/1", "ann/2", "ann/3"]


async def test_it_counts_what_is_used():
    shelf = Shelf()
    async with shelf.take("ann/1"), shelf.take("ann/1"), shelf.take("ann/2"), shelf.take("x"):
        assert (shelf.pool.used, shelf.pool.used_of("ann"), shelf.pool.used_of("bob")) == (3, 2, 0)
        assert shelf.pool.is_used("x")
        shelf.pool.discard("ann/2")
        assert shelf.pool.used_of("ann") == 2
    assert (shelf.pool.used, shelf.pool.used_of("ann")) == (0, 0)
    assert not shelf.pool.is_used("x")


async def test_idle_values_are_closed_after_their_time():
    shelf = Shelf(idle=10)
    with fake_clock() as clock:
        await shelf.touch("a")
        clock.advance(6)
        await shelf.touch("b")
        clock.advance(5)
        await shelf.pool.expire()
    assert shelf.left == ["b"]


async def test_values_that_expire_while_others_are_evicted_do_no_harm():
    shelf = Shelf(idle=1)
    with fake_clock() as clock:
        await shelf.touch("a", "b", "c")
        clock.advance(2)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(shelf.pool.expire)
            tasks.start_soon(shelf.pool.expire)
            for key in "cba":
                tasks.start_soon(shelf.pool.evict, key)
    assert shelf.left == []
    assert [value.closed for value in shelf.opened] == [1, 1, 1]


async def test_a_failed_opening_fails_its_user_and_leaves_no_place():
    shelf = Shelf()

    async def fails(key: str) -> Value:
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        async with shelf.pool.take("a", fails):
            pass
    assert "a" not in shelf.pool
    await shelf.touch("a")
    assert shelf.left == ["a"]


async def test_the_next_user_opens_again_after_a_failed_opening():
    shelf = Shelf()
    began = anyio.Event()

    async def fails(key: str) -> Value:
        began.set()
        await anyio.wait_all_tasks_blocked()
        raise OSError("no disk")

    async def first() -> None:
        with pytest.raises(OSError, match="no disk"):
            async with shelf.pool.take("a", fails):
                pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await began.wait()
        tasks.start_soon(shelf.touch, "a")
    assert shelf.left == ["a"]


async def test_an_opening_that_is_cancelled_leaves_no_place():
    shelf = Shelf()

    async def hangs(key: str) -> Value:
        await anyio.sleep_forever()
        raise AssertionError

    with fake_clock(), anyio.move_on_after(1):
        async with shelf.pool.take("a", hangs):
            pass
    assert "a" not in shelf.pool
    assert shelf.pool.used == 0


async def test_a_user_who_comes_while_it_is_closed_gets_a_new_one():
    shelf = Shelf()
    await shelf.touch("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shelf.pool.evict, "a")
        await shelf.closing.wait()
        await shelf.touch("a")
    assert [value.closed for value in shelf.opened] == [1, 0]


async def test_a_discarded_value_is_closed_when_its_last_user_leaves():
    shelf = Shelf()
    async with shelf.take("a"):
        async with shelf.take("a"):
            shelf.pool.discard("a")
            async with shelf.take("a") as new:
                assert new is shelf.opened[1]
        assert shelf.left == ["a", "a"]
    assert [value.closed for value in shelf.opened] == [1, 0]


async def test_a_value_that_cannot_be_closed_is_no_problem_of_others(caplog):
    shelf = Shelf(most=1)
    shelf.error = OSError("no disk")
    await shelf.touch("a", "b")
    assert shelf.left == ["b"]
    assert "could not be closed" in caplog.text


async def test_closing_the_pool_closes_all_even_if_one_fails(caplog):
    shelf = Shelf()
    shelf.error = OSError("no disk")
    async with shelf.take("a"):
        await shelf.touch("b", "c")
        await shelf.pool.aclose()
    assert [value.closed for value in shelf.opened] == [1, 1, 1]
    assert caplog.text.count("could not be closed") == 3


async def test_a_cancelled_user_leaves_in_order():
    shelf = Shelf(most=1)
    async with anyio.create_task_group() as tasks:
        await tasks.start(shelf.hold, "a")
        await shelf.touch("b", "c")
        assert shelf.left == ["a", "c"]
        tasks.cancel_scope.cancel()
    await shelf.touch("d")
    assert shelf.left == ["d"]
    assert shelf.pool.used == 0
