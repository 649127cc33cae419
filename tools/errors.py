"""The errors of tools."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent_brain.common.errors import AgentBrainError, ToolDefinitionError
from agent_brain.tools.answers import AnswerKind, answer_type
from agent_brain.tools.wake import wake_time


class ToolError(AgentBrainError):
    """Raise it inside a tool: its text is sent to the model as the tool's result."""


class InputNeeded(AgentBrainError):  # noqa: N818 - nothing went wrong
    """Raise it inside a tool to ask a person: the run waits, and the answer is the tool's result.

    The tool is not run again: :meth:`ToolContext.ask` asks in one that needs the answer itself.
    Where nobody can be asked, the model gets an error instead.

    Attributes:
        prompt: The question.
        schema: The JSON Schema of the answer; None for free text.
        again: Whether the tool runs again with the answer, instead of having it as its result.

    Args:
        prompt: The question.
        type: The type of the answer, as of :class:`agent_brain.states.Ask`.

    Raises:
        ToolDefinitionError: There is no such type.
    """

    def __init__(self, prompt: str, type: AnswerKind = str) -> None:  # noqa: A002 - what it is
        if not isinstance(prompt, str):
            raise ToolDefinitionError(f"InputNeeded({prompt!r}): the question must be a text")
        self.prompt = prompt
        self.again = False
        try:
            self.schema = answer_type(type).schema
        except ValueError as error:
            raise ToolDefinitionError(f"InputNeeded({prompt!r}): {error}") from None
        super().__init__(prompt)


class SleepNeeded(AgentBrainError):  # noqa: N818 - nothing went wrong
    """Raise it inside a tool to wait for a time: the run stops, and the call runs again on resume.

    So raise it before the tool takes effect. Where a run cannot wait, the model gets an error.

    Attributes:
        until: When to continue (aware, UTC).

    Args:
        until: A time with a time zone, or how long from now.

    Raises:
        ValueError: It is a time without a time zone.
    """

    def __init__(self, until: datetime | timedelta) -> None:
        self.until = wake_time(until)
        super().__init__(f"wait until {self.until:%Y-%m-%d %H:%M:%S %Z}")


class ToolArgumentsError(ToolError):
    """The arguments of a call do not fit the tool's input schema.

    Attributes:
        tool: Name of the tool that was called.
        problems: One line for each problem.
    """

    def __init__(self, tool: str, problems: list[str]) -> None:
        self.tool = tool
        self.problems = problems
        super().__init__(f"Invalid arguments for tool {tool!r}: " + "; ".join(problems))


class McpConfigError(ToolDefinitionError):
    """The configuration of MCP servers is invalid. The message contains no configured values.

    Attributes:
        problems: One line for each problem.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        lead = " " if len(self.problems) == 1 else "\n- "
        listed = "".join(lead + problem for problem in self.problems)
        super().__init__(f"MCP servers cannot be used as described:{listed}")


class McpServerError(ToolError):
    """An MCP server could not be started or reached, stopped, or answered with an error.

    Attributes:
        server: Name of the server.
    """

    def __init__(self, server: str, message: str) -> None:
        self.server = server
        super().__init__(message)
