"""Who may send requests: tokens, hosts, origins and rates. Private."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from agent_brain.serving.access import bearer_token, check_token
from agent_brain.serving.caller import SECRET_HEADERS, Caller
from agent_brain.serving.web.errors import as_http_error, error_response
from agent_brain.serving.web.requests import HttpError
from agent_brain.serving.web.throttle import Throttle
from agent_brain.tools.aio import maybe_await
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.serving.web.app import WebSettings

logger = get_logger(__name__)

Identify: TypeAlias = Callable[[HTTPConnection], Caller | Awaitable[Caller | None] | None]
HEALTH = ("/healthz", "/readyz")  # not limited: whoever watches the server must know
OPEN_TO_ALL = (*HEALTH, "/", "/info", "/openapi.json")
REFUSED = 4401  # WebSocket close codes from 4000 are the application's


def checked_tokens(
    token: str | Mapping[str, str] | None, user: str | None
) -> dict[str, str | None]:
    """Return the users by their tokens.

    Raises:
        BrainDefinitionError: A token is not printable ASCII text.
    """
    tokens: dict[str, str | None] = {token: user} if isinstance(token, str) else dict(token or {})
    for each in tokens:
        check_token(each)
    return tokens


class Access:
    """Checks requests before they reach a route, and says who sends them.

    Args:
        settings: What requests are handled with.
        throttle: The limits on requests.
        tokens: The users by their tokens.
        identify: Says who sends a request.
        user: Who sends a request if nothing says so.
        hosts: Allowed values of the header ``Host``, without a port; None allows all.
        origins: Origins of web pages of other hosts that may send requests.
    """

    def __init__(
        self,
        settings: WebSettings,
        throttle: Throttle,
        *,
        tokens: Mapping[str, str | None],
        identify: Identify | None,
        user: str | None,
        hosts: Iterable[str] | None,
        origins: frozenset[str],
    ) -> None:
        self.origins = origins
        self._settings = settings
        self._throttle = throttle
        self._tokens = [(key.encode(), name) for key, name in tokens.items()]
        self._identify = identify
        self._user = user
        self._hosts = None if hosts is None else frozenset(map(_host, hosts))

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return ``app`` behind the checks."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] not in ("http", "websocket"):
                await app(scope, receive, send)
                return
            connection = HTTPConnection(scope)
            try:
                self._check_head(scope)
                scope["agent_brain"] = self._settings
                scope["agent_brain.caller"] = caller = await self._check(connection)
                if _path(connection) in HEALTH:
                    await app(scope, receive, send)
                    return
                client = caller.user or _address(connection)
                self._throttle.enter(client)
            except Exception as error:
                if scope["type"] == "websocket":
                    as_http_error(error)  # logs what is not an error of the library
                    await WebSocketClose(REFUSED)(scope, receive, send)
                else:
                    await error_response(error)(scope, receive, send)
                return
            try:
                await app(scope, receive, send)
            finally:
                self._throttle.leave(client)

        return guarded

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
        if _path(connection) in HEALTH:  # whoever watches the server may know no name of it
            return
        headers = connection.headers
        host = _host(headers.get("host", ""))
        if self._hosts is not None and host not in self._hosts:
            raise HttpError(
                421,
                "wrong_host",
                f"This server has no name {host[:100]!r}: if it is to have it, start it with "
                "--host (make_app: hosts=)",
            )
        origin = headers.get("origin")
        if origin is None or origin in self.origins or _is_open(connection):
            return
        if headers.get("sec-fetch-site") == "same-origin":  # no page can set it
            return
        if origin.partition("://")[2] != headers.get("host"):  # "null" may be any page's
            logger.warning("Refused a request of a web page of %r", origin[:200])
            raise HttpError(
                403,
                "wrong_origin",
                f"This server refuses web pages of {origin[:200]!r}. If that is its own address "
                "behind a proxy, start it with --origin (make_app: cors_origins=), or let the "
                "proxy send the Host of the request",
            )

    async def _caller(self, connection: HTTPConnection) -> Caller:
        headers = {k: v for k, v in connection.headers.items() if k not in SECRET_HEADERS}
        if _is_open(connection):
            return Caller(headers=headers)
        if self._identify is not None:
            caller = await maybe_await(self._identify(connection))
            caller = caller or self._settings.cookies.caller(connection)
            if caller is None:
                raise _unauthorized()
            return caller
        if not self._tokens:
            return Caller(self._user, headers=headers)
        if (known := self._settings.cookies.caller(connection)) is not None:
            return known
        given = _bearer(connection)
        found = [name for key, name in self._tokens if secrets.compare_digest(key, given)]
        if not found:
            raise _unauthorized()
        return Caller(found[0], headers=headers)


def _path(connection: HTTPConnection) -> str:
    """Return the path below that at which the application is mounted."""
    path: str = connection.scope["path"]
    return path.removeprefix(connection.scope.get("root_path", ""))


def _address(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


def _is_open(connection: HTTPConnection) -> bool:
    path = _path(connection)
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


def _unauthorized() -> HttpError:
    return HttpError(
        401,
        "unauthorized",
        "Send the token: Authorization: Bearer …",
        {"www-authenticate": "Bearer"},
    )
