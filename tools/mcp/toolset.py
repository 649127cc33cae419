"""The tools of all MCP servers of a brain, and the thread in which their sessions live.

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

import functools
import importlib.util
import logging
import warnings
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread
from anyio.abc import AsyncResource
from anyio.from_thread import BlockingPortal, start_blocking_portal

from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.secrets import get_logger
from agent_brain.common.text import shorten
from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import McpConfigError, McpServerError
from agent_brain.tools.mcp.config import McpSource, read_sources
from agent_brain.tools.mcp.names import Names, choose_names
from agent_brain.tools.mcp.spec import ServerSpec
from agent_brain.tools.mcp.tool import McpTool, Send, forward
from agent_brain.tools.toolset import ToolSource

if TYPE_CHECKING:
    from agent_brain.tools.mcp.connection import Connection

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

logger = get_logger(__name__)

THREAD = "agent-brain-mcp"

NOISY = (
    "client",
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
    "mcp.client.client",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
)


class McpTools(ToolSource, AsyncResource):
    """The tools of MCP servers, for as long as it is open.

    ``Brain.create`` opens one for the servers among its tools. It can be used by itself::

        async with await McpTools.open(["https://example.org/mcp", "my_server.py"]) as mcp:
            brain = Brain("react", tools=mcp.tools)

    A tool whose schema no model accepts is left out, and a warning is logged.
    """

    def __init__(self) -> None:
        self._thread: AbstractContextManager[BlockingPortal] | None = None
        self._portal: BlockingPortal
        self._connections: list[Connection] = []
        self._listed: dict[str, dict[str, Any]] = {}  # definitions by server and name
        self._names: Names = {}
        self._tools: dict[tuple[str, str], McpTool] = {}

    @classmethod
    async def open(cls, sources: Iterable[McpSource], *, taken: Collection[str] = ()) -> Self:
        """Connect to all servers at once, and list their tools.

        Args:
            sources: URLs, paths of scripts or of JSON files, ``{"mcpServers": {…}}`` dicts.
            taken: Names of other tools, to be avoided.

        Raises:
            McpConfigError: All problems of the sources, or the package ``mcp`` is not installed.
            McpServerError: The reason for every server that could not be reached.
        """
        specs = read_sources(sources)
        if importlib.util.find_spec("mcp") is None:
            raise McpConfigError(
                ["the package mcp is not installed: pip install 'agent-brain[mcp]'"]
            )
        toolset = cls()
        try:
            with anyio.CancelScope(shield=True):  # takes milliseconds
                await anyio.to_thread.run_sync(toolset._open_thread)
            await toolset._start(specs)
            _raise_all(await toolset._refresh(taken))
            await toolset.context()  # what cannot be read is said here
        except BaseException:
            await toolset.aclose()
            raise
        return toolset

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools as last listed, server by server."""
        return tuple(self._tools.values())

    @property
    def changed(self) -> bool:
        """Whether a server has announced other tools, or was restarted."""
        return any(connection.changed for connection in self._connections)

    async def refresh(self, taken: Collection[str] = ()) -> None:
        """List the tools of changed servers; a server that cannot be reached keeps its list.

        Args:
            taken: Names of other tools, to be avoided.
        """
        for failure in await self._refresh(taken):
            logger.warning("%s", failure)

    @property
    def gives_context(self) -> bool:
        """Whether a server has resources that each request shows."""
        return any(connection.spec.context for connection in self._connections)

    async def context(self) -> list[str]:
        """Return the resources that each request shows, as the servers have them now.

        Raises:
            McpServerError: A resource could never be read.
        """
        shown = [c for c in self._connections if c.spec.context]
        return [text for c in shown for text in await self._call(c.context)]

    async def aclose(self) -> None:
        """End all sessions and the servers that were started; is idempotent."""
        with anyio.CancelScope(shield=True):  # bounded
            connections, self._connections = self._connections, []
            if connections:
                await self._call(_close_all, connections)
            thread, self._thread = self._thread, None
            if thread is not None:
                await self._portal.call_async(self._portal.stop, True)  # noqa: FBT003
                await anyio.to_thread.run_sync(thread.__exit__, None, None, None)

    def _open_thread(self) -> None:
        self._thread = start_blocking_portal("asyncio", name=THREAD)
        self._portal = self._thread.__enter__()

    async def _call(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Await ``function(*args)`` in the thread; cancelling the caller cancels it."""
        if self._thread is None:
            raise RuntimeError("the thread has ended")
        return await self._portal.call_async(function, *args)

    def __del__(self, warn: Callable[..., Any] = warnings.warn) -> None:
        if self._thread is not None:
            warn(f"unclosed {self!r}: close the brain", ResourceWarning, source=self, stacklevel=2)

    async def _start(self, specs: Iterable[ServerSpec]) -> None:
        self._connections = await self._call(_make, specs)
        for connection in self._connections:
            self._listed[connection.spec.name] = {}
            self._portal.start_task_soon(connection.live)
        _raise_all(await self._call(_for_each, self._connections, _start))

    async def _refresh(self, taken: Collection[str]) -> list[McpServerError]:
        """List the tools again; return which servers did not answer."""

        async def ask(connection: Connection) -> None:
            tools = await connection.list_tools()
            self._listed[connection.spec.name] = {tool.name: tool for tool in tools}

        stale = [c for c in self._connections if c.changed]
        failures = await self._call(_for_each, stale, ask)
        self._names = choose_names(self._listed, taken, self._names)
        self._tools = self._make_tools()
        return failures

    def _make_tools(self) -> dict[tuple[str, str], McpTool]:
        """Return a tool for every definition; for an unchanged one, the same object."""
        made = {}
        for connection in self._connections:
            spec, send = connection.spec, self._sender(connection)
            listed = self._listed[spec.name]
            for definition in [*listed.values()]:
                key = (spec.name, definition.name)
                old = self._tools.get(key)
                if old is not None and old.definition == definition:
                    made[key] = old
                    continue
                try:
                    made[key] = McpTool(spec, definition, self._names[key], send)
                except ToolDefinitionError as error:
                    text = "A tool of MCP server %r is left out: %s"
                    logger.warning(text, spec.name, shorten(str(error), 400))
                    del listed[definition.name]
        return made

    def _sender(self, connection: Connection) -> Send:
        async def send(tool: str, args: dict[str, Any], call: ToolContext) -> Any:
            sink = call.on_progress
            on_progress = None if sink is None else functools.partial(forward, sink)
            try:
                return await self._call(connection.call, tool, args, on_progress, call.ask)
            except RuntimeError as error:
                name = connection.spec.name
                raise McpServerError(name, f"MCP server {name!r} has been closed") from error

        return send


def _raise_all(errors: list[McpServerError]) -> None:
    if errors:
        raise McpServerError(errors[0].server, "\n".join(map(str, errors)))


# The functions below run in the thread.


async def _make(specs: Iterable[ServerSpec]) -> list[Connection]:
    """Make the connections, which belong to the host's loop; importing the SDK takes a while."""
    from agent_brain.tools.mcp.connection import Connection

    for name in NOISY:
        logging.getLogger(name).addFilter(_is_not_ours)  # is idempotent
    return [Connection(spec) for spec in specs]


def _is_not_ours(record: logging.LogRecord) -> bool:
    """Turn the SDK's log records into debug messages: the errors are in our own."""
    if record.threadName != THREAD:
        return True
    logger.debug("%s: %s", record.name, record.getMessage())
    return False


async def _start(connection: Connection) -> None:
    await connection.start()
    connection.changed = True


async def _for_each(
    connections: Iterable[Connection], function: Callable[[Connection], Awaitable[None]]
) -> list[McpServerError]:
    """Call ``function`` for all connections at once; return their errors."""
    errors: list[McpServerError] = []

    async def call(connection: Connection) -> None:
        try:
            await function(connection)
        except McpServerError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for connection in connections:
            tasks.start_soon(call, connection)
    return errors


async def _close_all(connections: Iterable[Connection]) -> None:
    """Close the connections; those that do not answer end with the thread."""
    with anyio.move_on_after(CLEANUP_SECONDS):
        await _for_each(connections, lambda connection: connection.close())
