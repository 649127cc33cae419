"""Which addresses a request may go to, whatever way they are written."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from agent_brain.tools.errors import ToolError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL = ipaddress.ip_network("2000::/3")  # all of IPv6 that is given out, site-local is outside
_NOT_PUBLIC = (
    ipaddress.ip_network("168.63.129.16/32"),  # Azure's own service on each of its machines
    ipaddress.ip_network("192.0.0.0/24"),  # for protocols, Oracle's metadata among them
    ipaddress.ip_network("3fff::/20"),  # for documentation
)
_ISATAP = (0x00005EFE, 0x02005EFE)
_LOCAL_NAMES = ("localhost", "local", "internal", "home.arpa", "metadata", "instance-data")


async def resolve(host: str, port: int) -> list[str]:
    """All addresses of a host, as the system knows them; spellings such as ``0x7f.1`` included.

    Raises:
        OSError: It has none.
    """
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def is_public(text: str) -> bool:
    """Whether an address belongs to the public internet, by itself and by what it embeds."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return "%" not in text and all(map(_is_public, _meanings(address)))


def is_local_name(host: str) -> bool:
    """Whether a host's name is for use inside a network, such as a cloud's metadata service."""
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
    """The address itself or, if it stands for an IPv4 address, that one too or instead."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:
        return [address, address.sixtofour]
    if address.teredo is not None:
        return [address, *address.teredo]
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return [address, ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    if address in _NAT64 or int(address) < 1 << 32:  # NAT64, and the old "compatible" addresses
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address]


async def checked_address(host: str, port: int, resolver: Resolve, *, private: bool) -> str:
    """One address of ``host`` that may be connected to: this very one, without asking again.

    Args:
        host: A name or an address.
        port: The port.
        resolver: Tells the addresses of a name.
        private: Addresses outside of the public internet are fine.

    Raises:
        ToolError: It has no address, or one that is not public: a name that leads to both kinds
            is not trusted with either. Or its name is one for use inside a network.
    """
    try:
        addresses = await resolver(host, port)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"The host {host!r} was not found: {error}") from None
    if not addresses:
        raise ToolError(f"The host {host!r} has no address")
    if not private:
        for address in addresses:
            if not is_public(address):
                raise ToolError(
                    f"{host!r} leads to {address}, which is not on the public internet: not fetched"
                )
        if is_local_name(host):
            raise ToolError(f"{host!r} is not a name on the public internet: not fetched")
    return addresses[0]
