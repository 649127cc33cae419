"""Close the HTTP clients that litellm keeps open."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakSet

import anyio

from agent_brain.common.litellm.setup import is_loaded, load_litellm

T = TypeVar("T")


class Connections:
    """Counts the streams on each event loop, so that no client is closed while it is in use.

    litellm shares its clients between all callers in a process, and closes them only all at once:
    that would cut the streams of other callers, and is unsafe for clients that belong to the event
    loop of another thread. So only the clients of the running loop are closed, after its last
    stream has ended. litellm makes new ones when needed.
    """

    def __init__(self) -> None:
        self._streams: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
        self._closing: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    def acquire(self) -> None:
        """Count a new stream on the running loop."""
        loop = asyncio.get_running_loop()
        self._streams[loop] = self._streams.get(loop, 0) + 1

    async def release(self) -> None:
        """Count the end of a stream."""
        loop = asyncio.get_running_loop()
        self._streams[loop] -= 1
        if not self._streams[loop] and loop in self._closing:
            await self.close()

    async def close(self) -> None:
        """Close the clients of the running loop, now or when its last stream has ended.

        Does nothing if litellm was not used, or on an event loop other than asyncio's.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if not is_loaded():
            return
        if self._streams.get(loop):
            self._closing.add(loop)
            return
        self._closing.discard(loop)
        litellm = load_litellm()
        clients = litellm.in_memory_llm_clients_cache
        of_this_loop = clients.update_cache_key_with_event_loop("")
        for key, client in list(clients.cache_dict.items()):
            if key.endswith(of_this_loop):
                clients.delete_cache(key)
                await _close(client)
            elif _loop_of(client) is loop:
                await _close(client)
        shared = vars(litellm).get("module_level_aclient")  # of no loop; made when first used
        if shared is not None and _loop_of(shared) is loop:
            await _close(shared)


async def _close(client: object) -> None:
    methods = (getattr(client, name, None) for name in ("aclose", "close"))
    close = next(filter(inspect.iscoroutinefunction, methods), None)
    if close is not None:
        await close()


def _loop_of(client: object) -> object:
    """Return the event loop that the open session of a client belongs to; None if unknown."""
    found: object = client
    for name in ("_client", "_transport", "client", "_loop"):
        found = getattr(found, name, None)
    return found


connections = Connections()
"""The connections of the process, shared by models and embedders."""


def run_and_release(run: Callable[[], Awaitable[T]]) -> T:
    """Run a function in an event loop of its own, and close the clients of that loop."""

    async def run_and_close() -> T:
        try:
            return await run()
        finally:
            await connections.close()  # nobody else can, once the event loop has ended

    return anyio.run(run_and_close)
