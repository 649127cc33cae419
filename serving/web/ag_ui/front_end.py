"""Tools that the client runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ag_ui.core import Tool

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.errors import BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import InputNeeded


class FrontEndTool(BaseTool):
    """A tool that the client runs: the run waits, and the answer is the result of the call."""

    async def execute(self, **arguments: Any) -> str:
        """Make the run wait."""
        raise InputNeeded(f"The user interface runs {self.name}")


def front_end_tools(tools: Iterable[Tool]) -> list[FrontEndTool]:
    """Return the tools that a client offers.

    Raises:
        BrainUseError: One cannot be offered to a model.
    """
    found = []
    for tool in tools:
        schema = tool.parameters or {"type": "object", "properties": {}}
        try:
            found.append(FrontEndTool(tool.name, tool.description, schema, idempotent=True))
        except ToolDefinitionError as error:
            raise BrainUseError(f"tools: {error}") from None
    return found


@contextmanager
def offered(memory: Memory, tools: Iterable[FrontEndTool]) -> Iterator[None]:
    """Offer tools to the model meanwhile.

    Raises:
        BrainUseError: Two tools have one name.
    """
    added = list(tools)
    try:
        memory.add_tools(added)
    except ToolDefinitionError as error:
        raise BrainUseError(f"tools: {error}") from None
    try:
        yield
    finally:
        for tool in added:
            if memory.available_tools.get(tool.name) is tool:
                del memory.available_tools[tool.name]
