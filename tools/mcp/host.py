"""Where MCP sessions live: a thread with an event loop of its own, one for all servers of a brain.

A session of the SDK holds task groups and cancel scopes. These must be left by the task that has
entered them, and on trio no task can be had that outlives the block it was started in. But a brain
is made by a plain coroutine (``await Brain.create(…)``) and closed by another, perhaps in another
task, perhaps on another loop (``run_sync``). So nothing on the caller's loop can own a session
without asking the caller to hold a block open. A thread can: there, one task a server enters the
session, waits, and leaves it. Calls are sent to that loop and awaited from the caller's, be it
asyncio or trio; cancelling the caller cancels the task there, which tells the server. Closing waits
for all of it, so that no process, thread or file outlives the brain.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup, TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

THREAD = "agent-brain-mcp"


class Host:
    """The thread. Made by :meth:`open`, ended by :meth:`aclose`.

    Attributes:
        group: Where tasks are started that live as long as the thread; for use in the thread.
    """

    def __init__(self) -> None:
        self.group: TaskGroup
        self._stop: anyio.Event
        self._thread: AbstractContextManager[BlockingPortal] | None = None
        self._portal: BlockingPortal
        self._main: Future[None]

    @classmethod
    async def open(cls) -> Host:
        """Start the thread."""
        host = cls()
        with anyio.CancelScope(shield=True):  # milliseconds, and half a thread cannot be ended
            await anyio.to_thread.run_sync(host._open)
        return host

    async def call(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Await ``function(*args)`` in the thread; cancelling this cancels it there.

        Raises:
            RuntimeError: The host has been closed.
        """
        if self._thread is None:
            raise RuntimeError("the host is closed")
        return await self._portal.call_async(function, *args)

    async def aclose(self) -> None:
        """End all that runs in the thread, then the thread; twice is fine."""
        thread, self._thread = self._thread, None
        if thread is not None:
            with anyio.CancelScope(shield=True):  # every wait in there is bounded
                await anyio.to_thread.run_sync(self._close, thread)

    def _open(self) -> None:
        self._thread = start_blocking_portal("asyncio", name=THREAD)
        self._portal = self._thread.__enter__()
        self._main, _ = self._portal.start_task(self._run)

    async def _run(self, *, task_status: TaskStatus[None]) -> None:
        async with anyio.create_task_group() as self.group:
            self._stop = anyio.Event()
            task_status.started()
            await self._stop.wait()
            self.group.cancel_scope.cancel()

    def _close(self, thread: AbstractContextManager[BlockingPortal]) -> None:
        self._portal.call(self._stop.set)
        self._main.result()
        thread.__exit__(None, None, None)

    def __del__(self, warn: Callable[..., Any] = warnings.warn) -> None:
        if self._thread is not None:
            warn(f"unclosed {self!r}: close the brain", ResourceWarning, source=self, stacklevel=2)
