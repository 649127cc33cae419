"""The real server on loopback, in a thread of its own, and a connection to it that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette

from agent_brain import Brain
from agent_brain.memories import Journal
from agent_brain.serving import Sessions
from agent_brain.serving.sessions import MakeMemory
from agent_brain.serving.web import make_app

PATIENCE = 60.0  # seconds


class PageServer:
    """Serves a brain with the chat page: ``with PageServer(brain) as server: … server.url``.

    Args:
        brain: The brain.
        journal: Where the sessions are kept.
        grace: Seconds without a reader after which a run is stopped.
        around: Puts the application into another one, which is served.
        memory: The name of the memory, or what makes it.
        knows: Options of what is known about users; None for nothing.
        options: Options of ``make_app``.
    """

    def __init__(
        self,
        brain: Brain[Any],
        *,
        journal: Path | Journal | None = None,
        grace: float = 30.0,
        around: Callable[[Starlette], Starlette] | None = None,
        memory: str | MakeMemory = "messages",
        knows: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        inner = make_app(
            Sessions(brain, memory, journal=journal, grace=grace, user=knows),
            **({"user": "ann"} | options),
        )
        app = inner if around is None else around(inner)
        app.router.lifespan_context = inner.router.lifespan_context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        config = uvicorn.Config(app, log_level="error", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._listener.close()


class Proxy:
    """Forwards connections to a port, until they are cut.

    Args:
        port: The port of the server.

    Attributes:
        cuts: Texts behind which a connection is still to be cut.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._open: set[socket.socket] = set()
        self._refusing = False
        self.cuts: list[bytes] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()

    def cut(self) -> None:
        """Cut all connections, and refuse new ones until :meth:`mend` is called."""
        self._refusing = True
        for each in list(self._open):
            _shut(each)

    def mend(self) -> None:
        """Forward new connections again."""
        self._refusing = False

    def lead_to(self, port: int) -> None:
        """Forward new connections to another port."""
        self._port = port

    def cut_behind(self, *texts: bytes) -> None:
        """Cut a connection as soon as the server has sent a text on it, once for each text."""
        self.cuts += texts

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._port))
            self._open |= {client, server}
            for arguments in ((client, server, False), (server, client, True)):
                thread = threading.Thread(target=self._forward, args=arguments)
                self._threads.append(thread)
                thread.start()

    def _forward(self, source: socket.socket, target: socket.socket, watched: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                end = self._end(data) if watched else None
                target.sendall(data[:end])
                if end is not None:
                    break
        _shut(source)
        _shut(target)
        self._open.discard(source)
        source.close()

    def _end(self, data: bytes) -> int | None:
        """Return where ``data`` is to be cut."""
        for text in self.cuts:
            if text in data:
                self.cuts.remove(text)
                return data.index(text) + len(text)
        return None


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
