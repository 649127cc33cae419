"""Who may speak to a server over HTTP."""

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
    """Whether only this computer reaches ``host``; of names, ``localhost`` alone is known to be."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def origin_rules(host: str) -> TransportSecuritySettings:
    """Which ``Host`` and ``Origin`` a request may have.

    On loopback only its own names, or any web page could ask through a name that it makes point
    here (DNS rebinding). Beyond, the names are not known here, and a page has no token.
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


class BearerToken:
    """Lets only requests through that bring the token.

    Args:
        app: What they are let through to.
        token: The token.
    """

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer 401, or hand the request on."""
        if scope["type"] == "http" and not self._is_known(scope):
            head = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": head})
            body = b"Send the token: Authorization: Bearer ..."
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and secrets.compare_digest(_same_case(given[0]), self._expected)


def _same_case(header: bytes) -> bytes:
    """The name of the scheme is written in any case."""
    scheme, space, token = header.partition(b" ")
    return (b"Bearer" if scheme.lower() == b"bearer" else scheme) + space + token.strip()
