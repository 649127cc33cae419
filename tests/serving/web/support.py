"""What the tests of the server over HTTP share: gates across threads, clients, strict parsers."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 180.0  # seconds after which a test gives up waiting


class RemoteGate:
    """Where a model in the server's thread waits until the test opens it.

    Attributes:
        left: Set when a wait was cancelled.
    """

    def __init__(self) -> None:
        self.left = threading.Event()
        self._reached = threading.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open = asyncio.Event()

    def until_reached(self) -> None:
        """Wait until it is reached once more."""
        assert self._reached.acquire(timeout=PATIENCE), "nobody reached the gate"

    def open(self) -> None:
        """Let everybody through."""
        if self._loop is None:
            self._open.set()
        else:
            self._loop.call_soon_threadsafe(self._open.set)

    async def wait(self) -> None:
        """Wait until it is open."""
        self._loop = asyncio.get_running_loop()
        self._reached.release()
        try:
            await self._open.wait()
        except BaseException:
            self.left.set()
            raise


def eventually(true: Callable[[], object], *, within: float = PATIENCE) -> None:
    """Wait until something is so in the server's thread, which cannot tell."""
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Frame:
    """A server-sent event."""

    id: str
    event: str
    data: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


def parse_sse(text: str) -> list[Frame]:
    """Parse complete server-sent events strictly: nothing but what the server should send."""
    frames = []
    assert text.endswith("\n\n")
    assert "\r" not in text
    for block in text[:-2].split("\n\n"):
        if block == ": keepalive":
            continue
        lines = block.split("\n")
        fields = dict(line.split(": ", 1) for line in lines)
        assert [line.split(":")[0] for line in lines] == ["id", "event", "data"], block
        frames.append(Frame(**fields))
    return frames


def frames_in(lines: Iterable[str]) -> Iterator[Frame]:
    """Yield the events of a stream of lines as they come."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if fields:
                yield Frame(**fields)
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            assert name not in fields
            fields[name] = value


def text_of(frames: Iterable[Frame]) -> str:
    """The text that the model wrote."""
    return "".join(frame.json["text"] for frame in frames if frame.event == "text_delta")


class RawClient:
    """A TCP connection to the server, for what no decent client sends."""

    def __init__(self, url: str, *, buffer: int | None = None) -> None:
        parts = urlsplit(url)
        self.host = parts.netloc
        assert parts.hostname is not None
        assert parts.port is not None
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if buffer is not None:  # bytes that the system takes for a client that does not read
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.connect((parts.hostname, parts.port))

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: str | bytes) -> None:
        """Send bytes, or text with ``\\n`` as CRLF and the server's name for ``HOST``."""
        if isinstance(data, str):
            data = data.replace("HOST", self.host).replace("\n", "\r\n").encode("latin-1")
        self.socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer; the body ends with the connection."""
        head, body = self.read_head()
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(body) < length:
            more = self.socket.recv(65536)
            assert more, "the answer is cut"
            body += more
        return int(status.split()[1]), headers, body

    def read_head(self) -> tuple[bytes, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            more = self.socket.recv(65536)
            assert more, f"the server closed the connection after {data!r}"
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        return head, body

    def closed(self) -> bool:
        """Return whether the server closes the connection, within the patience."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True
