"""Less of the SDK's noise: what it logs with tracebacks is in our own errors already."""

from __future__ import annotations

import logging

from agent_brain.tools.mcp.host import THREAD
from agent_brain.tools.secrets import get_logger

logger = get_logger(__name__)

NOISY = ("client", "mcp.client.client", "mcp.client.stdio", "mcp.client.streamable_http")


def quieten() -> None:
    """Turn what the SDK logs in our thread, and only there, into debug messages of ours."""
    for name in NOISY:
        logging.getLogger(name).addFilter(_not_ours)  # a second time does nothing


def _not_ours(record: logging.LogRecord) -> bool:
    if record.threadName != THREAD:
        return True
    logger.debug("%s: %s", record.name, record.getMessage())
    return False
