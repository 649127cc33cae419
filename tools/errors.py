"""The root of the error tree, and the errors of tools.

The whole tree is drawn in :mod:`agent_brain.errors`.
"""

from __future__ import annotations


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


class EventLoopError(AgentBrainError, RuntimeError):
    """Something that needs asyncio was used on another event loop."""
