"""Tools of MCP servers (https://modelcontextprotocol.io). The package ``mcp`` is an extra.

::

    brain = await Brain.create(tools=[my_function, "https://example.org/mcp", "servers.json"])

From outside in: ``sources`` and ``config`` read what the user wrote into a ``spec`` for each
server; ``host`` is the thread where sessions live; ``connection`` is one server there, reached
through ``transport``; ``toolset`` makes a ``tool`` of each of its tools, under a name from
``names``, and ``convert`` reads its answers.
"""

from __future__ import annotations

from agent_brain.tools.errors import McpConfigError, McpServerError
from agent_brain.tools.mcp.sources import McpSource
from agent_brain.tools.mcp.tool import McpTool
from agent_brain.tools.mcp.toolset import McpTools

__all__ = [
    "McpConfigError",
    "McpServerError",
    "McpSource",
    "McpTool",
    "McpTools",
]
