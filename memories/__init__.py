"""Memories: everything a run knows, and what of it a model is shown.

Names are imported when they are first used, so that a program loads only the memories it has.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Call, Control, Spent
from agent_brain.memories.errors import (
    EmbedderMismatchError,
    JournalConflictError,
    JournalError,
    MemoryBusyError,
    MemoryDefinitionError,
    MemoryUseError,
    ReadOnlyMemoryError,
    ScratchError,
    SessionConflictError,
    SnapshotError,
    VectorStoreError,
)
from agent_brain.memories.message import Attachment, Message, Role
from agent_brain.memories.registry import create_memory, memory_names, register_memory
from agent_brain.memories.snapshot import Snapshot

if TYPE_CHECKING:
    from agent_brain.memories.inbox import MessageQueue
    from agent_brain.memories.journal import Entry, Journal, RamJournal, SQLiteJournal
    from agent_brain.memories.layered import LayeredMemory
    from agent_brain.memories.messages import MessagesMemory
    from agent_brain.memories.recall.results import Recalled
    from agent_brain.memories.store.filters import Query
    from agent_brain.memories.store.session import read_session_key, session_key
    from agent_brain.memories.stored import RecordMemory, StoredMemory
    from agent_brain.memories.summary import SummaryMemory
    from agent_brain.memories.todo import Todo, TodoMemory
    from agent_brain.memories.vector import VectorMemory
    from agent_brain.memories.views.base import View
    from agent_brain.memories.windowed import WindowedMemory
    from agent_brain.memories.wrapper import WrappingMemory

_HOMES = {
    "Entry": "journal",
    "Journal": "journal",
    "LayeredMemory": "layered",
    "MessageQueue": "inbox",
    "MessagesMemory": "messages",
    "Query": "store.filters",
    "RamJournal": "journal",
    "Recalled": "recall.results",
    "RecordMemory": "stored",
    "SQLiteJournal": "journal",
    "StoredMemory": "stored",
    "SummaryMemory": "summary",
    "Todo": "todo",
    "TodoMemory": "todo",
    "VectorMemory": "vector",
    "View": "views.base",
    "WindowedMemory": "windowed",
    "WrappingMemory": "wrapper",
    "read_session_key": "store.session",
    "session_key": "store.session",
}

__all__ = [
    "Attachment",
    "Call",
    "Control",
    "EmbedderMismatchError",
    "Entry",
    "Journal",
    "JournalConflictError",
    "JournalError",
    "LayeredMemory",
    "Memory",
    "MemoryBusyError",
    "MemoryDefinitionError",
    "MemoryUseError",
    "Message",
    "MessageQueue",
    "MessagesMemory",
    "Query",
    "RamJournal",
    "ReadOnlyMemoryError",
    "Recalled",
    "RecordMemory",
    "Role",
    "SQLiteJournal",
    "ScratchError",
    "SessionConflictError",
    "Snapshot",
    "SnapshotError",
    "Spent",
    "StoredMemory",
    "SummaryMemory",
    "Todo",
    "TodoMemory",
    "VectorMemory",
    "VectorStoreError",
    "View",
    "WindowedMemory",
    "WrappingMemory",
    "create_memory",
    "memory_names",
    "read_session_key",
    "register_memory",
    "session_key",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"agent_brain.memories.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
