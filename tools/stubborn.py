"""Ending async work that does not stop when it is cancelled."""

from __future__ import annotations

import types
from collections.abc import Awaitable, Coroutine, Generator, Iterator
from typing import Any, TypeVar

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS, in_trio, is_being_cancelled
from agent_brain.common.secrets import get_logger

T = TypeVar("T")

MAX_CANCELLATIONS = 100
"""How often work is cancelled, which happens at each of its awaits, before it is closed."""

logger = get_logger(__name__)

_left: list[Coroutine[Any, Any, Any]] = []  # they did not end, and are not run any more


def ended_when_cancelled(work: Awaitable[T], label: str) -> Awaitable[T]:
    """Return what awaits ``work``, which may catch cancellations and continue.

    Work that is cancelled has ``CLEANUP_SECONDS``, and :data:`MAX_CANCELLATIONS` cancellations, to
    end. Then it is closed: ``GeneratorExit`` is raised where it awaits, and the log says so.

    Args:
        work: What an async function has returned.
        label: What it is, for the log.
    """
    return _driven(work, label) if type(work) is types.CoroutineType else work


@types.coroutine
def _driven(work: Coroutine[Any, Any, T], label: str) -> Generator[Any, Any, T]:
    resume: Any = work.send
    value: Any = None
    watch: _Watch | None = None
    try:
        while True:
            try:
                awaited = resume(value)
            except StopIteration as ended:
                if watch is not None:
                    watch.cancel_again()
                result: T = ended.value
                return result
            if watch is not None and not _is_cancelled():  # the work had cancelled itself
                watch.stop()
                watch = None
            try:
                value, resume = (yield awaited), work.send
                error = getattr(value, "error", None)  # trio sends an Outcome
            except GeneratorExit:
                work.close()
                raise
            except BaseException as raised:
                value, resume, error = raised, work.throw, raised
            if error is not None and isinstance(error, anyio.get_cancelled_exc_class()):
                watch = watch or _Watch()
                if watch.is_over():
                    _close(work, label)
                    raise error
    finally:
        if watch is not None:
            watch.stop()


class _Watch:
    """Counts the cancellations of work.

    A cancel scope cancels at each await. ``Task.cancel`` of asyncio does it once: such work is
    cancelled a second time when its time is up.
    """

    def __init__(self) -> None:
        self._count = 0
        self._expired = False
        self._task: Any = None
        self._timer: Any = None
        if not in_trio() and not _in_cancelled_scope():
            import asyncio

            self._task = asyncio.current_task()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(CLEANUP_SECONDS, self._expire)

    def _expire(self) -> None:
        if self._task.cancelling():
            self._expired = True
            self._task.cancel()

    def is_over(self) -> bool:
        """Count a cancellation; return whether it is one too many."""
        self._count += 1
        if self._expired:
            self._task.uncancel()  # the second one
        return self._expired or self._count > MAX_CANCELLATIONS

    def cancel_again(self) -> None:
        """Cancel the task of work that has ended and swallowed its only cancellation."""
        if self._timer is not None and self._task.cancelling():
            self._task.uncancel()
            self._task.cancel()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _in_cancelled_scope() -> bool:
    return anyio.current_effective_deadline() == float("-inf")


def _is_cancelled() -> bool:
    return _in_cancelled_scope() if in_trio() else is_being_cancelled()


def _close(work: Coroutine[Any, Any, Any], label: str) -> None:
    end, chain = "was closed", [*_awaited_by(work)]
    try:
        work.close()
    except Exception as error:
        end = f"was closed, which raised {type(error).__name__}"
        if left := [one for one in chain if one.cr_frame is not None]:  # GeneratorExit was caught
            _left.extend(left)
            end = "is left where it awaits, as it did not end when it was closed either"
    logger.error(
        "The %s was cancelled, caught that and continued, so it %s. After cleaning up, let it "
        "raise the cancellation again",
        label,
        end,
    )


def _awaited_by(work: Any) -> Iterator[types.CoroutineType[Any, Any, Any]]:
    """Yield a coroutine and those that it awaits."""
    while isinstance(work, types.CoroutineType):
        yield work
        work = work.cr_await
