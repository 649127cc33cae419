"""What can be wrong with events that are to become a test."""

from __future__ import annotations

from agent_brain.tools.errors import AgentBrainError


class ExportError(AgentBrainError, ValueError):
    """These events do not tell enough to make a test of them."""
