"""Tagging and pinning of messages: four methods over one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

from agent_brain.memories.base import Memory
from agent_brain.memories.store.events import Tagged
from agent_brain.memories.store.filters import Names, names


class Retagged(Memory):
    """The methods of memories that tag and pin messages."""

    async def tag(self, ids: Names, *tags: str) -> int:
        """Add ``tags`` to messages; unknown IDs are ignored. Return how many messages are here."""
        return await self._retag("tag()", ids, partial(Tagged, add=[*names("tags", tags)]))

    async def untag(self, ids: Names, *tags: str) -> int:
        """Remove ``tags`` from messages; otherwise as :meth:`tag`."""
        return await self._retag("untag()", ids, partial(Tagged, remove=[*names("tags", tags)]))

    async def pin(self, ids: Names) -> int:
        """Pin messages, so that they neither leave a window or a summary nor expire by ``ttl``.

        Messages that have left already do not return. Unknown IDs are ignored.

        Returns:
            How many of the messages are here.
        """
        return await self._retag("pin()", ids, partial(Tagged, pinned=True))

    async def unpin(self, ids: Names) -> int:
        """Let messages leave like others again; otherwise as :meth:`pin`."""
        return await self._retag("unpin()", ids, partial(Tagged, pinned=False))

    @abstractmethod
    async def _retag(self, method: str, ids: Names, change: Callable[[list[str]], Tagged]) -> int:
        """Change messages for a method; return how many of them are here.

        Args:
            method: The method, as an error names it.
            ids: The IDs of the messages.
            change: Returns the change of messages with some IDs.
        """
