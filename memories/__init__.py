"""Memories: everything a run knows, and what of it a model is shown."""

from __future__ import annotations

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Call, Control, Spent
from agent_brain.memories.errors import (
    MemoryBusyError,
    MemoryDefinitionError,
    MemoryUseError,
    SnapshotError,
)
from agent_brain.memories.message import Attachment, Message, Role
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.registry import create_memory, memory_names, register_memory
from agent_brain.memories.snapshot import Snapshot

__all__ = [
    "Attachment",
    "Call",
    "Control",
    "Memory",
    "MemoryBusyError",
    "MemoryDefinitionError",
    "MemoryUseError",
    "Message",
    "MessagesMemory",
    "Role",
    "Snapshot",
    "SnapshotError",
    "Spent",
    "create_memory",
    "memory_names",
    "register_memory",
]
