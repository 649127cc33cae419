"""Tagging and pinning of messages: four methods over one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from agent_brain.memories.base import Memory
from agent_brain.memories.store.filters import Names


@dataclass(frozen=True, slots=True)
class Retagging:
    """What changes: tags that messages get and lose, and whether they are pinned."""

    add: Names = ()
    remove: Names = ()
    pinned: bool | None = None


class Retagged(Memory):
    """The methods of memories that tag and pin messages."""

    async def tag(self, ids: Names, *tags: str) -> int:
        """Add ``tags`` to messages; unknown IDs are ignored. Return how many messages are here."""
        return await self._retag("tag()", ids, Retagging(add=tags))

    async def untag(self, ids: Names, *tags: str) -> int:
        """Remove ``tags`` from messages; otherwise as :meth:`tag`."""
        return await self._retag("untag()", ids, Retagging(remove=tags))

    async def pin(self, ids: Names) -> int:
        """Pin messages, so that they neither leave a window or a summary nor expire by ``ttl``.

        Messages that have left already do not return. Unknown IDs are ignored.

        Returns:
            How many of the messages are here.
        """
        return await self._retag("pin()", ids, Retagging(pinned=True))

    async def unpin(self, ids: Names) -> int:
        """Let messages leave like others again; otherwise as :meth:`pin`."""
        return await self._retag("unpin()", ids, Retagging(pinned=False))

    @abstractmethod
    async def _retag(self, method: str, ids: Names, change: Retagging) -> int:
        """Change messages for a method; return how many of them are here."""
