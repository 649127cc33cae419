"""The root of the error tree, and the errors of tools.

The whole tree is drawn in :mod:`agent_brain.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence


class AgentBrainError(Exception):
    """Base of every error that this library raises on purpose."""


class ToolError(AgentBrainError):
    """Raise it inside a tool: its text goes back to the model as the tool's result."""


class InputNeeded(AgentBrainError):  # noqa: N818 - nothing went wrong
    """Raise it inside a tool: the run waits, and what a person answers is the tool's result.

    The tool is not run again. Where nobody can be asked, the model is told so.

    Attributes:
        prompt: What the person is asked.
    """

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        super().__init__(prompt)


class ToolArgumentsError(ToolError):
    """The arguments of a call do not fit the tool's input schema.

    Attributes:
        tool: Name of the tool that was called.
        problems: One line for each thing that was wrong.
    """

    def __init__(self, tool: str, problems: list[str]) -> None:
        self.tool = tool
        self.problems = problems
        super().__init__(f"Invalid arguments for tool {tool!r}: " + "; ".join(problems))


class ToolDefinitionError(AgentBrainError, ValueError):
    """A tool, or a set of tools, cannot be built as it was described."""


class McpConfigError(ToolDefinitionError):
    """MCP servers cannot be used as they were described. No value of a variable is repeated.

    Attributes:
        problems: One line for each thing that is wrong.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        several = len(self.problems) > 1
        listed = "".join(
            f"\n- {problem}" if several else f" {problem}" for problem in self.problems
        )
        super().__init__(f"MCP servers cannot be used as described:{listed}")


class McpServerError(ToolError):
    """An MCP server could not be started or reached, stopped, or answered with an error.

    Attributes:
        server: Name of the server.
    """

    def __init__(self, server: str, message: str) -> None:
        self.server = server
        super().__init__(message)


class EventLoopError(AgentBrainError, RuntimeError):
    """Something that needs asyncio was used on another event loop."""
