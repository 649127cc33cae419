"""Tools: what a model may call, and one call of it."""

from __future__ import annotations

from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import Outcome, call_tool
from agent_brain.tools.context import ToolContext, current_call
from agent_brain.tools.errors import (
    EventLoopError,
    InputNeeded,
    ToolArgumentsError,
    ToolDefinitionError,
    ToolError,
)
from agent_brain.tools.function import FunctionTool, as_tool, tool
from agent_brain.tools.progress import Progress, report_progress
from agent_brain.tools.result import Media, ToolResult
from agent_brain.tools.source import ToolSource
from agent_brain.tools.text import count_tokens, shorten
from agent_brain.tools.toolset import ToolLike, Toolset

__all__ = [
    "Action",
    "BaseTool",
    "EventLoopError",
    "FunctionTool",
    "InputNeeded",
    "Media",
    "Outcome",
    "Progress",
    "ToolArgumentsError",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolLike",
    "ToolResult",
    "ToolSource",
    "Toolset",
    "as_tool",
    "call_tool",
    "count_tokens",
    "current_call",
    "report_progress",
    "shorten",
    "tool",
]
