"""Ports for servers that tests start, stop and start again."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

LOWEST = 10_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses.

    It is below those that the system gives to clients and to servers that ask for any port, so
    nobody takes it while its server is down.
    """
    highest = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    while True:
        port = LOWEST + secrets.randbelow(highest - LOWEST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
