"""Load litellm on first use, quietly and without network calls, and close its connections.

litellm's import adds filters to other libraries' loggers (``asyncio``, ``uvicorn.access``, …) that
import more of litellm when a record passes. While litellm is half loaded, logging in any other
thread then fails or deadlocks. The import also sets levels of such loggers, hides warnings of all
modules, appends the working directory to ``sys.path``, and takes over the root logger and
``sys.excepthook`` if ``JSON_LOGS`` is set.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import anyio
import anyio.to_thread

from agent_brain.common.errors import EventLoopError
from agent_brain.common.suggest import did_you_mean

T = TypeVar("T")

_NAME = "litellm"
_HIDDEN_IN = r"(litellm|pydantic)\b"  # pydantic warns about litellm's classes
_LATER = ("openai.resources", "litellm.litellm_core_utils.default_encoding")
"""Modules that litellm imports in its first call, which would block the event loop for 0.5 s."""
_PROVIDERS = "types/utils.py"
_PRICES = "model_prices_and_context_window_backup.json"
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
            caller = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0]
            by_litellm = threading.get_ident() == thread and caller == _NAME
            if not by_litellm or logger.name.startswith("LiteLLM"):
                method(logger, value)

        return change

    with ExitStack() as stack:
        for name in ("addFilter", "setLevel"):
            method = getattr(logging.Logger, name)
            stack.callback(_put_back, logging.Logger, name, vars(logging.Logger).get(name))
            setattr(logging.Logger, name, guarded(method))
        yield


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


def faults_in_name(
    name: str,
    params: Mapping[str, Any],
    *,
    modes: Collection[str] = ("chat", "responses"),
    example: str = "openai/gpt-4.1",
) -> Iterator[str]:
    """Yield what is wrong with the name of a model; nothing if only its provider can judge it.

    litellm is imported only for a name that looks wrong, and has the last word on it.

    Args:
        name: The name.
        params: What is passed with each request.
        modes: The kinds of models in litellm's table that may be meant.
        example: A right name.
    """
    provider, slash, rest = name.partition("/")
    no_part = slash and not (provider and rest) and "custom_llm_provider" not in params
    if no_part or re.search(r"\s", name):
        yield f"{name!r} names no model: write PROVIDER/MODEL without spaces, as {example!r}"
        return
    if "custom_llm_provider" in params or _is_known(name):
        return
    address = params.get("api_base") or params.get("base_url")
    litellm = load_litellm()
    if name in litellm.model_alias_map or name in litellm.model_cost:
        return
    try:
        litellm.get_llm_provider(name, api_base=address)
    except litellm.BadRequestError:
        providers = {str(getattr(one, "value", one)) for one in litellm.provider_list}
        if slash:
            yield f"{name!r}: there is no provider {provider!r}.{did_you_mean(provider, providers)}"
        elif name.casefold() in providers:
            yield f"{name!r} is a provider: write '{name.casefold()}/MODEL', as {example!r}"
        elif address:
            yield f"{name!r} has no provider: write 'openai/{name}' or 'hosted_vllm/{name}'"
        else:
            models = litellm.model_cost.items()
            hint = did_you_mean(name, [each for each, told in models if told.get("mode") in modes])
            yield f"{name!r} has no provider: write PROVIDER/MODEL, as {example!r}.{hint}"


@cache
def _is_known(name: str) -> bool:
    """Return whether litellm's files have the provider of a model, or a model without one."""
    found = find_spec("litellm")
    folder = Path((found and found.origin) or "nowhere").parent
    provider, slash, _ = name.partition("/")
    try:
        if slash:
            return f' = "{provider}"\n' in (folder / _PROVIDERS).read_text("utf-8")
        return f'\n    "{name}": {{' in (folder / _PRICES).read_text("utf-8")
    except OSError:
        return False  # another version of litellm


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
