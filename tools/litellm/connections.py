"""The HTTP clients that litellm keeps open, closed when nobody uses them."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from agent_brain.tools.litellm.setup import is_loaded, load_litellm


class Connections:
    """Counts the streams on each event loop, so that no client is closed while it is in use.

    litellm shares its clients between all callers in a process, and its own way to close them
    closes them all: that would cut the streams of other callers, and it is not safe for clients
    that belong to the event loop of another thread. So the clients of the running loop are closed,
    and not before its last stream has ended. litellm makes new ones when they are needed.
    """

    def __init__(self) -> None:
        self._streams: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
        self._closing: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    def acquire(self) -> None:
        """A stream begins on the running loop."""
        loop = asyncio.get_running_loop()
        self._streams[loop] = self._streams.get(loop, 0) + 1

    async def release(self) -> None:
        """It has ended."""
        loop = asyncio.get_running_loop()
        self._streams[loop] -= 1
        if not self._streams[loop] and loop in self._closing:
            await self.close()

    async def close(self) -> None:
        """Close the clients of the running loop, now or when its last stream has ended.

        Where there can be none, as litellm was not used or this is not asyncio, nothing happens.
        """
        loop = _running_loop()
        if loop is None or not is_loaded():
            return
        if self._streams.get(loop):
            self._closing.add(loop)
            return
        self._closing.discard(loop)
        clients = load_litellm().in_memory_llm_clients_cache
        for key in [key for key in clients.cache_dict if key.endswith(f"-{id(loop)}")]:
            client = clients.cache_dict[key]
            clients.delete_cache(key)
            await _close(client)


connections = Connections()
"""Those of this process: models and embedders share litellm's clients, and so the count."""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _close(client: Any) -> None:
    for name in ("aclose", "close"):
        method = getattr(client, name, None)
        if inspect.iscoroutinefunction(method):
            await method()
            return
