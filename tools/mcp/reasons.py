"""Why something went wrong, in words for a person. Needs the extra ``mcp``."""

from __future__ import annotations

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST
from pydantic import ValidationError

from agent_brain.tools.text import shorten

MOST_WORDS = 2000  # tokens of a server's own words that are repeated
SAMPLE = 40  # tokens of something unexpected that are repeated


def reason_of(error: BaseException) -> str:
    """Why, as the second half of "The server …"."""
    error = _first_cause(error)
    if isinstance(error, FileNotFoundError):
        return "could not be started: there is no such command or folder"
    if isinstance(error, PermissionError):
        return "could not be started: that may not be executed"
    if isinstance(error, MCPError):
        if is_closed(error):
            return "stopped"
        return answered(error)
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"answered with something unusable: {shorten(repr(first['input']), SAMPLE)}"
    if isinstance(error, httpx2.ConnectError):
        return "could not be reached: nothing answers there"
    if isinstance(error, httpx2.TransportError):
        return f"could not be reached: {type(error).__name__}"
    return f"failed with {type(error).__name__}: {error}"


def answered(error: BaseException) -> str:
    """As :func:`reason_of`, for an error that came while the connection stood."""
    if isinstance(error, MCPError):
        return f"answered with an error: {shorten(error.message, MOST_WORDS)}"
    return reason_of(error)


def is_closed(error: BaseException) -> bool:
    """Whether the SDK, and not the server, says that the connection is closed.

    It does so with a code that any server may use for its own errors: only the words differ.
    """
    if not isinstance(error, MCPError):
        return False
    return error.code == CONNECTION_CLOSED and error.message == "Connection closed"


def is_lost(error: BaseException) -> bool:
    """Whether the SDK says that an answer over HTTP broke off, or that the session is over."""
    if not isinstance(error, MCPError):
        return False
    broke_off = error.code == CONNECTION_CLOSED and error.message.startswith("SSE stream ")
    return broke_off or (error.code == INVALID_REQUEST and error.message == "Session terminated")


def _first_cause(error: BaseException) -> BaseException:
    """The first error inside of groups of errors, which say nothing themselves."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
