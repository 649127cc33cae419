"""A server without the SDK, of the older protocol: quick to start, and odd as the first argument says."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

TOOLS = {
    "hello": "Say hello.",
    "die": "Die in the middle of the call.",
    "pid": "The server's process.",
    "environment": "All of its environment.",
    "folder": "Where it runs.",
    "silence": "Never answer.",
    "learn": "Get the tool fly.",
    "forget": "Lose the tool fly.",
}


def main() -> None:
    match sys.argv[1]:
        case "dies":
            sys.exit(f"cannot open the {os.environ.get('TOKEN', 'database')}")
        case "hangs":
            sys.stdin.read()
        case "garbage":  # and nothing else
            for line in sys.stdin:
                print("Hello, I am no MCP server:", len(line), flush=True)
        case "chatty":  # some garbage, then a server
            print("Welcome!", flush=True)
            serve()
        case "slow":  # ready only when something is written to the FIFO of the second argument
            Path(sys.argv[2]).read_text()
            serve()
        case "stubborn":  # does not end when it should
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            serve()
            signal.pause()
        case "once":  # starts once, and never again
            if Path(sys.argv[2]).exists():
                sys.exit("not again")
            Path(sys.argv[2]).touch()
            serve()
        case "plain":
            serve()


def serve() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"]}
            result = respond(message["method"], message.get("params", {}))
            if result is None:
                answer["error"] = {"code": -32601, "message": "Method not found"}
            elif result is not Ellipsis:
                answer["result"] = result
            else:
                continue
            print(json.dumps(answer), flush=True)


def respond(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        case "tools/list":
            schema = {"type": "object"}
            tools = [{"name": n, "description": d, "inputSchema": schema} for n, d in TOOLS.items()]
            return {"tools": tools}
        case "tools/call":
            text = call(params["name"])
            return text if text is ... else {"content": [{"type": "text", "text": text}]}
    return None


def call(name: str) -> Any:
    match name:
        case "die":
            os.write(2, b"the end\n")
            os._exit(1)
        case "pid":
            return str(os.getpid())
        case "environment":
            return json.dumps(dict(os.environ))
        case "folder":
            return str(Path.cwd())
        case "learn" | "forget":
            if name == "learn":
                TOOLS["fly"] = "Fly."
            else:
                del TOOLS["fly"]
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            print(json.dumps(note), flush=True)
        case "silence":
            return ...
    return "hello"


if __name__ == "__main__":
    main()
