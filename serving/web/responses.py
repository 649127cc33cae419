"""Streaming responses that end what makes them when the client leaves or stalls."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from time import monotonic

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_brain.common.secrets import get_logger
from agent_brain.serving.web.requests import error_response, path_of

logger = get_logger(__name__)

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
KEEPALIVE = {SSE: b": keepalive\n\n", NDJSON: b"\n"}
KEEPALIVE_SECONDS = 15.0
_BODY = {"type": "http.response.body", "more_body": True}
_dropped: ContextVar[bool] = ContextVar("agent_brain_dropped", default=False)


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out uvicorn's error for a response that was left incomplete on purpose."""
    return not (_dropped.get() and "without completing response" in str(record.msg))


logging.getLogger("uvicorn.error").addFilter(_is_news)


class StreamResponse(Response):
    """Streams chunks of bytes as they come.

    When the client leaves, or takes no data for ``stall`` seconds, the generator is cancelled and
    closed. An error before the first chunk is answered with its HTTP status. While there is nothing
    to send, server-sent events and lines of JSON are kept alive every 15 seconds.

    Args:
        chunks: Yields the body.
        media_type: The content type.
        headers: Further headers.
        stall: Seconds after which a client that takes no data is dropped.
        on_error: Returns the response to an error before the first chunk, by it and the path.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
        stall: float = 30.0,
        on_error: Callable[[Exception, str], Response] = error_response,
    ) -> None:
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.init_headers(
            {"cache-control": "no-store", "x-accel-buffering": "no", **(headers or {})}
        )
        self._chunks = chunks
        self._keepalive = KEEPALIVE.get(media_type, b"")
        self._stall = stall
        self._on_error = on_error
        self._sent_at = 0.0
        self._sending = False
        self._begun = False
        self._failure: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response (ASGI)."""
        self._send_chunk = scope.get("agent_brain.send", send)
        async with anyio.create_task_group() as tasks:
            # In a task of its own: a chunk wakes only what makes it, not all that called this.
            tasks.start_soon(self._stream, send, tasks.cancel_scope)
            await self._watch(receive, tasks.cancel_scope)
        if self._failure is not None:
            if self._begun:
                raise self._failure
            await self._on_error(self._failure, path_of(scope))(scope, receive, send)

    async def _stream(self, send: Send, scope: anyio.CancelScope) -> None:
        """Send all chunks, then cancel ``scope``."""
        chunks, send_chunk = self._chunks, self._send_chunk
        try:
            async with aclosing(chunks):
                first = await anext(chunks, b"")
                self._begun = True
                head = {"status": 200, "headers": self.raw_headers}
                await send({"type": "http.response.start", **head})
                await self._send(first)
                async for chunk in chunks:
                    self._sending = True
                    self._sent_at = monotonic()
                    await send_chunk({**_BODY, "body": chunk})
                    self._sending = False
            self._sending = True
            self._sent_at = monotonic()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except Exception as error:
            self._failure = error
        scope.cancel()

    async def _send(self, chunk: bytes) -> None:
        self._sending = True
        self._sent_at = monotonic()
        await self._send_chunk({**_BODY, "body": chunk})
        self._sending = False

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        """Cancel ``scope`` when the client leaves or stalls; keep the connection alive."""
        while True:
            with anyio.move_on_after(min(KEEPALIVE_SECONDS, self._stall / 2)):
                if (await receive())["type"] == "http.disconnect":
                    break
            waited = monotonic() - self._sent_at
            if self._sending:
                if waited >= self._stall:
                    self._drop()
                    break
            elif self._begun and self._keepalive and waited >= KEEPALIVE_SECONDS:
                with anyio.move_on_after(self._stall) as stalled:
                    await self._send(self._keepalive)
                if stalled.cancelled_caught:
                    self._drop()
                    break
        scope.cancel()

    def _drop(self) -> None:
        logger.info("Dropped a reader that took no data for %g seconds", self._stall)
        _dropped.set(True)
