"""Waiting that another task can interrupt."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import sniffio

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class Waiter:
    """Waits for the items of a stream until it is interrupted or its time is up.

    On asyncio, without a deadline, it interrupts as ``asyncio.timeout`` does: a cancel scope for
    each item would take longer than most items. No scope is open between two items.

    Attributes:
        interrupted: Whether :meth:`interrupt` was called.
    """

    __slots__ = ("_by_scope", "_cancelled", "_scope", "_task", "interrupted")

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None  # that waits
        self._scope: anyio.CancelScope | None = None
        self._cancelled = False  # the task, and it has not noticed
        self._by_scope: bool | None = None  # known once it waits
        self.interrupted = False

    @property
    def late(self) -> bool:
        """Whether the time was up while it waited."""
        return not self.interrupted and self._scope is not None and self._scope.cancel_called

    def interrupt(self) -> None:
        """End the wait, if there is one; may be called by any task of the event loop."""
        if self.interrupted:
            return
        self.interrupted = True
        if self._scope is not None:
            self._scope.cancel()
        elif self._task is not None:
            self._cancelled = self._task.cancel()

    async def next_or_none(
        self, stream: AsyncGenerator[T, None], deadline: float | None
    ) -> tuple[T | None, bool]:
        """Return the next item, None at the end; and whether the wait was ended instead.

        Args:
            stream: The items, none of which is None.
            deadline: When the time is up, on the clock of the event loop; None for never.
        """
        if self._by_scope is None:
            self._by_scope = deadline is not None or sniffio.current_async_library() != "asyncio"
        if not self._by_scope:
            return await self._next_in_task(stream)
        limit = sys.float_info.max if deadline is None else deadline
        with anyio.CancelScope(deadline=limit) as self._scope:
            if self.interrupted:
                self._scope.cancel()
            return await anext(stream, None), False
        return None, True

    async def _next_in_task(self, stream: AsyncGenerator[T, None]) -> tuple[T | None, bool]:
        import asyncio

        self._task = task = asyncio.current_task()
        assert task is not None
        try:
            return await anext(stream, None), False
        except asyncio.CancelledError:
            if self._cancelled and task.cancelling() == 1:
                return None, True
            raise
        finally:
            self._task = None
            if self._cancelled:
                self._cancelled = False
                task.uncancel()
