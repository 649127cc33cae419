"""Who may send requests: tokens, hosts, origins and rates."""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from agent_brain.common.aio import maybe_await
from agent_brain.common.secrets import get_logger
from agent_brain.errors import BrainDefinitionError
from agent_brain.serving.access import SECRET_HEADERS, Caller, bearer_token, check_token
from agent_brain.serving.web.requests import (
    HttpError,
    as_http_error,
    caller_of,
    error_response,
    path_of,
    settings_of,
)
from agent_brain.serving.web.settings import COOKIE, COOKIE_SECONDS, WebSettings

MAX_CLIENTS = 10_000  # whose rates are remembered
logger = get_logger(__name__)
HEALTH = ("/healthz", "/readyz")  # not limited: whoever watches the server must know
OPEN_TO_ALL = (*HEALTH, "/", "/info", "/openapi.json")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d+)?")
REFUSED = 4401  # WebSocket close codes from 4000 are the application's


@dataclass(eq=False, repr=False)
class Throttle:
    """Limits on the requests of each client per minute and at once, and on those at once in all.

    A client may send ``per_minute`` requests at once when it was quiet (a token bucket).

    Args:
        per_minute: Requests of one client per minute; None for no limit.
        at_once: Requests in progress; None for no limit.
        at_once_each: Requests of one client in progress; None for no limit.
        clock: Returns seconds.
    """

    per_minute: float | None
    at_once: int | None
    at_once_each: int | None = None
    clock: Callable[[], float] = time.monotonic
    # What is left to each, and when that was so.
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _active: Counter[str] = field(default_factory=Counter)  # requests in progress of each client
    _total: int = 0

    def enter(self, client: str) -> None:
        """Count a request of ``client``; :meth:`leave` ends it.

        Raises:
            HttpError: Too many requests (429), or the server is full (503).
        """
        if self.at_once is not None and self._total >= self.at_once:
            message = "The server handles as many requests as it may: try again later"
            raise HttpError(503, "overloaded", message, {"retry-after": "1"})
        if self.at_once_each is not None and self._active[client] >= self.at_once_each:
            message = f"You have {self.at_once_each} requests in progress: end one of them first"
            raise HttpError(429, "rate_limited", message, {"retry-after": "1"})
        if self.per_minute is not None:
            self._take(client, self.per_minute)
        self._active[client] += 1
        self._total += 1

    def leave(self, client: str) -> None:
        """Note that a request of ``client`` has ended."""
        self._total -= 1
        self._active[client] -= 1
        if not self._active[client]:
            del self._active[client]

    def _take(self, client: str, per_minute: float) -> None:
        now = self.clock()
        most = max(1.0, per_minute)
        left, at = self._buckets.get(client, (most, now))
        left = min(most, left + (now - at) * per_minute / 60)
        if left < 1:
            self._buckets[client] = (left, now)
            wait = max(1, round((1 - left) * 60 / per_minute))
            message = f"More than {per_minute:g} requests a minute: wait {wait} seconds"
            raise HttpError(429, "rate_limited", message, {"retry-after": str(wait)})
        self._buckets[client] = (left - 1, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)


def checked_tokens(
    token: str | Mapping[str, str] | None, user: str | None
) -> dict[str, str | None]:
    """Return the users by their tokens.

    Raises:
        BrainDefinitionError: A token is not printable ASCII text, or a user has no name.
    """
    tokens: dict[str, str | None] = {token: user} if isinstance(token, str) else dict(token or {})
    for each in tokens:
        check_token(each)
    if "" in (user, *tokens.values()):
        raise BrainDefinitionError("A user has no name: give another text than '', or leave it out")
    return tokens


class Access:
    """Middleware that checks requests before they reach a route, and says who sends them."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        limits = settings.limits
        self._app = app
        self._settings = settings
        self._throttle = Throttle(limits.per_minute, limits.at_once, limits.at_once_each)
        self._tokens = [(key.encode(), name) for key, name in settings.tokens.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request (ASGI)."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            self._check_head(scope)
            scope["agent_brain"] = self._settings
            scope["agent_brain.caller"] = caller = await self._check(connection)
            if path_of(connection.scope) in HEALTH:
                await self._app(scope, receive, send)
                return
            client = caller.user or _address(connection)
            self._throttle.enter(client)
        except Exception as error:
            if scope["type"] == "websocket":
                as_http_error(error)  # logs what is not an error of the library
                await WebSocketClose(REFUSED)(scope, receive, send)
            else:
                await error_response(error, path_of(connection.scope))(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._throttle.leave(client)

    def _check_head(self, scope: Scope) -> None:
        """Refuse a head that is too large, also where another server has read it."""
        limits, headers = self._settings.limits, scope["headers"]
        target = scope.get("raw_path", b"") + scope.get("query_string", b"")
        size = len(target) + sum(len(name) + len(value) + 4 for name, value in headers)
        if size > limits.max_head or len(headers) > limits.max_headers:
            raise HttpError(
                431,
                "head_too_large",
                f"The address and the headers have more than {limits.max_head} bytes, or there are "
                f"more than {limits.max_headers} headers",
            )

    async def _check(self, connection: HTTPConnection) -> Caller:
        try:
            self._check_origin(connection)
            return await self._caller(connection)
        except HttpError:
            self._throttle.enter(_address(connection))  # guesses of tokens are counted too
            self._throttle.leave(_address(connection))
            raise

    def _check_origin(self, connection: HTTPConnection) -> None:
        if path_of(connection.scope) in HEALTH:  # whoever watches the server may know no name of it
            return
        headers = connection.headers
        host = _host(headers.get("host", ""))
        hosts = self._settings.hosts
        if hosts is not None and host not in hosts:
            raise HttpError(
                421,
                "wrong_host",
                f"This server has no name {host[:100]!r}: if it is to have it, start it with "
                "--host (make_app: hosts=)",
            )
        origin = headers.get("origin")
        if origin is None or origin in self._settings.origins or _is_open(connection):
            return
        if headers.get("sec-fetch-site") == "same-origin":  # no page can set it
            return
        if origin.partition("://")[2] != headers.get("host"):  # "null" may be any page's
            raise _wrong_origin(origin)

    async def _caller(self, connection: HTTPConnection) -> Caller:
        headers = {k: v for k, v in connection.headers.items() if k not in SECRET_HEADERS}
        if _is_open(connection):
            return Caller(headers=headers)
        if self._settings.identify is not None:
            caller = await maybe_await(self._settings.identify(connection))
            caller = caller or self._settings.cookies.caller(connection)
            if caller is None:
                raise _unauthorized()
            return caller
        if not self._tokens:
            return Caller(self._settings.user, headers=headers)
        if (known := self._settings.cookies.caller(connection)) is not None:
            return known
        given = _bearer(connection)
        found = [name for key, name in self._tokens if secrets.compare_digest(key, given)]
        if not found:
            raise _unauthorized()
        return Caller(found[0], headers=headers)


def _address(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


def _is_open(connection: HTTPConnection) -> bool:
    path = path_of(connection.scope)
    return connection.scope["type"] == "http" and (path in OPEN_TO_ALL or path.startswith("/page/"))


def _bearer(connection: HTTPConnection) -> bytes:
    """Return the token of a request; browsers cannot set headers of a WebSocket."""
    if connection.scope["type"] == "websocket":
        for protocol in connection.scope.get("subprotocols", []):
            if protocol.startswith("bearer."):
                return str(protocol).removeprefix("bearer.").encode()
    return bearer_token(connection.scope)


def _host(value: str) -> str:
    """Return the name in a ``Host`` header, without the port."""
    if value.startswith("["):
        return value.partition("]")[0].lower() + "]"
    return value.partition(":")[0].lower()


async def log_in(request: Request) -> Response:
    """Set a cookie with which the browser may read the events of the caller's sessions."""
    response = Response(status_code=204)
    response.set_cookie(
        COOKIE,
        settings_of(request).cookies.make(caller_of(request)),
        max_age=COOKIE_SECONDS,
        path=request.scope.get("root_path") or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


class Cors(CORSMiddleware):
    """Lets web pages of other hosts ask; what it refuses is refused as :class:`Access` does."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a browser that asks whether a page may send a request."""
        if not self.is_allowed_origin(request_headers["origin"]):
            return error_response(_wrong_origin(request_headers["origin"]))
        return super().preflight_response(request_headers)


def _wrong_origin(origin: str) -> HttpError:
    logger.warning("Refused a request of a web page of %r", origin[:200])
    return HttpError(
        403,
        "wrong_origin",
        f"This server refuses web pages of {origin[:200]!r}. If that is its own address behind a "
        "proxy, start it with --origin (make_app: cors_origins=), or let the proxy send the Host "
        "of the request",
    )


def checked_hosts(hosts: Iterable[str]) -> frozenset[str]:
    """Return the names that requests may have as their ``Host``, without ports.

    Raises:
        BrainDefinitionError: No request can have one of them.
    """
    hosts = [*hosts]
    for host in hosts:
        if _HOST.fullmatch(host) is None:
            raise BrainDefinitionError(
                f"No request has the host {host!r} (--host, hosts=): write a name or an address "
                "alone, as chat.example.org, 192.0.2.1 or [2001:db8::1]"
            )
    return frozenset(map(_host, hosts))


def _unauthorized() -> HttpError:
    return HttpError(
        401,
        "unauthorized",
        "Send the token: Authorization: Bearer …",
        {"www-authenticate": "Bearer"},
    )
