"""MCP servers that all conversations use: one connection to each, closed while nobody needs it."""

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

    A server that keeps something of its own shows it to all conversations.

    Args:
        servers: What names them, as for :meth:`Brain.create`.
    """

    def __init__(self, servers: Iterable[McpSource]) -> None:
        self._servers = tuple(servers)
        self._mcp: McpTools | None = None
        self._opening = anyio.Lock()
        self.generation = 0

    @property
    def changed(self) -> bool:
        """Whether the servers must be connected, or have other tools by now."""
        return self._mcp is None or self._mcp.changed

    async def tools(self, taken: Collection[str] = ()) -> Sequence[BaseTool]:
        """The tools as they are now; connects if that must be.

        Args:
            taken: Names of other tools.

        Raises:
            McpConfigError: Servers cannot be used as described.
            McpServerError: Servers could not be started or reached.
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

    def for_a_brain(self) -> ToolSource:
        """A source for one brain: closing it leaves the servers to the others."""
        return _Share(self)

    async def aclose(self) -> None:
        """End the connections; the next brain that needs them connects again."""
        async with self._opening:
            mcp, self._mcp = self._mcp, None
            if mcp is not None:
                await mcp.aclose()


class _Share(ToolSource):
    """The tools of shared servers, as one brain has them."""

    def __init__(self, servers: SharedServers) -> None:
        self._servers = servers
        self._tools: Sequence[BaseTool] = ()
        self._generation = 0

    @property
    def tools(self) -> Sequence[BaseTool]:
        """The tools as this brain last saw them."""
        return self._tools

    @property
    def changed(self) -> bool:
        """Whether there are others by now."""
        return self._servers.changed or self._generation != self._servers.generation

    async def refresh(self, taken: Collection[str] = ()) -> None:
        """Take the tools as they are now."""
        self._tools = await self._servers.tools(taken)
        self._generation = self._servers.generation

    async def aclose(self) -> None:
        """Let go of the tools."""
        self._tools = ()
