"""Decide which addresses a request may go to, in any spelling."""

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
