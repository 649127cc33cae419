"""A Redis server for tests: the one that runs here, or one that the test starts and kills."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
import redis

from tests.support.ports import free_port

URL = os.environ.get("AGENT_BRAIN_TEST_REDIS", "redis://127.0.0.1:6379/0")


@cache
def _runs() -> bool:
    try:
        with redis.Redis.from_url(URL) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def redis_url() -> str:
    """The URL of the server; skips the test if there is none, and fails it in CI."""
    if not _runs():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no Redis server at {URL}")
    return URL


def remove(prefix: str) -> None:
    """Remove all keys of a journal."""
    with redis.Redis.from_url(URL) as client:
        for key in client.scan_iter(match=f"{prefix}*", count=1000):
            client.unlink(key)


@contextmanager
def journal_prefix() -> Iterator[str]:
    """A prefix that nobody else has; what is stored with it is removed."""
    prefix = f"test-{uuid4().hex}"
    yield prefix
    remove(prefix)


class OwnServer:
    """A server of the test's own, with a folder that outlives it."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.folder = folder
        self.options = options
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it, and wait until it answers."""
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self.folder), "--save", "", *self.options, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"INFO persistence\r\n")
                    if b"\nloading:0" in connection.recv(10_000) or "--requirepass" in command:
                        return
            except OSError:
                assert self.process.poll() is None, "redis-server ended"
        raise AssertionError("redis-server does not answer")

    def kill(self) -> None:
        """Kill it, as a power failure would but for the disk."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def client(self, **options: str) -> redis.Redis:
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]


@contextmanager
def own_server(folder: Path, *options: str) -> Iterator[OwnServer]:
    """A server that is started here and ends with the test; skips without the program."""
    if shutil.which("redis-server") is None:
        pytest.skip("the program redis-server is not installed")
    server = OwnServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
