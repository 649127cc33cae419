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


LISTED: list[object] = []  # further tools, as "hostile" describes them


def main() -> None:
    if not breaks_the_protocol():
        starts_oddly()


def breaks_the_protocol() -> bool:
    match sys.argv[1]:
        case "hostile":  # its further tools are JSON in the second argument
            LISTED.extend({**described(n), "description": "Odd."} for n in RAW)
            LISTED.extend(json.loads(sys.argv[2], object_hook=repeated))
            serve()
        case "refuses":  # answers every request with an error of the code in the second argument
            for line in sys.stdin:
                if "id" in (message := json.loads(line)):
                    error = {"code": int(sys.argv[2]), "message": "the licence has expired"}
                    print(
                        json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                        flush=True,
                    )
        case "dies-at":  # the method in the second argument
            for line in sys.stdin:
                message = json.loads(line)
                if message.get("method") == sys.argv[2]:
                    os._exit(1)
                answer_to(message)
        case _:
            return False
    return True


def repeated(value: dict[str, Any]) -> Any:
    """A text that is too long for a command line."""
    return value["text"] * value["times"] if value.keys() == {"text", "times"} else value


def described(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


def starts_oddly() -> None:
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
        answer_to(json.loads(line))


def answer_to(message: dict[str, Any]) -> None:
    if "id" not in message:
        return
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    result = respond(message["method"], message.get("params", {}))
    if message["method"] == "tools/call" and message["params"]["name"] in RAW:
        sys.stdout.buffer.write(RAW[message["params"]["name"]](message["id"]) + b"\n")
        sys.stdout.buffer.flush()
        return
    if result is None:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    elif result is not Ellipsis:
        answer["result"] = result
    else:
        return
    print(json.dumps(answer), flush=True)


def raw(request_id: int, text: bytes) -> bytes:
    """The line of an answer with this text, which is not a JSON string unless the test asks for one."""
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id
    return head + text + b'"}]}}'


def error(request_id: int, code: int, message: str) -> bytes:
    body = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
    return json.dumps(body).encode()


RAW = {
    "latin1": lambda i: raw(i, "caf\xe9".encode("latin-1")),
    "surrogate": lambda i: raw(i, b"half \\ud83d a smiley"),
    "enormous": lambda i: raw(i, b"long words " * 400_000),
    "no_object": lambda i: b'{"jsonrpc":"2.0","id":%d,"result":[1,2]}' % i,
    "no_version": lambda i: b'{"jsonrpc":"1.0","id":%d,"result":{}}' % i,
    "not_json": lambda i: b'{"jsonrpc":"2.0","id":%d,"result":{"id":0,"content":[,]}}' % i,
    "cut_off": lambda i: b'{"id":%d,"jsonrpc":"2.0","result":{"content":[{"text":"\\"' % i,
    "too_deep": lambda i: (
        b'{"jsonrpc":"2.0","result":{"id":{},"a":%b},"id":%d}' % (b"[" * 3000 + b"]" * 3000, i)
    ),
    "own_error": lambda i: error(i, -32000, "the database is locked"),
    "password_error": lambda i: error(i, -32000, "no route to postgres://ann:hunter2pass@db"),
    "closed_error": lambda i: error(i, -32000, "Connection closed"),
    "sse_error": lambda i: error(i, -32000, "SSE stream ended without a response"),
    "long_error": lambda i: error(i, -32000, "words " * 1_000_000),
}


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
            return {"tools": [*tools, *LISTED]}
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
