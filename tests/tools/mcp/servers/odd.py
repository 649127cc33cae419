"""Servers that do not behave, by the first argument."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    match sys.argv[1]:
        case "dies":
            print("cannot open the", os.environ.get("TOKEN", "database"), file=sys.stderr)
            sys.exit(3)
        case "hangs":
            sys.stdin.read()
        case "garbage":  # and nothing else
            for line in sys.stdin:
                print("Hello, I am no MCP server:", len(line), flush=True)
        case "chatty":  # some garbage, then a server
            print("Welcome!", flush=True)
            serve()
        case "slow":  # ready only when the file of the second argument is there
            with Path(sys.argv[2]).open() as gate:
                gate.read()
            serve()
        case "stubborn":  # does not end when it should
            import signal

            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            serve()
            signal.pause()
        case "once":  # starts once, and never again
            marker = Path(sys.argv[2])
            if marker.exists():
                sys.exit("not again")
            marker.touch()
            serve()


def serve() -> None:
    from mcp.server import MCPServer

    server = MCPServer("Odd", log_level="ERROR")

    @server.tool()
    def hello() -> str:
        """Say hello."""
        return "hello"

    @server.tool()
    def die() -> str:
        """Die."""
        os._exit(1)

    server.run("stdio")


if __name__ == "__main__":
    main()
