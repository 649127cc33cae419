"""Working through a list, some of it at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

T = TypeVar("T")


def _always(*_: object) -> bool:
    return True


async def work_off(
    things: Iterable[T],
    work: Callable[[T], Awaitable[object]],
    *,
    at_once: int | None = None,
    may_begin: Callable[[], bool] = _always,
    has_room: Callable[[T], bool] = _always,
) -> None:
    """Do the work for each of several things, in order, some at once.

    The first error cancels the others and is raised as it is, once they have ended.

    Args:
        things: The things.
        work: What to do for each.
        at_once: Maximum number at once; None for all of them.
        may_begin: Returns whether another one may begin; asked before each. If none may, those that
            run are completed.
        has_room: Returns whether a thing may begin now. Otherwise others come first, and it is
            asked again when one of them has ended. Something must run while nothing has room.
    """
    waiting = list(things)
    errors: list[Exception] = []
    ended = anyio.Event()

    async def take_some() -> None:
        nonlocal ended
        while waiting and not errors and may_begin():
            place = next((at for at, thing in enumerate(waiting) if has_room(thing)), None)
            if place is None:
                await ended.wait()
                continue
            try:
                await work(waiting.pop(place))
            except Exception as error:
                errors.append(error)
                group.cancel_scope.cancel()
            finally:
                ended.set()
                ended = anyio.Event()

    async with anyio.create_task_group() as group:
        for _ in range(min(len(waiting), at_once or len(waiting))):
            group.start_soon(take_some)
    if errors:
        raise errors[0]
