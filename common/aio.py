"""Helpers for async code: awaiting, cancellation, worker threads and working through a list."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")

CLEANUP_SECONDS = 5.0
"""How long cleaning up may take after a cancellation or a failure."""

_GRACE = 0.5  # seconds that an abandoned thread gets before a message is written


async def maybe_await(value: T | Awaitable[T]) -> T:
    """Return what a function returned that may be sync or async."""
    if inspect.isawaitable(value):
        awaited: T = await value
        return awaited
    return value


def in_event_loop() -> bool:
    """Return whether the caller runs in an event loop."""
    try:
        anyio.get_current_task()
    except anyio.NoEventLoopError:
        return False
    return True


def in_trio() -> bool:
    """Return whether the caller runs in a task of trio."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_task())


def is_being_cancelled() -> bool:
    """Return whether asyncio's CancelledError is meant for the current task, not an awaited one."""
    import asyncio  # here, as programs on trio do not import it

    try:
        task = asyncio.current_task()
    except RuntimeError:  # trio, which cancels with an exception of its own
        return False
    return task is None or task.cancelling() > 0


def is_stray_cancellation(error: BaseException) -> bool:
    """Return whether ``error`` is asyncio's CancelledError, not meant for the current task."""
    import asyncio  # here, as programs on trio do not import it

    return isinstance(error, asyncio.CancelledError) and not is_being_cancelled()


def is_async_function(function: Callable[..., Any]) -> bool:
    """Return whether a function, or a callable object, is async."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


def not_async(
    function: Callable[[T], object], refusal: Callable[[str], Exception]
) -> Callable[[T], bool]:
    """Return ``function``, whose answers are taken as true or false; a coroutine would be true.

    Args:
        function: A function of one argument.
        refusal: Makes the error from its text.

    Raises:
        Exception: What ``refusal`` returns: the function is async, or when called returns something
            to await.
    """
    text = f"must not be async: {function!r:.200}"
    if is_async_function(function):
        raise refusal(text)

    def answer(argument: T) -> bool:
        answered = function(argument)
        if inspect.isawaitable(answered):
            if inspect.iscoroutine(answered):
                answered.close()
            raise refusal(text)
        return bool(answered)

    return answer


async def run_in_thread(name: str, function: Callable[[], T], *, kind: str = "tool") -> T:
    """Call ``function`` in a worker thread, which continues after a cancelled call has returned."""
    label = f"{kind} {name!r}"
    begun, ended = threading.Event(), threading.Event()

    def call() -> tuple[T]:  # a tuple: trio refuses a thread's function that returns a coroutine
        thread = threading.current_thread()
        usual, thread.name = thread.name, label
        begun.set()
        try:
            return (function(),)
        finally:
            thread.name = usual
            ended.set()

    try:
        (result,) = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except BaseException:
        if begun.is_set() and not ended.is_set():
            threading.Thread(target=_watch, args=(label, ended), daemon=True).start()
        raise
    return result


def _watch(label: str, ended: threading.Event) -> None:
    while not ended.wait(_GRACE):
        if not threading.main_thread().is_alive():
            if not ended.wait(_GRACE):
                sys.stderr.write(
                    f"The program waits for the {label}, which was cancelled and still runs "
                    "in a thread; press Ctrl-C to exit at once\n"
                )
                sys.stderr.flush()
            return


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
