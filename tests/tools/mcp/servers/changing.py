"""A server that gets another tool when it is asked to, and says so."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("Changing", log_level="ERROR")


@server.tool()
async def learn(name: str, ctx: Context) -> str:
    """Get a tool of that name."""

    def learned() -> str:
        return f"{name} was learned"

    server.add_tool(learned, name=name, description="Learned.")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "learned"


@server.tool()
async def forget(name: str, ctx: Context) -> str:
    """Lose the tool of that name."""
    server.remove_tool(name)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "forgotten"


if __name__ == "__main__":
    server.run("stdio")
