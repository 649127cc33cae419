"""A server with one tool, over stdio or, with a first argument, over HTTP at a port it prints."""

from __future__ import annotations

import socket
import sys

import anyio
from mcp.server import MCPServer

server = MCPServer("Plain", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def over_http() -> None:
    import uvicorn

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", int(sys.argv[1])))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app(host="127.0.0.1")
    config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(over_http)
    else:
        server.run("stdio")
