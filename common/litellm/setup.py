"""Load litellm on first use, quietly and without network calls."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from functools import cache
from typing import Any

import anyio.to_thread

from agent_brain.common.errors import EventLoopError
from agent_brain.common.litellm.importing import import_litellm

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_loading = threading.Lock()


@cache
def load_litellm() -> Any:
    """Import litellm and set it up for use inside of a library.

    It does not download its price table (unless ``LITELLM_LOCAL_MODEL_COST_MAP`` says otherwise)
    and prints nothing. If the program has not imported litellm before, its log is switched off
    (unless ``LITELLM_LOG`` is set), its callbacks get no message content, and the loggers and
    warnings of other libraries are not changed. Thread-safe.
    """
    with _loading:
        first = "litellm" not in sys.modules
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        litellm = import_litellm()
        litellm.suppress_debug_info = True
        litellm.telemetry = False
        litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize  # a table repeats itself, too
        if first:
            litellm.turn_off_message_logging = True
        if first and "LITELLM_LOG" not in os.environ:
            for name in _LOGGERS:
                logging.getLogger(name).disabled = True
        return litellm


def is_loaded() -> bool:
    """Return whether :func:`load_litellm` has been called."""
    return load_litellm.cache_info().currsize > 0


async def litellm_on_asyncio() -> Any:
    """Return litellm; the first call imports it in a thread, as that takes a second or more."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise EventLoopError(
            "LiteLLM needs asyncio, as litellm itself does, but this is another event loop. Run "
            'the program with asyncio.run(…) or anyio.run(…, backend="asyncio"), or use a model '
            "that is an LLM subclass of your own"
        ) from None
    if is_loaded():
        return load_litellm()
    return await anyio.to_thread.run_sync(load_litellm, abandon_on_cancel=True)


def model_entry(model: str) -> dict[str, Any] | None:
    """Return prices and abilities of ``model`` from litellm's table; None if it is not there.

    litellm's own functions for this may call a server or print.
    """
    table: dict[str, dict[str, Any]] = load_litellm().model_cost
    if model in table:
        return table[model]
    provider, _, name = model.partition("/")
    entry = table.get(name)
    if entry is not None and str(entry.get("litellm_provider")).startswith(provider):
        return entry
    return None


def provider_of(model: str) -> str | None:
    """Return the provider of ``model`` by its name or litellm's table; None if unknown."""
    if "/" in model:
        return model.partition("/")[0]
    entry = model_entry(model)
    return None if entry is None else entry.get("litellm_provider")
