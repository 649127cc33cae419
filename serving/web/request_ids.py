"""An ID for each request, which is in the reply, in errors and in what is logged."""

from __future__ import annotations

import re
import secrets

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_brain.common.request_id import request_id

HEADER = b"x-request-id"
STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")
_ACCEPTED = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")  # safe in logs and in headers


class RequestIds:
    """Gives each request an ID: that of its header ``x-request-id`` if it has a plain one.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request (ASGI)."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == HEADER]
        kept = len(given) == 1 and _ACCEPTED.fullmatch(given[0])
        own = given[0].decode() if kept else f"req_{secrets.token_hex(12)}"
        request_id.set(own)  # not reset: an error is logged after this has returned

        scope["agent_brain.send"] = send  # for chunks, which nobody in between has to see

        async def send_with_id(message: Message) -> None:
            if message["type"] in STARTS:
                message["headers"] = [*message.get("headers", ()), (HEADER, own.encode())]
            await send(message)

        await self._app(scope, receive, send_with_id)
