"""Journals: the append-only record under a memory, in RAM or on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.journal.ram import RamJournal

if TYPE_CHECKING:
    from agent_brain.memories.journal.sqlite import SQLiteJournal

__all__ = ["Entry", "Journal", "RamJournal", "SQLiteJournal"]


def __getattr__(name: str) -> object:
    if name == "SQLiteJournal":
        from agent_brain.memories.journal.sqlite import SQLiteJournal

        return SQLiteJournal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
