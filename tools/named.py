"""Tools by name, for nets in files."""

from __future__ import annotations

from collections.abc import Iterable

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.suggest import did_you_mean
from agent_brain.tools.base import BaseTool
from agent_brain.tools.toolset import ToolLike, collect

_BUILT_IN = ("ask_user", "calculate", "convert_units", "current_time")
_registered: dict[str, BaseTool] = {}


def register_tool(tool: ToolLike) -> None:
    """Register a tool under its name, so that nets in files can name it.

    Args:
        tool: A tool, or a function.

    Raises:
        ToolDefinitionError: The name belongs to another tool, or it cannot be a tool.
    """
    [made] = collect([tool]).values()
    known = _registered.get(made.name)
    if made.name in _BUILT_IN or (known is not None and known is not made):
        raise ToolDefinitionError(
            f"A tool named {made.name!r} is already registered: use another name"
        )
    _registered[made.name] = made


def tool_names() -> list[str]:
    """Return the names of the built-in and the registered tools, sorted."""
    return sorted([*_BUILT_IN, *_registered])


def named_tools(names: Iterable[str]) -> list[BaseTool]:
    """Return the tools of these names.

    Raises:
        ToolDefinitionError: There is no tool of one of the names.
    """
    return [_named(name) for name in names]


def _named(name: str) -> BaseTool:
    from agent_brain.tools import builtin

    if name in _BUILT_IN:
        tool: BaseTool = getattr(builtin, name)
        return tool
    if name not in _registered:
        raise ToolDefinitionError(
            f"There is no tool named {name!r}; registered are: {', '.join(tool_names())}."
            f"{did_you_mean(name, tool_names())} Register yours with register_tool(…), or pass it "
            "in code or with --tool"
        )
    return _registered[name]
