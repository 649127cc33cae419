"""Access to a server over HTTP: where it listens, who asks, host names, origins and the token."""

from __future__ import annotations

import errno
import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_brain.errors import BrainDefinitionError

if TYPE_CHECKING:
    from mcp.server.transport_security import TransportSecuritySettings

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]
SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})


def is_loopback(host: str) -> bool:
    """Return whether only this computer can reach ``host``: a loopback address or ``localhost``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def origin_rules(host: str) -> TransportSecuritySettings:
    """Return which ``Host`` and ``Origin`` headers a request may have.

    On loopback only its own names are allowed. Otherwise any web page could send requests through a
    name that resolves to this computer (DNS rebinding). For other addresses the names are unknown,
    and a web page has no token.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    if not is_loopback(host):
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    own = f"[{host}]" if ":" in host else host
    names = sorted({"127.0.0.1", "localhost", "[::1]", own})
    hosts = [form for name in names for form in (name, f"{name}:*")]
    return TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )


def check_token(token: str) -> None:
    """Check that a client can send ``token`` in a header.

    Raises:
        BrainDefinitionError: It is not printable ASCII text.
    """
    if not (token.isascii() and token.isprintable() and token.strip()):
        raise BrainDefinitionError("The token must be printable ASCII text that is not empty")


def bearer_token(scope: Scope) -> bytes:
    """Return the bearer token of a request; empty if there is none, or more than one."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
    return bytes(token.strip()) if scheme.lower() == b"bearer" else b""


def require_token(app: App, token: str) -> App:
    """Return ``app`` behind a check that answers 401 to HTTP requests without the bearer token."""
    expected = token.encode()

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        known = scope["type"] != "http" or secrets.compare_digest(bearer_token(scope), expected)
        if known:
            await app(scope, receive, send)
            return
        head = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 401, "headers": head})
        body = b"Send the token: Authorization: Bearer ..."
        await send({"type": "http.response.body", "body": body})

    return guarded


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        BrainDefinitionError: The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "the port is taken" if taken else error.strerror or str(error)
        raise BrainDefinitionError(
            f"Cannot listen on {host}:{port}: {why}. Choose another port, or 0 for any free one"
        ) from error


def shown(host: str) -> str:
    """Return ``host`` as it is written in a URL."""
    return f"[{host}]" if ":" in host else host or "0.0.0.0"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the server knows it; the ``deps`` of a run unless the server makes others.

    Attributes:
        user: The user; None if nobody is identified.
        tenant: The user's tenant; users of different tenants are different users.
        headers: The headers of the request with names in lower case, without those that identify.
    """

    user: str | None = None
    tenant: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
