"""What can go wrong with MCP servers. No message holds a value of an environment variable."""

from __future__ import annotations

from collections.abc import Sequence

from agent_brain.tools.errors import ToolDefinitionError, ToolError


class McpConfigError(ToolDefinitionError):
    """MCP servers cannot be used as they were described.

    Attributes:
        problems: One line for each thing that is wrong.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        listed = "\n".join(f"- {problem}" for problem in self.problems)
        super().__init__(
            f"MCP servers cannot be used as described:\n{listed}"
            if len(self.problems) > 1
            else f"MCP servers cannot be used as described: {self.problems[0]}"
        )


class McpServerError(ToolError):
    """An MCP server could not be started or reached, stopped, or answered with an error.

    Attributes:
        server: Name of the server.
    """

    def __init__(self, server: str, message: str) -> None:
        self.server = server
        super().__init__(message)
