"""From a spec to streams that tell when the server is gone. Needs the extra ``mcp``."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TextIO, cast

import httpx2
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR

from agent_brain.tools.mcp.spec import HttpServer, ServerSpec, StdioServer
from agent_brain.tools.mcp.wire import SAMPLE, Reading, Wire, Writing
from agent_brain.tools.text import shorten

CONNECT_SECONDS = 30.0
LAST_WORDS = 2000  # bytes of a server's stderr that an error repeats
MOST_OF_A_REFUSAL = 10_000  # bytes of the body of an HTTP error
MOST_KEPT = 1_000_000  # bytes of a server's stderr that are kept on disk


class LastWords:
    """What a server writes to its stderr, kept aside for the error that may come.

    A file rather than a pipe: it needs no reader, and nothing waits for a grandchild to close it.
    """

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by close()

    def read(self) -> str:
        """The end of it."""
        if self.file.closed:
            return ""
        size = os.fstat(self.file.fileno()).st_size
        self.file.seek(max(0, size - LAST_WORDS))
        return self.file.read().decode(errors="replace").strip()

    def trim(self) -> None:
        """Start over if it has become long; the server appends, so nothing breaks."""
        if os.fstat(self.file.fileno()).st_size > MOST_KEPT:
            self.file.truncate(0)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


@asynccontextmanager
async def connect(spec: ServerSpec, words: LastWords, wire: Wire) -> AsyncIterator[tuple[Any, Any]]:
    """Streams to and from the server.

    Args:
        spec: The server.
        words: Takes what it writes to stderr.
        wire: Looks at every message.
    """
    try:
        async with _transport(spec, words) as (read, write):
            wire.opened.set()
            yield Reading(read, wire), Writing(write, wire)
    finally:
        wire.opened.set()


@asynccontextmanager
async def _transport(spec: ServerSpec, words: LastWords) -> AsyncIterator[tuple[Any, Any]]:
    if isinstance(spec, StdioServer):
        parameters = StdioServerParameters(
            command=spec.command,
            args=list(spec.args),
            env=dict(spec.env),
            cwd=spec.cwd,
            encoding_error_handler="replace",  # a byte that is not UTF-8 would end the SDK's reader
        )
        # Only its file descriptor is used.
        async with stdio_client(parameters, errlog=cast(TextIO, words.file)) as streams:
            yield streams
    elif isinstance(spec, HttpServer):
        # No limit on reading: a call has its own, and may be silent for long.
        limits = httpx2.Timeout(CONNECT_SECONDS, read=None)
        async with (
            _HttpClient(headers=dict(spec.headers), timeout=limits) as client,
            streamable_http_client(spec.url, http_client=client) as streams,
        ):
            yield streams
    else:
        raise TypeError(f"{spec!r} is no kind of server")


class _HttpClient(httpx2.AsyncClient):
    """Says which status a request was refused with, which the SDK keeps to itself.

    The SDK takes a JSON-RPC error from the body of a refusal, so that is where it goes. 404 is left
    alone: to the SDK it tells of a session that is over, or of a method that is not there.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super().send(request, **options)
        if response.status_code < 400 or response.status_code == 404 or request.method != "POST":
            return response
        try:
            body = await _beginning(response)
        finally:
            await response.aclose()
        error = _refusal(response, body)
        answer = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(response.status_code, json=answer, request=request)


async def _beginning(response: httpx2.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MOST_OF_A_REFUSAL:
            break
    return body


def _refusal(response: httpx2.Response, body: bytes) -> dict[str, Any]:
    """A JSON-RPC error: the server's own if there is one, and always the status."""
    status = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
    if response.status_code in (401, 403):
        status += " (check the credentials in its headers)"
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        words = str(error.get("message", ""))
        named = response.status_code in (401, 403)
        return {**error, "message": f"{status}: {words}" if named else words}
    is_text = response.headers.get("content-type", "").partition(";")[0] != "text/html"
    words = shorten(body.decode(errors="replace").strip(), SAMPLE) if is_text else ""
    return {"code": INTERNAL_ERROR, "message": f"{status}: {words}" if words else status}
