"""The memory that keeps every message, in order, and shows all of them."""

from __future__ import annotations

from agent_brain.memories.record_memory import RecordMemory


class MessagesMemory(RecordMemory):
    """Everything, in the order it happened.

    It takes the options of :class:`RecordMemory`: ``journal``, ``session``, ``tenant``, ``ttl``,
    ``clock`` and ``readonly``.
    """
