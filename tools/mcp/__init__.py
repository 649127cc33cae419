"""Tools of MCP servers (https://modelcontextprotocol.io). The package ``mcp`` is an extra.

::

    brain = await Brain.create(tools=[my_function, "https://example.org/mcp", "servers.json"])

``config`` reads sources into a ``spec`` for each server; ``host`` is the thread in which sessions
live; ``connection`` is one server there, reached through ``transport`` and ``wire``; ``toolset``
makes a ``tool`` from each of its tools, under a name from ``names``.
"""

from __future__ import annotations

from agent_brain.tools.errors import McpConfigError, McpServerError
from agent_brain.tools.mcp.config import McpSource
from agent_brain.tools.mcp.tool import McpTool
from agent_brain.tools.mcp.toolset import McpTools

__all__ = [
    "McpConfigError",
    "McpServerError",
    "McpSource",
    "McpTool",
    "McpTools",
]
