"""uvicorn's protocol with httptools, which reads heads of any size, with limits."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from agent_brain.serving.http_config import MAX_HEAD, MAX_HEADERS


class BoundedProtocol(HttpToolsProtocol):
    """Answers 431 to a head that is too large, and closes the connection.

    Attributes:
        max_head: Maximum size in bytes of a request line with its headers, and of trailers.
        max_headers: Maximum number of headers, trailers included.
    """

    max_head = MAX_HEAD
    max_headers = MAX_HEADERS
    _unused = 0  # bytes received since the last piece of a body: of a head, or of trailers
    _kept = 0  # bytes in url and headers
    _too_large = False

    def data_received(self, data: bytes) -> None:
        """Parse what arrives; httptools keeps a header that is not complete yet."""
        self._unused += len(data)
        super().data_received(data)
        if self._unused > self.max_head and not self.transport.is_closing():
            self._refuse()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._kept = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header or a trailer."""
        self._count(len(name) + len(value) + 4, headers=1)
        super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._unused = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that could not be parsed."""
        if self._too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _count(self, size: int, *, headers: int = 0) -> None:
        self._kept += size
        if self._kept > self.max_head or len(self.headers) + headers > self.max_headers:
            self._too_large = True
            raise ValueError("the head is too large")  # ends the parser

    def _refuse(self) -> None:
        if getattr(self.cycle, "response_complete", True):  # else a reply may have begun
            self.transport.write(
                STATUS_LINE[431] + b"content-length: 0\r\nconnection: close\r\n\r\n"
            )
        self.transport.close()
