"""The root of the error tree, and the errors that every room may raise.

The whole tree is drawn in :mod:`agent_brain.errors`.
"""

from __future__ import annotations


class AgentBrainError(Exception):
    """Base class of every error that this library raises on purpose."""


class FinalError(AgentBrainError):
    """Base class of errors that end the run wherever they are raised.

    They are never the error of a tool, an item, a branch or a state that a net handles.
    """


class ToolDefinitionError(AgentBrainError, ValueError):
    """A tool, or a set of tools, cannot be built from its definition."""


class EventLoopError(AgentBrainError, RuntimeError):
    """Something that requires asyncio was used on another event loop."""
