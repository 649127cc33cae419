"""A tool for HTTP GET that reaches allowed hosts only, at public addresses, within limits.

Addresses are judged in any spelling, also those that embed another one.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urljoin, urlsplit
from weakref import WeakKeyDictionary

import anyio
from anyio.lowlevel import current_token

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

if TYPE_CHECKING:
    import httpx

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

MAX_REDIRECTS = 5

_HOST = re.compile(r"(?!-)[a-z0-9._-]{1,253}|\[[0-9a-f:.]+\]")
_PATTERN = re.compile(r"(\*|(?:\*\.)?[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?")
_CHARSETS = re.compile(  # Python has other codecs that are not character sets, some of them slow
    r"(?:utf|iso-?8859|windows-?125|cp125|latin|us-ascii|ascii|koi8|shift_jis|euc|gb|big5)[\w-]*",
    re.I,
)
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = {301, 302, 303, 307, 308}
_TEXTUAL = re.compile(
    r"text/|application/(?:json|xml|javascript|x-ndjson|yaml)|[^;]*\+(?:json|xml)"
)

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL = ipaddress.ip_network("2000::/3")  # all assigned IPv6 addresses
_NOT_PUBLIC = (  # with what versions of ipaddress do not agree about
    ipaddress.ip_network("168.63.129.16/32"),  # Azure's service on each of its machines
    ipaddress.ip_network("192.0.0.0/24"),  # protocols, such as Oracle's metadata
    ipaddress.ip_network("192.88.99.0/24"),  # relays of 6to4
    ipaddress.ip_network("2001::/23"),  # protocols, such as Teredo
    ipaddress.ip_network("2002::/16"),  # 6to4, which embeds any IPv4 address
    ipaddress.ip_network("3fff::/20"),  # documentation
)
_ISATAP = (0x00005EFE, 0x02005EFE)
_LOCAL_NAMES = ("localhost", "local", "internal", "home.arpa", "metadata", "instance-data")


async def resolve(host: str, port: int) -> list[str]:
    """Return all addresses of a host according to the system, or raise OSError."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def is_public(text: str) -> bool:
    """Return whether an address, and any address it embeds, is on the public internet."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return "%" not in text and all(map(_is_public, _meanings(address)))


def is_local_name(host: str) -> bool:
    """Return whether a host name is for use inside a network, as of a cloud's metadata service."""
    name = host.rstrip(".").lower()
    return any(name == local or name.endswith(f".{local}") for local in _LOCAL_NAMES)


def _is_public(address: Address) -> bool:
    if address.version == 6 and address not in _GLOBAL:
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _meanings(address: Address) -> list[Address]:
    """Return the address, or the IPv4 addresses that it embeds, or both."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return [address, ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _NAT64 or int(address) < 1 << 32:  # NAT64, and the old "compatible" addresses
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address]


async def checked_address(host: str, port: int, resolver: Resolve, *, private: bool) -> str:
    """Return an address of ``host`` to connect to; refuse a host with any that is not public."""
    try:
        addresses = await resolver(host, port)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"The host {host!r} was not found: {error}") from None
    if not addresses:
        raise ToolError(f"The host {host!r} has no address")
    for address in () if private else addresses:
        if not is_public(address):
            raise ToolError(
                f"{host!r} leads to {address}, which is not on the public internet: not fetched"
            )
    if not private and is_local_name(host):
        raise ToolError(f"{host!r} is not a name on the public internet: not fetched")
    return addresses[0]


class Target(NamedTuple):
    """A parsed URL: nothing else of it is used afterwards."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """The URL, put together again."""
        return f"{self.scheme}://{self.host}:{self.port}{self.path}"

    def matches(self, patterns: Iterable[re.Match[str]]) -> bool:
        """Return whether the host and port match one of ``patterns``."""
        return any(
            self.port == int(match[2] or _PORTS[self.scheme])
            and fnmatchcase(self.host, match[1].replace("[", "[[]"))
            for match in patterns
        )


def read_url(url: str) -> Target:
    """Parse a URL, or raise ToolError if it may not be fetched."""
    if re.search(r"[\x00-\x20\x7f\\]", url) or len(url) > 4_000:
        raise ToolError(f"{url[:200]!r} is not fetched: it is too long or has unsafe characters")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").rstrip(".").encode("idna").decode().lower()
    except (ValueError, UnicodeError) as error:
        raise ToolError(f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise ToolError(f"Only http and https URLs are fetched, not {url!r}")
    if "@" in parts.netloc:
        raise ToolError(f"URLs with a user name or a password are not fetched: {url!r}")
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host):
        raise ToolError(f"{url!r} has an invalid host: {host!r}")
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
    """Return the tool ``http_get``, which fetches text from allowed hosts only.

    A host name is resolved once, its addresses are checked, and the connection goes to the checked
    address; each redirect is checked in the same way. Loopback, private, link-local, multicast and
    reserved addresses are refused in every spelling. Proxies, cookies and credentials of the
    environment are not used.

    Args:
        allow: Public hosts: ``"example.com"``, ``"*.example.com"`` (without the bare domain) or
            ``"*"`` for any; with a port if it is not the default one of the scheme.
        private: Hosts that may have private addresses, such as ``"localhost:8000"``.
        max_bytes: Larger bodies are refused.
        timeout: Seconds for the whole call, including redirects.
        max_result_tokens: Longer texts are shortened; the agent may read the rest in parts.
        resolver: Resolves host names; for other name services, and for tests.
        transport: Sends the requests; for tests.

    Raises:
        ToolDefinitionError: A host is invalid.
    """
    fetcher = _Fetcher(_hosts(allow), _hosts(private), max_bytes, resolver, transport)

    @tool(timeout=timeout, idempotent=True, max_result_tokens=max_result_tokens)
    async def http_get(url: str) -> str:
        """Fetch a text (a web page, JSON, …) from the web by its URL.

        Args:
            url: An http or https URL.
        """
        import httpx

        try:
            return await fetcher.get(url)
        except httpx.HTTPError as error:
            raise ToolError(
                f"{url!r} could not be fetched: {str(error) or type(error).__name__}"
            ) from error

    return http_get


def _hosts(hosts: str | Iterable[str]) -> list[re.Match[str]]:
    patterns = []
    for host in (hosts,) if isinstance(hosts, str) else hosts:
        match = _PATTERN.fullmatch(host) if isinstance(host, str) else None
        if match is None:
            raise ToolDefinitionError(
                f"{host!r} is not a host: write 'example.com', '*.example.com', "
                "'example.com:8080' or '*'"
            )
        patterns.append(match)
    return patterns


class _Redirect(NamedTuple):
    location: str


@dataclass(eq=False, repr=False)
class _Fetcher:
    """Fetches texts, with one client for each event loop.

    Connections are not kept, so there is nothing to close at the end of a loop. Keeping them would
    be unsafe too: a connection belongs to an address, and two hosts at one address would share it,
    whatever certificate it was opened with.
    """

    _allow: list[re.Match[str]]
    _private: list[re.Match[str]]
    _max_bytes: int
    _resolver: Resolve
    _transport: httpx.AsyncBaseTransport | None
    _clients: WeakKeyDictionary[object, httpx.AsyncClient] = field(
        default_factory=WeakKeyDictionary
    )

    async def get(self, url: str) -> str:
        """Return the text at ``url``, following redirects."""
        target = read_url(url)
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._fetch(target, await self._address(target))
            if isinstance(found, str):
                return found
            try:
                location = urljoin(target.url, found.location)
            except ValueError as error:
                raise ToolError(
                    f"{target.url} redirects to {found.location!r}, which is not a URL: {error}"
                ) from None
            redirected = read_url(location)
            if (target.scheme, redirected.scheme) == ("https", "http"):
                raise ToolError(f"{target.url} redirects from https to http, which is not followed")
            target = redirected
        raise ToolError(f"{url!r} redirects more than {MAX_REDIRECTS} times")

    async def _address(self, target: Target) -> str:
        private = target.matches(self._private)
        if not private and not target.matches(self._allow):
            allowed = ", ".join(match[0] for match in (*self._allow, *self._private)) or "none"
            raise ToolError(
                f"{target.host}:{target.port} may not be fetched. Allowed hosts: {allowed}"
            )
        host = target.host.strip("[]")
        return await checked_address(host, target.port, self._resolver, private=private)

    async def _fetch(self, target: Target, address: str) -> str | _Redirect:
        """Send one request to ``address``, under the name in the URL."""
        client = self._client()
        default = _PORTS[target.scheme] == target.port
        headers = {
            "Host": target.host if default else f"{target.host}:{target.port}",
            "Accept": "text/*, application/json, */*;q=0.1",
            "Accept-Encoding": "identity",  # a small compressed body may be huge when unpacked
            "User-Agent": "agent-brain",
        }
        where = f"[{address}]" if ":" in address else address
        request = client.build_request(
            "GET",
            f"{target.scheme}://{where}:{target.port}{target.path}",
            headers=headers,
            extensions={
                "sni_hostname": target.host.strip("[]"),
                "timeout": client.timeout.as_dict(),
            },
        )
        response = await client.send(request, stream=True)
        try:
            if response.status_code in _REDIRECTS and "location" in response.headers:
                return _Redirect(response.headers["location"])
            return await self._text(response, target)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _text(self, response: httpx.Response, target: Target) -> str:
        kind = response.headers.get("content-type", "text/plain").lower()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ToolError(f"{target.url} answered with compressed content, which is not read")
        if not _TEXTUAL.match(kind):
            raise ToolError(f"{target.url} is not text but {kind.split(';')[0]!r}")
        body = b""
        chunks = response.aiter_bytes()
        async for chunk in chunks:
            body += chunk
            if len(body) > self._max_bytes:
                await response.aclose()
                with suppress(Exception):  # httpx's inner generators end only when exhausted
                    async for _ in chunks:
                        pass
                raise ToolError(f"{target.url} has more than {self._max_bytes:,} bytes")
        charset = response.charset_encoding or "utf-8"
        try:
            text = body.decode(charset if _CHARSETS.fullmatch(charset) else "utf-8", "replace")
        except LookupError:
            text = body.decode(errors="replace")
        if response.status_code < 400:
            return text
        status = f"{response.status_code} {response.reason_phrase}"
        raise ToolError(f"{target.url} answered {status}: {text[:500]}")

    def _client(self) -> httpx.AsyncClient:
        import httpx

        loop = current_token().native_token
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = httpx.AsyncClient(
                transport=self._transport,
                follow_redirects=False,
                trust_env=False,
                limits=httpx.Limits(max_keepalive_connections=0),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # accepts none
            )
        return client
