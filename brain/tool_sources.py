"""Tools that come from elsewhere: told from those that are here, kept up to date between steps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from agent_brain.memories.base import Memory
from agent_brain.tools.source import ToolSource
from agent_brain.tools.toolset import ToolLike, several

if TYPE_CHECKING:
    from agent_brain.tools.mcp import McpSource


def split(tools: Iterable[ToolLike | McpSource]) -> tuple[list[ToolLike], list[McpSource]]:
    """Tools that are here, and what names servers that have others."""
    here: list[ToolLike] = []
    elsewhere: list[McpSource] = []
    for tool in several(tools):
        if isinstance(tool, str | os.PathLike | Mapping):
            elsewhere.append(tool)
        else:
            here.append(tool)
    return here, elsewhere


async def refresh(memory: Memory, sources: Iterable[ToolSource]) -> None:
    """Let the memory have what the sources have now; called between two steps."""
    for source in sources:
        if source.changed:
            withdraw(memory, source)
            try:
                await source.refresh(memory.available_tools)
            finally:
                memory.add_tools(source.tools)


def withdraw(memory: Memory, source: ToolSource) -> None:
    """Take the source's tools out of the memory."""
    for tool in source.tools:
        if memory.available_tools.get(tool.name) is tool:
            del memory.available_tools[tool.name]
