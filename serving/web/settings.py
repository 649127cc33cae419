"""What requests are handled with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

from starlette.requests import HTTPConnection

from agent_brain.errors import BrainDefinitionError
from agent_brain.serving.caller import Caller
from agent_brain.serving.http_config import MAX_HEAD, MAX_HEADERS
from agent_brain.serving.sessions import Sessions
from agent_brain.serving.web.cookies import Cookies

Identify: TypeAlias = Callable[[HTTPConnection], Caller | Awaitable[Caller | None] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits on the requests to a server.

    Attributes:
        max_head: Maximum size in bytes of a request line with all headers.
        max_headers: Maximum number of headers.
        max_body: Maximum size of a request's body in bytes.
        body_timeout: Seconds that a client may take to send a body.
        per_minute: Requests of one client (a user, else an address) per minute; None for no limit.
        at_once: Requests in progress, streams included; None for no limit.
        at_once_each: The same for one client, so that it cannot keep out the others.
        stall: Seconds after which a reader that takes no data is dropped.

    Raises:
        BrainDefinitionError: A value is not greater than 0.
    """

    max_head: int = MAX_HEAD
    max_headers: int = MAX_HEADERS
    max_body: int = 5_000_000
    body_timeout: float = 30.0
    per_minute: float | None = 600.0
    at_once: int | None = 2_000
    at_once_each: int | None = 1_000
    stall: float = 30.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not value > 0:
                raise BrainDefinitionError(f"{each.name} must be greater than 0, not {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """What requests are handled with.

    Attributes:
        sessions: The sessions.
        limits: Limits on requests.
        tokens: The users by their tokens.
        identify: Says who sends a request, in place of tokens.
        user: Who sends a request if nothing says so.
        hosts: Allowed values of the header ``Host``, without a port; None allows all.
        origins: Origins of web pages of other hosts that may send requests.
        cookies: Makes and checks cookies.
        make_deps: Returns the dependencies of a run; None passes the caller.
        show_tools: Whether adapters to other protocols show tool calls.
        name: The name of the agent, as other protocols show it.
    """

    sessions: Sessions
    limits: ServerLimits
    tokens: Mapping[str, str | None]
    identify: Identify | None
    user: str | None
    hosts: frozenset[str] | None
    origins: frozenset[str]
    cookies: Cookies
    make_deps: Callable[[Caller], object] | None
    show_tools: bool
    name: str

    @property
    def needs_token(self) -> bool:
        """Whether clients must send a token."""
        return bool(self.tokens) or self.identify is not None
