"""Servers over HTTP that refuse requests, and the resulting errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from agent_brain.tools.mcp import McpServerError, McpTools
from tests.tools.mcp.support import call, config

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

Reply = tuple[int, str, bytes]
JSON = "application/json"


def result(request: dict[str, Any], value: Any) -> Reply:
    return 200, JSON, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": value}).encode()


def failure(request: dict[str, Any], status: int, code: int, message: str) -> Reply:
    error = {"code": code, "message": message}
    return (
        status,
        JSON,
        json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode(),
    )


@contextmanager
def answering(
    on_call: Callable[[dict[str, Any]], Reply] | Reply, *, at_once: bool = False
) -> Iterator[str]:
    """A small server of the older protocol, which answers calls (or everything) in its own way."""

    def respond(request: dict[str, Any]) -> Reply:
        if at_once or request["method"] == "tools/call":
            return on_call(request) if callable(on_call) else on_call
        if request["method"] == "initialize":
            version = request["params"]["protocolVersion"]
            about = {"protocolVersion": version, "capabilities": {"tools": {}}}
            return result(request, {**about, "serverInfo": {"name": "small", "version": "1"}})
        if request["method"] == "tools/list":
            return result(request, {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]})
        return failure(request, 200, -32601, "Method not found")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, kind, body = respond(request) if "id" in request else (202, JSON, b"")
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def at(url: str, **entry: Any) -> dict[str, Any]:
    return config(s={"url": url, **entry})


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (
            (401, "text/plain", b"no token"),
            "HTTP 401 Unauthorized (check the credentials in its headers): no token",
        ),
        ((401, JSON, b""), "HTTP 401 Unauthorized (check the credentials in its headers)"),
        (
            (403, "text/html", b"<html>no</html>"),
            "HTTP 403 Forbidden (check the credentials in its headers)",
        ),
        ((500, "text/html", b"<html>no</html>"), "HTTP 500 Internal Server Error"),
        ((503, "text/plain", b"busy " * 100_000), "HTTP 503 Service Unavailable: busy busy"),
        ((200, "text/html", b"<html>hello</html>"), "Unexpected content type: text/html"),
    ],
)
async def test_a_refusal_is_named_at_the_start_and_in_a_call(reply, words):
    with answering(reply, at_once=True) as url, pytest.raises(McpServerError) as caught:
        await McpTools.open([at(url)])
    with answering(reply) as url:
        async with await McpTools.open([at(url)]) as mcp:
            outcomes = [await call(mcp, "go") for _ in range(2)]

    assert f"answered with an error: {words}" in str(caught.value)
    assert all(f"answered with an error: {words}" in outcome.content for outcome in outcomes)
    assert len(str(caught.value)) < 1000


async def test_a_refusal_keeps_the_servers_own_words_without_secrets():
    token = "tok-of-the-client-1"

    def refuse(request: dict[str, Any]) -> Reply:
        return failure(request, 401, -32001, f"{token} has expired")

    with answering(refuse) as url:
        async with await McpTools.open(
            [at(url, headers={"Authorization": f"Bearer {token}"})]
        ) as mcp:
            outcome = await call(mcp, "go")

    assert outcome.content.endswith(
        "HTTP 401 Unauthorized (check the credentials in its headers): [hidden] has expired"
    )


async def test_an_error_of_the_server_reaches_the_model_whatever_its_code_and_status():
    answers = iter([(200, -32000), (400, -32000), (500, -32050), (200, 7)])

    def fail(request: dict[str, Any]) -> Reply:
        status, code = next(answers)
        return failure(request, status, code, f"locked {code}")

    with answering(fail) as url:
        async with await McpTools.open([at(url)]) as mcp:
            told = [(await call(mcp, "go")).content for _ in range(4)]

    assert [text.rpartition(": ")[2] for text in told] == [
        "locked -32000",
        "locked -32000",
        "locked -32050",
        "locked 7",
    ]


async def test_an_answer_over_http_that_breaks_off_may_or_may_not_have_been_done():
    with answering((200, "text/event-stream", b": nothing\n\n")) as url:
        async with await McpTools.open([at(url)]) as mcp:
            outcome = await call(mcp, "go")
            again = await call(mcp, "go")

    assert "the request may or may not have been executed" in outcome.content
    assert again.is_error
