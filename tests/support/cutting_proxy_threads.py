"""A TCP proxy that cuts connections at a given place."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal


class CuttingProxy:
    """Passes on what is sent to a server, until the client sends ``at``.

    Args:
        host: The server.
        port: Its port.

    Attributes:
        port: The proxy's port.
        at: What it waits for; None passes everything on.
        passed: How many that have it are passed on first.
        times: How often it is done.
        how: ``"before"`` cuts without passing it on, ``"after"`` passes it on and cuts instead of
            passing on the answer, ``"never"`` does not answer and does not cut, and
            ``"unanswered"`` passes it on, does not answer and does not cut.
        requests: How many requests have come.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self.at: bytes | None = None
        self.passed = 0
        self.times = 1
        self.how: Literal["before", "after", "never", "unanswered"] = "before"
        self.requests = 0
        self._counting = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> CuttingProxy:
        return self

    def mend(self) -> None:
        """Pass everything on from now on, and cut what has had no answer."""
        self.at = None
        self._ended.set()
        self._ended = threading.Event()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()

    def _start(self, work, *arguments) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._start(self._serve, self._listening.accept()[0])

    def _is_due(self, sent: bytes) -> bool:
        with self._counting:
            self.requests += 1
            if self.at is None or self.at not in sent:
                return False
            if self.passed > 0:
                self.passed -= 1
                return False
            self.times -= 1
            if self.times <= 0:
                self.at, self.times = None, 1
            return True

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            cut, ended = threading.Event(), self._ended
            answers = threading.Thread(target=self._answer, args=(client, server, cut))
            answers.start()
            how = ""
            with suppress(OSError):
                while sent := client.recv(65536):
                    if not cut.is_set() and self._is_due(sent):
                        how = self.how
                        if how in ("before", "never"):
                            break
                        cut.set()  # the rest of the request is passed on, as it may be a long one
                    server.sendall(sent)
                    if how == "unanswered":
                        answers.join()
                        break
            if how in ("never", "unanswered"):
                ended.wait()
            for each in (client, server):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            answers.join()

    def _answer(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while (received := server.recv(65536)) and not cut.is_set():
                client.sendall(received)
            if cut.is_set() and self.how == "after":
                client.shutdown(socket.SHUT_RDWR)
