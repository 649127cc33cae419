"""A server whose calls take long, tell how far they are, and notice that they are cancelled."""

from __future__ import annotations

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("Slow", log_level="ERROR")
cancelled: list[anyio.Event] = []  # of calls that wait, the last one last


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count, telling of every number."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return "done"


@server.tool()
async def wait(ctx: Context) -> str:
    """Say that it has begun, then wait for ever."""
    ended = anyio.Event()
    cancelled.append(ended)
    await ctx.report_progress(0, message="begun")
    try:
        await anyio.sleep_forever()
    finally:
        ended.set()
    return "never"


@server.tool()
async def was_cancelled() -> bool:
    """Wait until the last waiting call was cancelled."""
    await cancelled[-1].wait()
    return True


if __name__ == "__main__":
    server.run("stdio")
