"""Configuration of one MCP server and how to sign in to it, as checked data.

Secrets are never shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from agent_brain.common.secrets import scrub
from agent_brain.tools.base import RESULT_TOKENS

Approval = Literal["never", "destructive", "always"]

CALL_SECONDS = 60.0
START_SECONDS = 30.0
SIGN_IN_SECONDS = 300.0
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


class OAuth(BaseModel):
    """Signing in to an MCP server with OAuth, as ``"auth"`` in its entry.

    Without options, ``"auth": "oauth"`` in a file: at a terminal, a person signs in with a browser
    on this computer, and the tokens are kept in a file that only this user can read. A program with
    users of its own says where tokens are kept, and how somebody signs in::

        async def sign_in(url: str) -> str:
            await send_to_the_users_browser(url)
            return await the_url_that_the_browser_was_sent_back_to()

        auth = OAuth(storage=tokens_of(user), sign_in=sign_in, redirect_uri="https://my.app/back")
        servers = {"mcpServers": {"files": {"url": "https://example.org/mcp", "auth": auth}}}

    ``storage`` and ``sign_in`` are called in the thread of the connections, which has an event loop
    of its own (asyncio). Tokens are hidden in results of tools, errors and logs.

    Attributes:
        storage: Where tokens and the registration of the client are kept: the path of a file, or an
            object with the methods of the SDK's ``TokenStorage``. Default: a file for each server
            in ``~/.config/agent-brain/mcp``.
        sign_in: Takes the URL at which a person signs in; returns the URL that the browser was then
            sent to. An async function, or a sync one, which runs in a thread.
        redirect_uri: Where browsers are sent; ``sign_in`` needs it.
        client_id: The ID of a client that was registered by hand; others register themselves.
        client_secret: Its secret, if it has one.
        timeout: Seconds that a person has.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, frozen=True, extra="forbid"
    )

    storage: Any = Field(default=None, repr=False)
    sign_in: Callable[[str], Any] | None = None
    redirect_uri: str | None = None
    client_id: str | None = None
    client_secret: str | None = Field(default=None, repr=False)
    timeout: float = Field(default=SIGN_IN_SECONDS, strict=True, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.sign_in is None) != (self.redirect_uri is None):
            raise ValueError("sign_in and redirect_uri go together")
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("client_secret goes with client_id")
        is_path = self.storage is None or isinstance(self.storage, str | os.PathLike)
        if not is_path and not hasattr(self.storage, "get_tokens"):
            raise ValueError("storage must be a path, or have the methods of TokenStorage")
        return self


def read_auth(value: Any) -> Any:
    """Return what ``"auth"`` in a configuration means: an ``OAuth``, or another way to sign in.

    Raises:
        ValueError: It is none.
    """
    if value == "oauth":
        return OAuth()
    if isinstance(value, dict):
        return OAuth.model_validate(value)
    if value is None or isinstance(value, OAuth) or hasattr(value, "async_auth_flow"):
        return value
    raise ValueError("'oauth', the options of OAuth(…), or an httpx2.Auth")


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
