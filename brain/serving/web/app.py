"""The ASGI application of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from agent_brain.errors import AgentBrainError, BrainDefinitionError
from agent_brain.request_id import request_id
from agent_brain.serving.caller import Caller
from agent_brain.serving.http_config import MAX_HEAD, MAX_HEADERS
from agent_brain.serving.sessions import Sessions
from agent_brain.serving.web import about, ag_ui, cookies, routes, steps, vercel, websocket
from agent_brain.serving.web.access import Access, Identify, checked_tokens
from agent_brain.serving.web.cookies import Cookies
from agent_brain.serving.web.errors import error_response
from agent_brain.serving.web.openai import endpoints as openai
from agent_brain.serving.web.request_ids import RequestIds
from agent_brain.serving.web.requests import HttpError
from agent_brain.serving.web.throttle import Throttle


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits on the requests to a server.

    Attributes:
        max_head: Maximum size in bytes of a request line with all headers.
        max_headers: Maximum number of headers.
        max_body: Maximum size of a request's body in bytes.
        body_timeout: Seconds that a client may take to send a body.
        per_minute: Requests of one client (a user, else an address) per minute; None for no limit.
        at_once: Requests in progress, streams included; None for no limit.
        at_once_each: The same for one client, so that it cannot keep out the others.
        stall: Seconds after which a reader that takes no data is dropped.

    Raises:
        BrainDefinitionError: A value is not greater than 0.
    """

    max_head: int = MAX_HEAD
    max_headers: int = MAX_HEADERS
    max_body: int = 5_000_000
    body_timeout: float = 30.0
    per_minute: float | None = 600.0
    at_once: int | None = 2_000
    at_once_each: int | None = 1_000
    stall: float = 30.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not value > 0:
                raise BrainDefinitionError(f"{each.name} must be greater than 0, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """What requests are handled with. Private.

    Attributes:
        sessions: The sessions.
        limits: Limits on requests.
        cookies: Makes and checks cookies.
        make_deps: Returns the dependencies of a run; None passes the caller.
        show_tools: Whether adapters to other protocols show tool calls.
        needs_token: Whether clients must send a token.
        name: The name of the agent, as other protocols show it.
    """

    sessions: Sessions
    limits: ServerLimits
    cookies: Cookies
    make_deps: Callable[[Caller], object] | None = None
    show_tools: bool = False
    needs_token: bool = False
    name: str = "agent-brain"


def make_app(
    sessions: Sessions,
    *,
    token: str | Mapping[str, str] | None = None,
    identify: Identify | None = None,
    user: str | None = None,
    make_deps: Callable[[Caller], object] | None = None,
    limits: ServerLimits = ServerLimits(),
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
        BrainDefinitionError: Arguments that do not go together.
    """
    tokens = checked_tokens(token, user)
    if identify is not None and (tokens or user):
        raise BrainDefinitionError("Give either identify=, or token= and user=")
    settings = WebSettings(
        sessions=sessions,
        limits=limits,
        cookies=Cookies(tokens),
        make_deps=make_deps,
        show_tools=show_tools,
        needs_token=bool(tokens) or identify is not None,
        name=name,
    )
    access = Access(
        settings,
        Throttle(limits.per_minute, limits.at_once, limits.at_once_each),
        tokens=tokens,
        identify=identify,
        user=user,
        hosts=hosts,
        origins=frozenset(cors_origins),
    )
    cors = Middleware(
        CORSMiddleware,
        allow_origins=[*access.origins],
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["x-request-id"],
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
            *([cors] if access.origins else []),
            Middleware(access.wrap),
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
        *about.routes(),
        *cookies.routes(),
        *routes.routes(),
        *steps.routes(),
        *websocket.routes(),
        *openai.routes(),
        *ag_ui.routes(),
        *vercel.routes(),
    ]


async def _answer(request: Request, error: Exception) -> Response:
    return error_response(error)


async def _answer_unexpected(request: Request, error: Exception) -> Response:
    response = error_response(error)
    response.headers["connection"] = "close"  # as the server does: Starlette raises the error again
    response.headers["x-request-id"] = request_id.get() or ""  # it is outside of RequestIds
    return response


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kinds = {404: "not_found", 405: "method_not_allowed"}
    headers = dict(error.headers or {})
    kind = kinds.get(error.status_code, "http_error")
    return error_response(HttpError(error.status_code, kind, error.detail, headers))
