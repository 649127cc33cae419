"""The other sessions of a tenant, for recall."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions.listing import is_session, tenant_prefix
from agent_brain.memories.store.session import read_session_key

if TYPE_CHECKING:
    from agent_brain.memories.vector import VectorMemory

Scope: TypeAlias = Literal["session", "tenant"]


class TenantSessions:
    """Read-only memories of the sessions of one tenant.

    Args:
        journal: Has the sessions.
        tenant: Whose sessions.
        make: Makes the read-only memory of a session.
    """

    def __init__(self, journal: Journal, tenant: str, make: Callable[[str], VectorMemory]) -> None:
        self._journal = journal
        self._prefix = tenant_prefix(tenant)
        self._make = make
        self._lock = anyio.Lock()
        self._memories: dict[str, VectorMemory] = {}

    async def but(self, session: str) -> list[VectorMemory]:
        """Return the memories of all sessions but ``session``, as they are in the journal now."""
        async with self._lock:
            names = {
                key: read_session_key(key)[0]
                for key in await self._journal.sessions(self._prefix)
                if is_session(key)
            }
            for key in self._memories.keys() - names.keys():
                await self._memories.pop(key).aclose()
            others = [key for key, name in names.items() if name != session]
            for key in others:
                if key not in self._memories:
                    self._memories[key] = self._make(names[key])
                await self._memories[key].open()
            return [self._memories[key] for key in others]

    async def aclose(self) -> None:
        """Close the memories."""
        while self._memories:
            await self._memories.popitem()[1].aclose()


def checked_scope(scope: str, tenant: str | None, journal: Journal | None) -> Scope:
    """Return ``scope`` if a memory with this tenant and journal can recall from it.

    Raises:
        MemoryUseError: It cannot.
    """
    if scope == "session":
        return "session"
    if scope != "tenant":
        raise MemoryUseError(f"scope= must be 'session' or 'tenant', not {scope!r}")
    if tenant is None:
        raise MemoryUseError(
            "recall(scope='tenant') needs a memory with a tenant: VectorMemory(tenant='alice', …)"
        )
    if journal is None:
        raise MemoryUseError(
            "recall(scope='tenant') reads the other sessions from a journal: give the memory path= "
            "or journal="
        )
    return "tenant"
