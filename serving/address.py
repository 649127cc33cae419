"""Where a server listens."""

from __future__ import annotations

import errno
import socket

from agent_brain.errors import BrainDefinitionError


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        BrainDefinitionError: The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "the port is taken" if taken else error.strerror or str(error)
        raise BrainDefinitionError(
            f"Cannot listen on {host}:{port}: {why}. Choose another port, or 0 for any free one"
        ) from error


def shown(host: str) -> str:
    """Return ``host`` as it is written in a URL."""
    return f"[{host}]" if ":" in host else host or "0.0.0.0"
