"""What can be wrong with a cassette, or with the calls that are held against it."""

from __future__ import annotations

from agent_brain.tools.errors import AgentBrainError


class CassetteError(AgentBrainError):
    """Base of the errors of cassettes."""


class CassetteFileError(CassetteError, ValueError):
    """The file is missing, no cassette, or of an unknown version."""


class CassetteMismatchError(CassetteError, AssertionError):
    """The calls that are made are not those that were recorded."""
