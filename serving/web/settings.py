"""What requests are handled with: limits, tokens and the cookies of browsers."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

from starlette.requests import HTTPConnection

from agent_brain.errors import BrainDefinitionError
from agent_brain.serving.access import SECRET_HEADERS, Caller
from agent_brain.serving.http_config import MAX_HEAD, MAX_HEADERS
from agent_brain.serving.sessions import Sessions

COOKIE = "agent_brain"
COOKIE_SECONDS = 3600


class Cookies:
    """Makes cookies and checks them, without storing them.

    Args:
        tokens: The tokens of the server: its processes take each other's cookies, and those made
            before a restart. Without tokens, only this process takes its cookies.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        known = "\n".join(sorted(tokens)).encode() or secrets.token_bytes(32)
        self._key = hashlib.sha256(b"cookies\n" + known).digest()

    def make(self, caller: Caller) -> str:
        """Return the value of a cookie for ``caller``, valid for an hour."""
        said = json.dumps([caller.user, caller.tenant, int(time.time()) + COOKIE_SECONDS])
        value = urlsafe_b64encode(said.encode())
        return f"{value.decode()}.{self._sign(value)}"

    def caller(self, connection: HTTPConnection) -> Caller | None:
        """Return who asks for events, by the cookie of the request; None if it has no valid one."""
        if connection.scope.get("method") != "GET" or not connection.url.path.endswith("/events"):
            return None
        value, _, signature = connection.cookies.get(COOKIE, "").partition(".")
        if not hmac.compare_digest(self._sign(value.encode()).encode(), signature.encode()):
            return None
        user, tenant, until = json.loads(urlsafe_b64decode(value))
        if time.time() >= until:
            return None
        headers = {k: v for k, v in connection.headers.items() if k not in SECRET_HEADERS}
        return Caller(user, tenant, headers)

    def _sign(self, value: bytes) -> str:
        return hmac.new(self._key, value, hashlib.sha256).hexdigest()


Identify: TypeAlias = Callable[[HTTPConnection], Caller | Awaitable[Caller | None] | None]


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
    """What requests are handled with.

    Attributes:
        sessions: The sessions.
        limits: Limits on requests.
        tokens: The users by their tokens.
        identify: Says who sends a request, in place of tokens.
        user: Who sends a request if nothing says so.
        hosts: Allowed values of the header ``Host``, without a port; None allows all.
        origins: Origins of web pages of other hosts that may send requests.
        cookies: Makes and checks cookies.
        make_deps: Returns the dependencies of a run; None passes the caller.
        show_tools: Whether adapters to other protocols show tool calls.
        name: The name of the agent, as other protocols show it.
    """

    sessions: Sessions
    limits: ServerLimits
    tokens: Mapping[str, str | None]
    identify: Identify | None
    user: str | None
    hosts: frozenset[str] | None
    origins: frozenset[str]
    cookies: Cookies
    make_deps: Callable[[Caller], object] | None
    show_tools: bool
    name: str

    @property
    def needs_token(self) -> bool:
        """Whether clients must send a token."""
        return bool(self.tokens) or self.identify is not None
