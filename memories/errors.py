"""Errors of memories."""

from __future__ import annotations

from agent_brain.tools.errors import AgentBrainError


class MemoryDefinitionError(AgentBrainError, ValueError):
    """A memory cannot be built, or registered, as it was described."""


class MemoryUseError(AgentBrainError, ValueError):
    """A memory was asked for something that it cannot do with what it was given."""


class MemoryBusyError(AgentBrainError):
    """A run is already going on over this memory: one memory serves one run at a time."""


class SnapshotError(AgentBrainError, ValueError):
    """A snapshot cannot be read: wrong version, or not a snapshot at all."""
