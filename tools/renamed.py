"""A tool under another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolArgumentsError


class RenamedTool(BaseTool):
    """Another tool, called by another name; everything else is as with that tool.

    Args:
        wrapped: The tool.
        name: What the model calls it.

    Raises:
        ToolDefinitionError: A name that no model API would take.
    """

    def __init__(self, wrapped: BaseTool, name: str) -> None:
        super().__init__(
            name,
            wrapped.description,
            wrapped.input_schema,
            timeout=wrapped.timeout,
            requires_approval=wrapped.requires_approval,
            idempotent=wrapped.idempotent,
            repeatable=wrapped.repeatable,
            max_result_tokens=wrapped.max_result_tokens,
        )
        self.wrapped = wrapped
        self.limiter = wrapped.limiter

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """As the wrapped tool.

        Raises:
            ToolArgumentsError: Every problem found, in one error.
        """
        try:
            return self.wrapped.validate(args)
        except ToolArgumentsError as error:
            raise ToolArgumentsError(self.name, error.problems) from None

    async def execute(self, **kwargs: Any) -> Any:
        """As the wrapped tool."""
        return await self.wrapped.execute(**kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """As the wrapped tool."""
        self.validate(args)
        return await self.wrapped.invoke(args)

    def renamed(self, name: str) -> BaseTool:
        """The wrapped tool under yet another name."""
        return self.wrapped.renamed(name)
