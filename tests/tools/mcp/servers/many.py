"""A server that lists 500 tools, 64 at a time."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

TOOLS = [
    Tool(name=f"tool_{number}", description="One of many.", input_schema={"type": "object"})
    for number in range(500)
]


async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    end = start + 64
    cursor = str(end) if end < len(TOOLS) else None
    return ListToolsResult(tools=TOOLS[start:end], next_cursor=cursor)


async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=f"called {params.name}")])


async def main() -> None:
    server = Server("Many", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
