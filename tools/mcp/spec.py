"""Configuration of one MCP server, as checked data. Secrets are never shown. Private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from agent_brain.tools.base import RESULT_TOKENS
from agent_brain.tools.secrets import scrub

Approval = Literal["never", "destructive", "always"]

CALL_SECONDS = 60.0
START_SECONDS = 30.0
DESCRIPTION_TOKENS = 2_000
SHORTEST_SECRET = 4  # shorter values, such as "1" or "yes", occur in any text


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """Base class: the options of all servers."""

    name: str
    timeout: float | None = CALL_SECONDS  # of a call
    start_timeout: float = START_SECONDS  # of starting and listing
    approval: Approval = "never"
    max_result_tokens: int | None = RESULT_TOKENS
    max_description_tokens: int | None = DESCRIPTION_TOKENS  # of a tool, and a tenth of its schema
    secrets: frozenset[str] = field(default=frozenset(), repr=False)  # must not be shown

    @property
    def place(self) -> str:
        """Where the server is, for people."""
        raise NotImplementedError

    def redact(self, text: str) -> str:
        """Return ``text`` without secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return scrub(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer(ServerSpec):
    """A program to start, spoken to over its stdin and stdout."""

    command: str = field(repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # besides a few harmless ones
    cwd: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """The command, without its arguments."""
        return self.redact(self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer(ServerSpec):
    """A running server, spoken to over streamable HTTP."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """The URL, without a user, a password or a query."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return self.redact(urlunsplit((parts.scheme, host, parts.path, "", "")))
