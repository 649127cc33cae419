"""Open streams to a server. Needs the extra ``mcp``."""

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

from agent_brain.common.text import shorten
from agent_brain.tools.mcp.sign_in import auth_of
from agent_brain.tools.mcp.spec import HttpServer, ServerSpec, StdioServer
from agent_brain.tools.mcp.wire import SAMPLE, ReadStream, Wire, WriteStream

CONNECT_SECONDS = 30.0
STDERR_SHOWN = 2000  # bytes of a server's stderr in an error
REFUSAL_READ = 10_000  # bytes of the body of an HTTP error
STDERR_KEPT = 1_000_000  # bytes of a server's stderr on disk


class StderrTail:
    """What a server writes to its stderr, kept for error messages.

    A file rather than a pipe: it needs no reader, and no wait for a grandchild to close it.
    """

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by close()

    def read(self) -> str:
        """Return the end of it."""
        if self.file.closed:
            return ""
        size = os.fstat(self.file.fileno()).st_size
        self.file.seek(max(0, size - STDERR_SHOWN))
        return self.file.read().decode(errors="replace").strip()

    def trim(self) -> None:
        """Empty the file if it has become long; the server appends to it."""
        if os.fstat(self.file.fileno()).st_size > STDERR_KEPT:
            self.file.truncate(0)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


@asynccontextmanager
async def connect(
    spec: ServerSpec, stderr: StderrTail, wire: Wire
) -> AsyncIterator[tuple[Any, Any]]:
    """Open the streams from and to the server, which pass every message through ``wire``."""
    try:
        async with _transport(spec, stderr) as (read, write):
            wire.opened.set()
            yield ReadStream(read, wire), WriteStream(write, wire)
    finally:
        wire.opened.set()


@asynccontextmanager
async def _transport(spec: ServerSpec, stderr: StderrTail) -> AsyncIterator[tuple[Any, Any]]:
    if isinstance(spec, StdioServer):
        parameters = StdioServerParameters(
            command=spec.command,
            args=spec.args,
            env=spec.env,
            cwd=spec.cwd,
            encoding_error_handler="replace",  # a byte that is not UTF-8 would end the SDK's reader
        )
        # only the file descriptor is used
        async with stdio_client(parameters, errlog=cast(TextIO, stderr.file)) as streams:
            yield streams
    elif isinstance(spec, HttpServer):
        # no limit on reading: a call has its own, and may be silent for long
        limits = httpx2.Timeout(CONNECT_SECONDS, read=None)
        async with (
            _HttpClient(headers=spec.headers, timeout=limits, auth=await auth_of(spec)) as client,
            streamable_http_client(spec.url, http_client=client) as streams,
        ):
            yield streams
    else:
        raise TypeError(f"{spec!r} is not a known kind of server")


class _HttpClient(httpx2.AsyncClient):
    """Puts the HTTP status of a refused request into the JSON-RPC error that the SDK reads.

    Except for 404, which tells the SDK that a session is over or a method does not exist.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super().send(request, **options)
        if response.status_code < 400 or response.status_code == 404 or request.method != "POST":
            return response
        body = b""
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > REFUSAL_READ:
                    break
        finally:
            await response.aclose()
        error = _refusal(response, body)
        answer = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(response.status_code, json=answer, request=request)


def _refusal(response: httpx2.Response, body: bytes) -> dict[str, Any]:
    """Return a JSON-RPC error: the server's own if there is one, with the status."""
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
