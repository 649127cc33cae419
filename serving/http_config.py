"""How uvicorn serves an application: with limits on the heads of requests."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn

from agent_brain.errors import BrainDefinitionError

MAX_HEAD = 65_536  # bytes of a request line with all headers
MAX_HEADERS = 100


def http_config(
    app: Any,
    *,
    max_head: int = MAX_HEAD,
    max_headers: int = MAX_HEADERS,
    proxies: Iterable[str] = (),
    **options: Any,
) -> uvicorn.Config:
    """Return the configuration of a server that keeps at most ``max_head`` bytes of a head.

    Args:
        app: The ASGI application.
        max_head: Maximum size in bytes of a request line with its headers, and of trailers.
        max_headers: Maximum number of headers, trailers included.
        proxies: Addresses or networks whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` say who
            asks.
        options: Further options of ``uvicorn.Config``.

    Raises:
        BrainDefinitionError: One of the proxies is neither an address nor a network.
    """
    proxies = tuple(proxies)
    for proxy in proxies if proxies != ("*",) else ():
        try:
            ipaddress.ip_network(proxy)
        except ValueError as error:
            raise BrainDefinitionError(
                f"No proxy has the address {proxy!r} (--trust-proxy, trusted_proxies=): {error}. "
                "Write an address or a network, as 127.0.0.1 or 10.0.0.0/8"
            ) from None
    http: Any = "h11"
    try:
        from agent_brain.serving.bounded_http import BoundedProtocol
    except ImportError:  # httptools is optional; h11 has a limit of its own
        pass
    else:
        limits = {"max_head": max_head, "max_headers": max_headers}
        http = type("Protocol", (BoundedProtocol,), limits)
    return uvicorn.Config(
        app,
        http=http,
        h11_max_incomplete_event_size=max_head,
        log_level="warning",
        proxy_headers=bool(proxies),
        forwarded_allow_ips=[*proxies],
        **options,
    )


class HttpServer(uvicorn.Server):
    """A uvicorn server that says when it accepts connections.

    Args:
        config: The configuration.
        on_ready: Called when it accepts connections.
    """

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()
