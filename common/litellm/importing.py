"""Import litellm without its side effects on the process.

litellm's import adds filters to other libraries' loggers (``asyncio``, ``uvicorn.access``, …) that
import more of litellm when a record passes. While litellm is half loaded, logging in any other
thread then fails or deadlocks. The import also sets levels of such loggers, hides warnings of all
modules, appends the working directory to ``sys.path``, and takes over the root logger and
``sys.excepthook`` if ``JSON_LOGS`` is set.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

_NAME = "litellm"
_HIDDEN_IN = r"(litellm|pydantic)\b"  # pydantic warns about litellm's classes
_LATER = ("openai.resources", "litellm.litellm_core_utils.default_encoding")
"""Modules that litellm imports in its first call, which would block the event loop for 0.5 s."""


def import_litellm() -> Any:
    """Import litellm, and the modules that its first call imports.

    If the program has imported litellm itself, its side effects remain.
    """
    with ExitStack() as stack:
        stack.enter_context(_environment())
        stack.enter_context(_no_garbage_collection())
        if _NAME not in sys.modules:
            for contained in (_loggers, _warning_filters, _search_path):
                stack.enter_context(contained())
        litellm = importlib.import_module(_NAME)
        with suppress(ImportError, AttributeError):  # another version of litellm
            for module in _LATER:
                importlib.import_module(module)
            litellm.ModelResponseStream()  # pydantic builds these classes at their first use,
            litellm.ModelResponse()  # and issues warnings then
    return litellm


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Do not look for garbage meanwhile: nearly all that is made stays, and the search takes long.

    It takes a quarter of the time of the import.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _loggers() -> Iterator[None]:
    """Ignore litellm's changes to loggers of others; undoing them afterwards would be too late."""
    thread = threading.get_ident()

    def guarded(method: Callable[[logging.Logger, Any], None]) -> Callable[..., None]:
        def change(logger: logging.Logger, value: Any) -> None:
            by_litellm = threading.get_ident() == thread and _caller() == _NAME
            if not by_litellm or logger.name.startswith("LiteLLM"):
                method(logger, value)

        return change

    with ExitStack() as stack:
        for name in ("addFilter", "setLevel"):
            method = getattr(logging.Logger, name)
            stack.callback(_put_back, logging.Logger, name, vars(logging.Logger).get(name))
            setattr(logging.Logger, name, guarded(method))
        yield


def _caller() -> str:
    """Return the package of the caller's caller."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0]


def _put_back(owner: type, name: str, value: object) -> None:
    if value is None:
        delattr(owner, name)  # it was inherited
    else:
        setattr(owner, name, value)


@contextmanager
def _warning_filters() -> Iterator[None]:
    """Restrict the filters that litellm adds for all modules to its own and pydantic's."""
    before = list(warnings.filters)
    yield
    filters: Any = warnings.filters
    for entry in [entry for entry in filters if entry not in before]:
        action, message, category, module, _ = entry
        if category is Warning and message is not None and module is None:
            filters.remove(entry)
            warnings.filterwarnings(action, message.pattern, category, _HIDDEN_IN)


@contextmanager
def _search_path() -> Iterator[None]:
    """Remove the working directory from ``sys.path`` if litellm has appended it."""
    folder, length = os.getcwd(), len(sys.path)  # noqa: PTH109 - the text that litellm appends
    yield
    if len(sys.path) > length and sys.path[-1] == folder:
        sys.path.pop()


@contextmanager
def _environment() -> Iterator[None]:
    """Hide ``JSON_LOGS`` from litellm, and keep tiktoken's cache folder."""
    kept = {"JSON_LOGS": os.environ.pop("JSON_LOGS", None)}
    kept["TIKTOKEN_CACHE_DIR"] = os.environ.get("TIKTOKEN_CACHE_DIR")
    try:
        yield
    finally:
        os.environ.update({name: value for name, value in kept.items() if value is not None})
