"""Who asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the server knows it; the ``deps`` of a run unless the server makes others.

    Attributes:
        user: The user; None if nobody is identified.
        tenant: The user's tenant; users of different tenants are different users.
        headers: The headers of the request with names in lower case, without those that identify.
    """

    user: str | None = None
    tenant: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
