"""All tools of all servers of a brain."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Collection, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio.abc import TaskGroup

from agent_brain.tools.errors import McpConfigError, McpServerError, ToolDefinitionError
from agent_brain.tools.mcp.host import Host
from agent_brain.tools.mcp.names import Names, choose_names
from agent_brain.tools.mcp.quiet import quieten
from agent_brain.tools.mcp.sources import McpSource, read_sources
from agent_brain.tools.mcp.spec import ServerSpec
from agent_brain.tools.mcp.tool import McpTool, Send, forward
from agent_brain.tools.progress import ProgressSink
from agent_brain.tools.secrets import get_logger
from agent_brain.tools.source import ToolSource
from agent_brain.tools.text import shorten

if TYPE_CHECKING:
    from agent_brain.tools.mcp.connection import Connection

logger = get_logger(__name__)

CLOSE_SECONDS = 5.0


class McpTools(ToolSource):
    """The tools of MCP servers, for as long as it is open.

    ``Brain.create`` makes one of the servers among its tools. By itself it is used as::

        async with await McpTools.open(["https://example.org/mcp", "my_server.py"]) as mcp:
            brain = Brain("react", tools=mcp.tools)

    A tool that no model could be offered, because of its schema, is left out, and a warning of it
    is logged.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._connections: list[Connection] = []
        self._names: Names = {}
        self._tools: dict[tuple[str, str], McpTool] = {}

    @classmethod
    async def open(cls, sources: Iterable[McpSource], *, taken: Collection[str] = ()) -> Self:
        """Connect to all servers at once, and list their tools.

        Args:
            sources: URLs, paths of scripts or of JSON files, ``{"mcpServers": {…}}`` dicts.
            taken: Names of other tools: what a server calls like that gets another name.

        Raises:
            McpConfigError: With everything that is wrong in any of the sources, or because the
                package ``mcp`` is not installed.
            McpServerError: With the reason for every server that could not be reached.
        """
        specs = read_sources(sources)
        if importlib.util.find_spec("mcp") is None:
            raise McpConfigError(
                ["the package mcp is not installed: pip install 'agent-brain[mcp]'"]
            )
        toolset = cls(await Host.open())
        try:
            await toolset._start(specs)
            failures = await toolset._refresh(taken)
            if failures:
                raise McpServerError(failures[0].server, "\n".join(map(str, failures)))
        except BaseException:
            await toolset.aclose()
            raise
        return toolset

    @property
    def tools(self) -> tuple[McpTool, ...]:
        """The tools as they were last listed, server by server."""
        return tuple(self._tools.values())

    @property
    def changed(self) -> bool:
        """Whether a server has announced other tools, or was started again."""
        return any(connection.changed for connection in self._connections)

    async def refresh(self, taken: Collection[str] = ()) -> None:
        """Ask those servers for their tools that have others; one that is gone keeps its list.

        Args:
            taken: Names of other tools.
        """
        for failure in await self._refresh(taken):
            logger.warning("%s", failure)

    async def _refresh(self, taken: Collection[str]) -> list[McpServerError]:
        """Do it, and tell which servers did not answer."""
        stale = [c for c in self._connections if c.changed]
        listed, failures = await self._host.call(_list_all, stale)
        known: dict[str, dict[str, Any]] = {c.spec.name: {} for c in self._connections}
        for (server, name), tool in self._tools.items():
            if server not in listed:
                known[server][name] = tool.definition
        for server, definitions in listed.items():
            known[server] = {definition.name: definition for definition in definitions}
        names = {server: list(definitions) for server, definitions in known.items()}
        self._names = choose_names(names, taken, self._names)
        self._tools = self._make_tools(known)
        return failures

    def _make_tools(self, known: dict[str, dict[str, Any]]) -> dict[tuple[str, str], McpTool]:
        """A tool for every definition; one that has not changed stays the same object."""
        made = {}
        for connection in self._connections:
            spec = connection.spec
            send = self._sender(connection)
            for definition in known[spec.name].values():
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
        return made

    async def aclose(self) -> None:
        """End all sessions and the servers that were started; twice is fine."""
        with anyio.CancelScope(shield=True):  # bounded
            connections, self._connections = self._connections, []
            if connections:
                await self._host.call(_close_all, connections)
            await self._host.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _start(self, specs: Iterable[ServerSpec]) -> None:
        self._connections = await self._host.call(_make, specs, self._host.group)
        await self._host.call(_start_all, self._connections)

    def _sender(self, connection: Connection) -> Send:
        async def send(tool: str, args: dict[str, Any], sink: ProgressSink | None) -> Any:
            on_progress = None if sink is None else functools.partial(forward, sink)
            try:
                return await self._host.call(connection.call, tool, args, on_progress)
            except RuntimeError as error:
                name = connection.spec.name
                raise McpServerError(name, f"MCP server {name!r} has been closed") from error

        return send


async def _make(specs: Iterable[ServerSpec], group: TaskGroup) -> list[Connection]:
    """In the thread of the host, to whose loop they belong, and where the SDK may take its time."""
    from agent_brain.tools.mcp.connection import Connection

    quieten()
    return [Connection(spec, group) for spec in specs]


async def _start_all(connections: Iterable[Connection]) -> None:
    """Start them at once; if some cannot be, say so of each."""
    errors: list[McpServerError] = []

    async def start(connection: Connection) -> None:
        try:
            await connection.start()
            connection.changed = True
        except McpServerError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for connection in connections:
            tasks.start_soon(start, connection)
    if errors:
        text = "\n".join(str(error) for error in errors)
        raise McpServerError(errors[0].server, text)


async def _list_all(
    connections: Iterable[Connection],
) -> tuple[dict[str, list[Any]], list[McpServerError]]:
    """The tools of each server that answers, and why the others did not."""
    listed: dict[str, list[Any]] = {}
    failures: list[McpServerError] = []

    async def ask(connection: Connection) -> None:
        try:
            listed[connection.spec.name] = await connection.list_tools()
        except McpServerError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        for connection in connections:
            tasks.start_soon(ask, connection)
    return listed, failures


async def _close_all(connections: Iterable[Connection]) -> None:
    """Take leave of the servers; those that do not answer are left to the end of the thread."""
    with anyio.move_on_after(CLOSE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for connection in connections:
                tasks.start_soon(connection.close)
