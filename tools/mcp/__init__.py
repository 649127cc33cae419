"""Tools of MCP servers (https://modelcontextprotocol.io). The package ``mcp`` is an extra.

::

    brain = await Brain.create(tools=[my_function, "https://example.org/mcp", "servers.json"])

``config`` reads sources into a ``spec`` for each server; ``toolset`` has the thread in which their
sessions live, and makes a ``tool`` from each of their tools, under a name from ``names``;
``connection`` is one server there, reached through ``transport``, which ``sign_in`` may sign in;
``questions`` are what it asks a person; ``offers`` makes tools of its resources and prompts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.tools.errors import McpConfigError as McpConfigError
    from agent_brain.tools.errors import McpServerError as McpServerError
    from agent_brain.tools.mcp.config import McpSource as McpSource
    from agent_brain.tools.mcp.spec import OAuth as OAuth
    from agent_brain.tools.mcp.tool import McpTool as McpTool
    from agent_brain.tools.mcp.toolset import McpTools as McpTools
