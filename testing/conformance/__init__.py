"""Conformance suites for memories, journals, models and tools."""

from __future__ import annotations

from agent_brain.testing.conformance.check import Check
from agent_brain.testing.conformance.journal import journal_conformance
from agent_brain.testing.conformance.memory import memory_conformance
from agent_brain.testing.conformance.model import llm_conformance
from agent_brain.testing.conformance.tool import tool_conformance

__all__ = [
    "Check",
    "journal_conformance",
    "llm_conformance",
    "memory_conformance",
    "tool_conformance",
]
