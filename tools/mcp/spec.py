"""How to reach a server, as checked data. A secret in it is never shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from agent_brain.tools.secrets import scrub

Approval = Literal["never", "destructive", "always"]

CALL_SECONDS = 60.0
START_SECONDS = 30.0
RESULT_TOKENS = 10_000
DESCRIPTION_TOKENS = 2_000
SHORTEST_SECRET = 4  # shorter values, such as "1" or "yes", occur in any text


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """What servers have in common, however they are reached.

    Attributes:
        name: What it is called here.
        timeout: Seconds that a call may take; None waits.
        start_timeout: Seconds that it may take to start and to say what it can do.
        approval: Which of its tools need a person's approval: none, those that may destroy
            something as far as they say, or all.
        max_result_tokens: How long a result may be; None for no limit.
        max_description_tokens: How long the description of a tool, and each one in its schema,
            may be, and a tenth of how long the schema may be; None for no limit.
        secrets: Texts that must not be shown.
    """

    name: str
    timeout: float | None = CALL_SECONDS
    start_timeout: float = START_SECONDS
    approval: Approval = "never"
    max_result_tokens: int | None = RESULT_TOKENS
    max_description_tokens: int | None = DESCRIPTION_TOKENS
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def place(self) -> str:
        """Where it is, for people."""
        raise NotImplementedError

    def redact(self, text: str) -> str:
        """``text`` without what must not be shown."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return scrub(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioServer(ServerSpec):
    """A program to start and to talk with over its stdin and stdout.

    Attributes:
        command: The program.
        args: Its arguments.
        env: Environment variables, over the few harmless ones that it is given anyway.
        cwd: The folder to start it in; None: this process's.
    """

    command: str = field(repr=False)
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """The command, without its arguments."""
        return self.redact(self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer(ServerSpec):
    """A server that is there already, spoken to over streamable HTTP.

    Attributes:
        url: Its endpoint.
        headers: Sent with every request.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def place(self) -> str:
        """The address, without a user, a password or a query."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return self.redact(urlunsplit((parts.scheme, host, parts.path, "", "")))
