"""The ASGI application of a server."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_brain.common.ids import request_id
from agent_brain.errors import AgentBrainError, BrainDefinitionError
from agent_brain.serving.access import Caller
from agent_brain.serving.sessions import Sessions
from agent_brain.serving.web import about, ag_ui, routes, steps, users, vercel, websocket
from agent_brain.serving.web.access import (
    Access,
    Cors,
    checked_hosts,
    checked_tokens,
    log_in,
)
from agent_brain.serving.web.openai import endpoints as openai
from agent_brain.serving.web.requests import HttpError, error_response, path_of
from agent_brain.serving.web.settings import Cookies, Identify, ServerLimits, WebSettings

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


def make_app(
    sessions: Sessions,
    *,
    token: str | Mapping[str, str] | None = None,
    identify: Identify | None = None,
    user: str | None = None,
    make_deps: Callable[[Caller], object] | None = None,
    limits: ServerLimits = ServerLimits(),  # noqa: B008 - frozen
    hosts: Iterable[str] | None = None,
    cors_origins: Iterable[str] = (),
    show_tools: bool = False,
    name: str = "agent-brain",
) -> Starlette:
    """Return an ASGI application that serves ``sessions``.

    ::

        app = make_app(Sessions(Brain("react"), journal="chats.db"), token={"secret": "ann"})

    It can be run by any ASGI server, or mounted in another application, which then opens the
    sessions itself (``async with sessions``).

    Args:
        sessions: The sessions; opened and closed with the application unless they are open.
        token: The bearer token that clients must send, or the users by their tokens.
        identify: Returns who sends a request, in place of ``token``; None refuses it (401).
        user: The user of all requests that are not identified otherwise. Without one, callers are
            unknown and reach only sessions whose IDs they know.
        make_deps: Returns the dependencies of the runs of a caller; default: the caller itself.
        limits: Limits on requests.
        hosts: Allowed values of the header ``Host``; None allows all. For a server without tokens
            on the local computer, its names: else web pages could reach it (DNS rebinding).
        cors_origins: Origins of web pages of other hosts that may send requests, and of the chat
            page itself where a proxy in front of the server sends another ``Host``.
        show_tools: Whether the OpenAI, AG-UI and AI SDK endpoints show tool calls.
        name: The name of the agent: the model of the OpenAI endpoints.

    Raises:
        BrainDefinitionError: Arguments that do not go together, or a host that no request can have.
    """
    tokens = checked_tokens(token, user)
    if identify is not None and (tokens or user):
        raise BrainDefinitionError("Give either identify=, or token= and user=")
    settings = WebSettings(
        sessions=sessions,
        limits=limits,
        tokens=tokens,
        identify=identify,
        user=user,
        hosts=None if hosts is None else checked_hosts(hosts),
        origins=frozenset(cors_origins),
        cookies=Cookies(tokens),
        make_deps=make_deps,
        show_tools=show_tools,
        name=name,
    )
    cors = Middleware(
        Cors,
        allow_origins=[*settings.origins],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "retry-after"],
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if sessions.active:
            yield
        else:
            async with sessions:
                yield

    app = Starlette(
        routes=_routes(),
        lifespan=lifespan,
        middleware=[
            Middleware(RequestIds),
            *([cors] if settings.origins else []),
            Middleware(Access, settings),
        ],
        exception_handlers={
            AgentBrainError: _answer,
            HttpError: _answer,
            HTTPException: _answer_http,
            Exception: _answer_unexpected,
        },
    )
    app.state.limits = limits
    return app


def _routes() -> list[BaseRoute]:
    return [
        *(each.route for each in routes.ENDPOINTS),  # what is asked for most stands first
        *about.routes(),
        Route("/login", log_in, methods=["POST"]),
        *(each.route for each in (*steps.ENDPOINTS, *users.ENDPOINTS)),
        *websocket.routes(),
        *openai.routes(),
        *ag_ui.routes(),
        *vercel.routes(),
    ]


async def _answer(request: Request, error: Exception) -> Response:
    return error_response(error, path_of(request.scope))


async def _answer_unexpected(request: Request, error: Exception) -> Response:
    response = await _answer(request, error)
    response.headers["connection"] = "close"  # as the server does: Starlette raises the error again
    response.headers["x-request-id"] = request_id.get() or ""  # it is outside of RequestIds
    return response


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kinds = {404: "not_found", 405: "method_not_allowed"}
    headers = dict(error.headers or {})
    kind = kinds.get(error.status_code, "http_error")
    return await _answer(request, HttpError(error.status_code, kind, error.detail, headers))
