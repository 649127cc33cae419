"""Recall: which messages answer a question. An index in memory, exact and explained."""

from __future__ import annotations

from agent_brain.memories.recall.index import RecallIndex
from agent_brain.memories.recall.items import Hit, Item

__all__ = ["Hit", "Item", "RecallIndex"]
