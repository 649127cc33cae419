"""A thread with an event loop for the MCP sessions of a brain.

A session of the SDK holds task groups and cancel scopes. They must be left by the task that entered
them, and on trio no task outlives the block in which it was started. But a brain is created by a
plain coroutine (``await Brain.create(…)``) and closed by another one, perhaps in another task or on
another event loop (``run_sync``). So nothing on the caller's loop can own a session unless the
caller keeps a block open. A thread can: one task per server enters the session there, waits, and
leaves it. Calls are sent to that loop and awaited from the caller's, be it asyncio or trio;
cancelling the caller cancels the task in the thread, which tells the server. Closing waits for all
tasks, so that no process, thread or file outlives the brain.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

THREAD = "agent-brain-mcp"


class Host:
    """The thread, from :meth:`open` to :meth:`aclose`."""

    def __init__(self) -> None:
        self._thread: AbstractContextManager[BlockingPortal] | None = None
        self._portal: BlockingPortal

    @classmethod
    async def open(cls) -> Host:
        """Start the thread."""
        host = cls()
        with anyio.CancelScope(shield=True):  # takes milliseconds
            await anyio.to_thread.run_sync(host._open)
        return host

    def start(self, task: Callable[[], Awaitable[object]]) -> None:
        """Start a task in the thread, which ends when the thread does at the latest."""
        self._portal.start_task_soon(task)

    async def call(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Await ``function(*args)`` in the thread; cancelling the caller cancels it."""
        if self._thread is None:
            raise RuntimeError("the host is closed")
        return await self._portal.call_async(function, *args)

    async def aclose(self) -> None:
        """End all tasks in the thread, then the thread; is idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None:
            with anyio.CancelScope(shield=True):  # every wait is bounded
                await self._portal.call_async(self._portal.stop, True)  # noqa: FBT003
                await anyio.to_thread.run_sync(thread.__exit__, None, None, None)

    def _open(self) -> None:
        self._thread = start_blocking_portal("asyncio", name=THREAD)
        self._portal = self._thread.__enter__()

    def __del__(self, warn: Callable[..., Any] = warnings.warn) -> None:
        if self._thread is not None:
            warn(f"unclosed {self!r}: close the brain", ResourceWarning, source=self, stacklevel=2)
