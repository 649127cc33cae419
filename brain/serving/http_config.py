"""How uvicorn serves an application: with bounds on the heads of requests. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    import asyncio

MAX_HEAD = 65_536  # bytes of a request line with all headers
MAX_HEADERS = 100


def http_config(
    app: Any, *, max_head: int = MAX_HEAD, max_headers: int = MAX_HEADERS, **options: Any
) -> uvicorn.Config:
    """Return the configuration of a server that reads at most ``max_head`` bytes of a head.

    Args:
        app: The ASGI application.
        max_head: Maximum size in bytes of a request line with its headers, and of trailers.
        max_headers: Maximum number of headers, and of trailers.
        options: Further options of ``uvicorn.Config``.
    """
    try:
        http: Any = _bounded(max_head, max_headers)
    except ImportError:  # httptools is optional; h11 has a bound of its own
        http = "h11"
    return uvicorn.Config(
        app, http=http, h11_max_incomplete_event_size=max_head, log_level="warning", **options
    )


def _bounded(max_head: int, max_headers: int) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with httptools, which has no bounds, with bounds."""
    from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

    class BoundedProtocol(HttpToolsProtocol):
        """Answers 431 to a head that is too large, and closes the connection."""

        _unused = 0  # bytes since the last piece of a body: a head, or trailers
        _kept = 0  # bytes in self.url and self.headers
        _too_large = False

        def data_received(self, data: bytes) -> None:
            self._unused += len(data)
            super().data_received(data)
            if self._unused > max_head and not self.transport.is_closing():
                self._refuse()

        def on_message_begin(self) -> None:
            self._kept = 0
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count(len(name) + len(value) + 4)
            if len(self.headers) >= max_headers:
                self._too_large = True
                raise ValueError("too many headers")
            super().on_header(name, value)

        def on_body(self, body: bytes) -> None:
            self._unused = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._unused = 0
            super().on_message_complete()

        def _count(self, size: int) -> None:
            self._kept += size
            if self._kept > max_head:
                self._too_large = True
                raise ValueError("the head is too large")

        def send_400_response(self, msg: str) -> None:
            if self._too_large:
                self._refuse()
            else:
                super().send_400_response(msg)

        def _refuse(self) -> None:
            if self.cycle is None or self.cycle.response_complete:  # else it is in the trailers
                self.transport.write(
                    STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n"
                )
            self.transport.close()

    return BoundedProtocol
