"""Tools: what a model may call, and one call of it."""

from __future__ import annotations

from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import Outcome, call_tool
from agent_brain.tools.errors import (
    EventLoopError,
    ToolArgumentsError,
    ToolDefinitionError,
    ToolError,
)
from agent_brain.tools.function import FunctionTool, as_tool, tool
from agent_brain.tools.text import count_tokens, shorten

__all__ = [
    "Action",
    "BaseTool",
    "EventLoopError",
    "FunctionTool",
    "Outcome",
    "ToolArgumentsError",
    "ToolDefinitionError",
    "ToolError",
    "as_tool",
    "call_tool",
    "count_tokens",
    "shorten",
    "tool",
]
