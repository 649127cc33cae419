"""A server whose calls take long, tell how far they are, and notice that they are cancelled."""

from __future__ import annotations

import os

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("Slow", log_level="ERROR")
cancelled = anyio.Event()


@server.tool()
async def count(to: int, ctx: Context) -> str:  # type: ignore[type-arg]
    """Count, telling of every number."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return "done"


@server.tool()
async def wait(ctx: Context) -> str:  # type: ignore[type-arg]
    """Say that it has begun, then wait for ever."""
    await ctx.report_progress(0, message="begun")
    try:
        await anyio.sleep_forever()
    finally:
        cancelled.set()


@server.tool()
async def was_cancelled() -> bool:
    """Wait until the waiting call was cancelled."""
    await cancelled.wait()
    return True


@server.tool()
def pid() -> int:
    """The server's process."""
    return os.getpid()


@server.tool()
def die(word: str) -> str:
    """Die in the middle of the call."""
    os.write(2, f"dying of {word}\n".encode())
    os._exit(1)


if __name__ == "__main__":
    server.run("stdio")
