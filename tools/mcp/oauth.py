"""How to sign in to a server over HTTP with OAuth, as configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

SIGN_IN_SECONDS = 300.0


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


def default_folder() -> Path:
    """Return the folder that tokens are kept in."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "agent-brain" / "mcp"
