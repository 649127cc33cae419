"""The memory that keeps every message and shows all of them."""

from __future__ import annotations

from agent_brain.memories.stored import StoredMemory


class MessagesMemory(StoredMemory):
    """Keeps every message, and shows all of them in order.

    Takes the options of :class:`StoredMemory`: ``journal``, ``session``, ``tenant``, ``ttl``,
    ``clock``, ``readonly``, ``shared``, ``history`` and ``lease_wait``::

        memory = MessagesMemory(journal="brain.db", session="alice/42")
        await memory.update([Message.user("hello")])
    """
