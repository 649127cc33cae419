"""From a spec to streams that tell when the server is gone. Needs the extra ``mcp``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TextIO, cast

import anyio
import httpx2
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from agent_brain.tools.mcp.spec import HttpServer, ServerSpec, StdioServer

CONNECT_SECONDS = 30.0
LAST_WORDS = 2000  # bytes of a server's stderr that an error repeats
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
        """Begin anew if it has become long; the server appends, so nothing breaks."""
        if os.fstat(self.file.fileno()).st_size > MOST_KEPT:
            self.file.truncate(0)

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()


@asynccontextmanager
async def connect(
    spec: ServerSpec, words: LastWords, on_end: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Streams to and from the server.

    Args:
        spec: The server.
        words: Takes what it writes to stderr.
        on_end: Called when the server has closed its side.
    """
    async with _transport(spec, words) as (read, write):
        yield _Watched(read, on_end), write


@asynccontextmanager
async def _transport(spec: ServerSpec, words: LastWords) -> AsyncIterator[tuple[Any, Any]]:
    if isinstance(spec, StdioServer):
        parameters = StdioServerParameters(
            command=spec.command, args=list(spec.args), env=dict(spec.env), cwd=spec.cwd
        )
        # Only its file descriptor is used.
        async with stdio_client(parameters, errlog=cast(TextIO, words.file)) as streams:
            yield streams
    elif isinstance(spec, HttpServer):
        # No limit on reading: a call has its own, and may be silent for long.
        limits = httpx2.Timeout(CONNECT_SECONDS, read=None)
        async with (
            httpx2.AsyncClient(headers=dict(spec.headers), timeout=limits) as client,
            streamable_http_client(spec.url, http_client=client) as streams,
        ):
            yield streams
    else:
        raise TypeError(f"{spec!r} is no kind of server")


class _Watched:
    """A stream of messages that says when it has ended."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except (StopAsyncIteration, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise

    def __aiter__(self) -> _Watched:
        return self

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return cast("bool | None", await self._stream.__aexit__(*error))
