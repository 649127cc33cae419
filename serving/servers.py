"""MCP servers that all conversations share: one connection each, closed while unused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import anyio

from agent_brain.tools.base import BaseTool
from agent_brain.tools.source import ToolSource

if TYPE_CHECKING:
    from agent_brain.tools.mcp import McpSource, McpTools


class SharedServers:
    """One connection to each server for any number of brains.

    A server with state of its own shows it to all conversations.

    Args:
        servers: The servers, as for :meth:`Brain.create`.
    """

    def __init__(self, servers: Iterable[McpSource]) -> None:
        self._servers = tuple(servers)
        self._mcp: McpTools | None = None
        self._opening = anyio.Lock()
        self.generation = 0

    @property
    def changed(self) -> bool:
        """Whether the servers are not connected, or their tools have changed."""
        return self._mcp is None or self._mcp.changed

    async def tools(self, taken: Collection[str] = ()) -> Sequence[BaseTool]:
        """Return the current tools; connect if necessary.

        Args:
            taken: Names of other tools.

        Raises:
            McpConfigError: The servers cannot be used as described.
            McpServerError: The servers could not be started or reached.
        """
        from agent_brain.tools.mcp import McpTools

        async with self._opening:
            if self._mcp is None:
                self._mcp = await McpTools.open(self._servers, taken=taken)
                self.generation += 1
            elif self._mcp.changed:
                await self._mcp.refresh(taken)
                self.generation += 1
            return self._mcp.tools

    @property
    def gives_context(self) -> bool:
        """Whether each request of a model shows something of the servers."""
        return self._mcp is not None and self._mcp.gives_context

    async def context(self) -> Sequence[str]:
        """Return what each request of a model shows, as it is now."""
        return () if self._mcp is None else await self._mcp.context()

    def for_a_brain(self) -> ToolSource:
        """Return a source for one brain; closing it does not close the servers."""
        return _Share(self)

    async def aclose(self) -> None:
        """Close the connections; the next brain that needs them connects again."""
        async with self._opening:
            mcp, self._mcp = self._mcp, None
            if mcp is not None:
                await mcp.aclose()


class _Share(ToolSource):
    """The tools of shared servers, as one brain last saw them."""

    def __init__(self, servers: SharedServers) -> None:
        self._servers = servers
        self._tools: Sequence[BaseTool] = ()
        self._generation = 0

    @property
    def tools(self) -> Sequence[BaseTool]:
        return self._tools

    @property
    def changed(self) -> bool:
        return self._servers.changed or self._generation != self._servers.generation

    async def refresh(self, taken: Collection[str] = ()) -> None:
        self._tools = await self._servers.tools(taken)
        self._generation = self._servers.generation

    @property
    def gives_context(self) -> bool:
        return self._servers.gives_context

    async def context(self) -> Sequence[str]:
        return await self._servers.context()

    async def aclose(self) -> None:
        self._tools = ()
