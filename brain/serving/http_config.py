"""How uvicorn serves an application: with limits on the heads of requests. Private."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import uvicorn

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
    """
    proxies = tuple(proxies)
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
