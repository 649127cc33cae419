"""Configuration of one MCP server, as checked data. Secrets are never shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from agent_brain.common.secrets import scrub
from agent_brain.tools.base import RESULT_TOKENS
from agent_brain.tools.mcp.oauth import OAuth, read_auth

Approval = Literal["never", "destructive", "always"]

CALL_SECONDS = 60.0
START_SECONDS = 30.0
DESCRIPTION_TOKENS = 2_000
SHORTEST_SECRET = 4  # shorter values, such as "1" or "yes", occur in any text


def is_url(text: str) -> bool:
    """Return whether a text is the address of a server over HTTP."""
    try:
        parts = urlsplit(text)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _http_url(url: str) -> str:
    if not is_url(url):
        raise PydanticCustomError("url", "It must begin with http:// or https:// and name a host")
    return url


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
_Tokens = Annotated[int, Field(strict=True, gt=0)]


class ServerSpec(BaseModel):
    """Base class: the options of all servers, as in the entry of one in a configuration."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    name: str
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    disabled: bool = False
    timeout: _Seconds | None = CALL_SECONDS  # of a call
    start_timeout: _Seconds = START_SECONDS  # of starting and listing
    approval: Approval = "never"
    max_result_tokens: _Tokens | None = RESULT_TOKENS
    max_description_tokens: _Tokens | None = DESCRIPTION_TOKENS  # of a tool, a tenth of its schema
    questions: bool = True  # whether it may ask a person
    older_protocol: bool = False  # speak that of 2025, in which servers can ask at any time
    resources: bool = False  # whether models can list and read them
    context: list[_Text] = []  # URIs of resources that each request shows
    prompts: bool = False  # whether models can get them
    secrets: frozenset[str] = Field(default=frozenset(), repr=False)  # must not be shown

    @property
    def place(self) -> str:
        """Where the server is, for people."""
        raise NotImplementedError

    @property
    def connect_timeout(self) -> float:
        """Seconds until it must have answered for the first time."""
        return self.start_timeout

    def redact(self, text: str) -> str:
        """Return ``text`` without secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return scrub(text)


class StdioServer(ServerSpec):
    """A program to start, spoken to over its stdin and stdout."""

    command: _Text = Field(repr=False)
    args: list[str] = Field(default=[], repr=False)
    env: dict[str, str] = Field(default={}, repr=False)  # besides a few harmless ones
    cwd: _Text | None = Field(default=None, repr=False)

    @property
    def place(self) -> str:
        """The command, without its arguments."""
        return self.redact(self.command)


class HttpServer(ServerSpec):
    """A running server, spoken to over streamable HTTP."""

    url: Annotated[str, AfterValidator(_http_url)] = Field(repr=False)
    headers: dict[str, str] = Field(default={}, repr=False)
    auth: Annotated[Any, BeforeValidator(read_auth)] = Field(default=None, repr=False)

    @property
    def connect_timeout(self) -> float:
        """The same, with the time that a person has to sign in."""
        return self.start_timeout + (self.auth.timeout if isinstance(self.auth, OAuth) else 0)

    @property
    def place(self) -> str:
        """The URL, without a user, a password or a query."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return self.redact(urlunsplit((parts.scheme, host, parts.path, "", "")))
