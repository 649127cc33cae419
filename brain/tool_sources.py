"""Tools of servers: separated from local tools, and updated between steps."""

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
    """Return the local tools, and what names servers."""
    here: list[ToolLike] = []
    elsewhere: list[McpSource] = []
    for tool in several(tools):
        if isinstance(tool, str | os.PathLike | Mapping):
            elsewhere.append(tool)
        else:
            here.append(tool)
    return here, elsewhere


async def refresh(memory: Memory, sources: Iterable[ToolSource]) -> None:
    """Update the tools of the memory from sources that have changed; called between steps."""
    for source in sources:
        if source.changed:
            withdraw(memory, source)
            try:
                await source.refresh(memory.available_tools)
            finally:
                memory.add_tools(source.tools)


def withdraw(memory: Memory, source: ToolSource) -> None:
    """Remove the tools of ``source`` from the memory."""
    for tool in source.tools:
        if memory.available_tools.get(tool.name) is tool:
            del memory.available_tools[tool.name]
