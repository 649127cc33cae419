"""Why something went wrong, in words for a person. Needs the extra ``mcp``."""

from __future__ import annotations

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from agent_brain.tools.text import shorten

SAMPLE = 40  # tokens of something unexpected that are repeated


def reason_of(error: BaseException) -> str:
    """Why, as the second half of "The server …"."""
    error = _first_cause(error)
    if isinstance(error, FileNotFoundError):
        return "could not be started: there is no such command or folder"
    if isinstance(error, PermissionError):
        return "could not be started: that may not be executed"
    if isinstance(error, MCPError):
        if error.code == CONNECTION_CLOSED:
            return "stopped"
        if error.code == REQUEST_TIMEOUT:
            return "did not answer in time"
        return f"answered with an error: {error.message}"
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


def _first_cause(error: BaseException) -> BaseException:
    """The first error inside of groups of errors, which say nothing themselves."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
