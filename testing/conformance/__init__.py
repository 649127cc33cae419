"""Conformance suites for memories, journals, models and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.testing.conformance.check import Check as Check
    from agent_brain.testing.conformance.journal import journal_conformance as journal_conformance
    from agent_brain.testing.conformance.memory import memory_conformance as memory_conformance
    from agent_brain.testing.conformance.model import llm_conformance as llm_conformance
    from agent_brain.testing.conformance.tool import tool_conformance as tool_conformance
