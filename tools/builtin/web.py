"""HTTP GET that cannot be led astray: to other hosts, to private addresses, or without end."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit
from weakref import WeakKeyDictionary

import anyio
from anyio.lowlevel import current_token

from agent_brain.tools.base import BaseTool
from agent_brain.tools.builtin.address_policy import Resolve, checked_address, resolve
from agent_brain.tools.errors import ToolDefinitionError, ToolError
from agent_brain.tools.function import tool

if TYPE_CHECKING:
    import httpx

_HOST = re.compile(r"(?!-)[a-z0-9._-]{1,253}|\[[0-9a-f:.]+\]")
_PATTERN = re.compile(r"(\*|(?:\*\.)?[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?")
_CHARSETS = re.compile(  # Python knows others that are no character sets, some of them slow
    r"(?:utf|iso-?8859|windows-?125|cp125|latin|us-ascii|ascii|koi8|shift_jis|euc|gb|big5)[\w-]*",
    re.I,
)
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = {301, 302, 303, 307, 308}
_TEXTUAL = re.compile(
    r"text/|application/(?:json|xml|javascript|x-ndjson|yaml)|[^;]*\+(?:json|xml)"
)


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be fetched.

    Attributes:
        allow: Hosts: ``"example.com"``, ``"*.example.com"`` (not the bare domain), ``"*"`` for any
            public one; with a port (``"example.com:8080"``) if it is not the scheme's own.
        private: Those of the same form that may be on private addresses.
        max_bytes: Of a body.
        max_redirects: In one call.
    """

    allow: tuple[str, ...]
    private: tuple[str, ...] = ()
    max_bytes: int = 1_000_000
    max_redirects: int = 5

    def __post_init__(self) -> None:
        for pattern in (*self.allow, *self.private):
            if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
                raise ToolDefinitionError(
                    f"{pattern!r} names no host: write 'example.com', '*.example.com', "
                    "'example.com:8080' or '*'"
                )

    def private_host(self, target: Target) -> bool:
        """Whether ``target`` may be on a private address.

        Raises:
            ToolError: It may not be fetched at all.
        """
        if _listed(target, self.private):
            return True
        if not _listed(target, self.allow):
            allowed = ", ".join((*self.allow, *self.private)) or "none"
            raise ToolError(
                f"{target.host}:{target.port} may not be fetched. Allowed hosts: {allowed}"
            )
        return False


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart, once: nothing else is looked at afterwards."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """The URL, put together again."""
        return f"{self.scheme}://{self.host}:{self.port}{self.path}"


def _patterns(hosts: str | Iterable[str]) -> tuple[str, ...]:
    """One host, or several; the letters of a text are not hosts."""
    return (hosts,) if isinstance(hosts, str) else tuple(hosts)


def _listed(target: Target, patterns: Iterable[str]) -> bool:
    for pattern in patterns:
        match = _PATTERN.fullmatch(pattern)
        assert match is not None
        port = int(match[2]) if match[2] else _PORTS[target.scheme]
        if target.port == port and fnmatchcase(target.host, match[1].replace("[", "[[]")):
            return True
    return False


def read_url(url: str) -> Target:
    """Take a URL apart.

    Raises:
        ToolError: It is none that is fetched.
    """
    if re.search(r"[\x00-\x20\x7f\\]", url) or len(url) > 4_000:
        raise ToolError(f"{url[:200]!r} is no URL that is fetched: it has characters that mislead")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".").encode("idna").decode().lower()
    except (ValueError, UnicodeError) as error:
        raise ToolError(f"{url!r} is no URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise ToolError(f"Only http and https URLs are fetched, not {url!r}")
    if "@" in parts.netloc:
        raise ToolError(f"URLs with a user name or a password are not fetched: {url!r}")
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host):
        raise ToolError(f"{url!r} names no host that is fetched: {host!r}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path)


def http_get_tool(
    allow: str | Iterable[str],
    *,
    private: str | Iterable[str] = (),
    max_bytes: int = 1_000_000,
    timeout: float = 20.0,
    max_result_tokens: int | None = 4_000,
    resolver: Resolve = resolve,
    transport: httpx.AsyncBaseTransport | None = None,
) -> BaseTool:
    """``http_get``: fetch text from hosts that are allowed, and from nowhere else.

    A host's name is resolved once, its addresses are checked, and the connection is made to the
    very address that was checked; each redirect is checked in the same way. Loopback, private,
    link-local, multicast and reserved addresses are refused in every spelling. Proxies, cookies and
    credentials of the environment are not used.

    Args:
        allow: Hosts on the public internet: ``"example.com"``, ``"*.example.com"``, ``"*"`` for
            any; with a port if it is not the scheme's own.
        private: Hosts that may be on private addresses, such as ``"localhost:8000"``.
        max_bytes: Longer bodies are refused.
        timeout: Seconds for the whole call, redirects included.
        max_result_tokens: Longer texts are shortened; the agent may read the rest in parts.
        resolver: Tells the addresses of a host; for other name services, and for tests.
        transport: How requests are sent; for tests.

    Raises:
        ToolDefinitionError: A host that is none.
    """
    policy = Policy(_patterns(allow), _patterns(private), max_bytes)
    clients = _Clients(transport)

    @tool(timeout=timeout, idempotent=True, max_result_tokens=max_result_tokens)
    async def http_get(url: str) -> str:
        """Fetch a text (a web page, JSON, …) from the web by its URL.

        Args:
            url: An http or https URL.
        """
        import httpx

        try:
            return await _follow(clients.here(), url, policy, resolver)
        except httpx.HTTPError as error:
            raise ToolError(
                f"{url!r} could not be fetched: {str(error) or type(error).__name__}"
            ) from error

    return http_get


class _Clients:
    """One client for each event loop that the tool is used on.

    They keep no connection, so there is nothing to close between calls and nothing to leave open
    at the end of a loop. A kept connection would also be wrong: it belongs to an address, and two
    hosts on one address would share it, whatever certificate it was opened with.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None) -> None:
        self._transport = transport
        self._by_loop: WeakKeyDictionary[object, httpx.AsyncClient] = WeakKeyDictionary()

    def here(self) -> httpx.AsyncClient:
        """The client of the running loop."""
        import httpx

        loop = current_token().native_token
        client = self._by_loop.get(loop)
        if client is None:
            client = self._by_loop[loop] = httpx.AsyncClient(
                transport=self._transport,
                follow_redirects=False,
                trust_env=False,
                limits=httpx.Limits(max_keepalive_connections=0),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # takes none
            )
        return client


async def _follow(client: httpx.AsyncClient, url: str, policy: Policy, resolver: Resolve) -> str:
    target = read_url(url)
    for _ in range(policy.max_redirects + 1):
        private = policy.private_host(target)
        bare = target.host.strip("[]")
        address = await checked_address(bare, target.port, resolver, private=private)
        found = await _fetch(client, target, address, policy.max_bytes)
        if isinstance(found, str):
            return found
        next_target = read_url(_joined(target.url, found.location))
        if (target.scheme, next_target.scheme) == ("https", "http"):
            raise ToolError(f"{target.url} redirects from https to http, which is not followed")
        target = next_target
    raise ToolError(f"{url!r} redirects more than {policy.max_redirects} times")


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise ToolError(f"{url} redirects to {location!r}, which is no URL: {error}") from None


@dataclass(frozen=True, slots=True)
class _Redirect:
    location: str


async def _fetch(
    client: httpx.AsyncClient, target: Target, address: str, max_bytes: int
) -> str | _Redirect:
    """One request, to that very address, under the name that was asked for."""
    default = _PORTS[target.scheme] == target.port
    headers = {
        "Host": target.host if default else f"{target.host}:{target.port}",
        "Accept": "text/*, application/json, */*;q=0.1",
        "Accept-Encoding": "identity",  # what is small on the way may be huge when unpacked
        "User-Agent": "agent-brain",
    }
    where = f"[{address}]" if ":" in address else address
    request = client.build_request(
        "GET",
        f"{target.scheme}://{where}:{target.port}{target.path}",
        headers=headers,
        extensions={"sni_hostname": target.host.strip("[]"), **_timeouts(client)},
    )
    response = await client.send(request, stream=True)
    try:
        if response.status_code in _REDIRECTS and "location" in response.headers:
            return _Redirect(response.headers["location"])
        return await _text(response, target, max_bytes)
    finally:
        with anyio.CancelScope(shield=True):
            await response.aclose()


def _timeouts(client: httpx.AsyncClient) -> dict[str, Any]:
    return {"timeout": client.timeout.as_dict()}


def _decode(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset if _CHARSETS.fullmatch(charset) else "utf-8", errors="replace")
    except LookupError:
        return body.decode(errors="replace")


async def _text(response: httpx.Response, target: Target, max_bytes: int) -> str:
    kind = response.headers.get("content-type", "text/plain").lower()
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ToolError(f"{target.url} answered with packed content, which is not read")
    if not _TEXTUAL.match(kind):
        raise ToolError(f"{target.url} is no text but {kind.split(';')[0]!r}")
    body = b""
    chunks = response.aiter_bytes()
    async for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            await response.aclose()
            with suppress(Exception):  # httpx's inner generators end only when they are used up
                async for _ in chunks:
                    pass
            raise ToolError(f"{target.url} has more than {max_bytes:,} bytes, and is not read")
    text = _decode(body, response.charset_encoding or "utf-8")
    if response.status_code >= 400:
        raise ToolError(
            f"{target.url} answered {response.status_code} {response.reason_phrase}: {text[:500]}"
        )
    return text
