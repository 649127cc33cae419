"""The one place that imports litellm: on first use, quiet, and without a network call of its own."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
import sys
from functools import cache
from typing import Any

import anyio.to_thread

from agent_brain.tools.errors import AgentBrainError

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


class EventLoopError(AgentBrainError, RuntimeError):
    """Something that needs asyncio was used on another event loop."""


@cache
def load_litellm() -> Any:
    """Import litellm, set up for a library that runs inside other people's programs.

    No download of its price table (unless ``LITELLM_LOCAL_MODEL_COST_MAP`` says otherwise), nothing
    printed. Its log is switched off unless ``LITELLM_LOG`` is set or the program had imported
    litellm before: then the log is the program's own affair.
    """
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    silence = "litellm" not in sys.modules and "LITELLM_LOG" not in os.environ
    litellm: Any = importlib.import_module("litellm")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    if silence:
        for name in _LOGGERS:
            logging.getLogger(name).disabled = True
    return litellm


async def litellm_on_asyncio() -> Any:
    """litellm, imported in a thread the first time, as that takes a second or more.

    Raises:
        EventLoopError: The running event loop is not asyncio's.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise EventLoopError(
            "LiteLLM needs asyncio, as litellm itself does, but this is another event loop. Run "
            'the program with asyncio.run(…) or anyio.run(…, backend="asyncio"), or use a model '
            "that is an LLM subclass of your own"
        ) from None
    if load_litellm.cache_info().currsize:
        return load_litellm()
    return await anyio.to_thread.run_sync(load_litellm, abandon_on_cancel=True)


class Connections:
    """The HTTP clients that litellm keeps open, counted so that none is closed while in use.

    litellm shares clients between all callers of a process. Closing them when one caller is done
    would cut the streams of the others, and closing those of another thread's event loop is not
    safe at all; so the clients of the running loop are closed when its last stream has ended.
    """

    def __init__(self) -> None:
        self._in_use: dict[int, int] = {}
        self._closing: set[int] = set()

    def acquire(self) -> None:
        """A stream begins on the running loop."""
        loop = id(asyncio.get_running_loop())
        self._in_use[loop] = self._in_use.get(loop, 0) + 1

    async def release(self) -> None:
        """It has ended."""
        loop = id(asyncio.get_running_loop())
        self._in_use[loop] -= 1
        if not self._in_use[loop]:
            del self._in_use[loop]
            if loop in self._closing:
                await self.close()

    async def close(self) -> None:
        """Close the clients of the running loop, now or when its last stream has ended."""
        loop = id(asyncio.get_running_loop())
        if loop in self._in_use:
            self._closing.add(loop)
            return
        self._closing.discard(loop)
        clients = load_litellm().in_memory_llm_clients_cache
        for key in [key for key in clients.cache_dict if key.endswith(f"-{loop}")]:
            client = clients.cache_dict[key]
            clients.delete_cache(key)
            await _close(client)


async def _close(client: Any) -> None:
    for name in ("aclose", "close"):
        method = getattr(client, name, None)
        if inspect.iscoroutinefunction(method):
            await method()
            return
