"""Tools: functions that a model may call, and their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.common.errors import EventLoopError as EventLoopError
    from agent_brain.common.errors import ToolDefinitionError as ToolDefinitionError
    from agent_brain.common.text import count_tokens as count_tokens
    from agent_brain.common.text import shorten as shorten
    from agent_brain.tools.action import Action as Action
    from agent_brain.tools.action import Media as Media
    from agent_brain.tools.action import ToolResult as ToolResult
    from agent_brain.tools.base import BaseTool as BaseTool
    from agent_brain.tools.calling import Outcome as Outcome
    from agent_brain.tools.calling import call_tool as call_tool
    from agent_brain.tools.context import Progress as Progress
    from agent_brain.tools.context import ToolContext as ToolContext
    from agent_brain.tools.context import current_call as current_call
    from agent_brain.tools.context import report_progress as report_progress
    from agent_brain.tools.errors import InputNeeded as InputNeeded
    from agent_brain.tools.errors import SleepNeeded as SleepNeeded
    from agent_brain.tools.errors import ToolArgumentsError as ToolArgumentsError
    from agent_brain.tools.errors import ToolError as ToolError
    from agent_brain.tools.function import FunctionTool as FunctionTool
    from agent_brain.tools.function import as_tool as as_tool
    from agent_brain.tools.function import tool as tool
    from agent_brain.tools.toolset import ToolLike as ToolLike
    from agent_brain.tools.toolset import Toolset as Toolset
    from agent_brain.tools.toolset import ToolSource as ToolSource
    from agent_brain.tools.toolset import register_tool as register_tool
    from agent_brain.tools.toolset import tool_names as tool_names
