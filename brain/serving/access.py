"""Access to a server over HTTP: host names, origins and the bearer token. Private."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.transport_security import TransportSecuritySettings

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


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


def require_token(app: App, token: str) -> App:
    """Return ``app`` behind a check that answers 401 to HTTP requests without the bearer token."""
    expected = f"Bearer {token}".encode()

    def is_known(scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        scheme, space, rest = given[0].partition(b" ")
        scheme = b"Bearer" if scheme.lower() == b"bearer" else scheme  # its case is irrelevant
        return secrets.compare_digest(scheme + space + rest.strip(), expected)

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or is_known(scope):
            await app(scope, receive, send)
            return
        head = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 401, "headers": head})
        body = b"Send the token: Authorization: Bearer ..."
        await send({"type": "http.response.body", "body": body})

    return guarded
