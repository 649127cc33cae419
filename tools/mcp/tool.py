"""A server's tool as a tool of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Any

from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import McpServerError, ToolError
from agent_brain.tools.mcp.convert import to_result
from agent_brain.tools.mcp.sizes import fitting_description, fitting_schema
from agent_brain.tools.mcp.spec import Approval, ServerSpec
from agent_brain.tools.progress import Progress, ProgressSink, progress_sink
from agent_brain.tools.result import ToolResult
from agent_brain.tools.schemas import Schema, read_schema
from agent_brain.tools.secrets import hide_registered
from agent_brain.tools.text import clean, shorten

PROGRESS_TOKENS = 200  # of a message about progress

Send = Callable[[str, dict[str, Any], ProgressSink | None], Awaitable[Any]]


class McpTool(BaseTool):
    """A tool that an MCP server runs. Made by :class:`McpTools`.

    Arguments are checked against the server's own schema before they are sent. The server's hints
    are taken at their word: one that says it is idempotent, or only reads, may be repeated after a
    crash.

    Attributes:
        server: Name of the server.
        remote_name: What the server calls it.
        definition: The tool as the server described it.
    """

    def __init__(self, spec: ServerSpec, definition: Any, name: str, send: Send) -> None:
        hints = definition.annotations
        limit = spec.max_description_tokens
        super().__init__(
            name,
            fitting_description(definition.description or definition.title or name, limit),
            fitting_schema(name, definition.input_schema, limit),
            max_result_tokens=spec.max_result_tokens,
            timeout=spec.timeout,
            requires_approval=needs_approval(spec.approval, hints),
            idempotent=bool(hints and (hints.idempotent_hint or hints.read_only_hint)),
        )
        self.server = spec.name
        self.remote_name: str = definition.name
        self.definition = definition
        self._send = send

    async def execute(self, **kwargs: Any) -> ToolResult:
        """Have the server do it.

        Raises:
            McpServerError: The server is not there, died meanwhile, or refused.
            ToolError: The tool says that it failed.
        """
        answer = await self._send(self.remote_name, kwargs, progress_sink.get())
        result = to_result(answer.content, answer.structured_content)
        if answer.is_error:
            text = result.content or f"MCP server {self.server!r} says that it failed, but not why"
            raise ToolError(text)
        self._check(answer)
        return result

    def _check(self, answer: Any) -> None:
        """Hold the answer against what the tool says of its results, if that can be used."""
        output = self._output
        if output is None or output.problems:
            return
        if answer.structured_content is None:
            problems = ["it has no structured content"]
        else:
            problems = output.errors(answer.structured_content)
        if problems:
            what = "; ".join(problems).replace("arguments: ", "", 1)
            raise McpServerError(
                self.server,
                f"MCP server {self.server!r} did not complete {self.remote_name!r}: its answer "
                f"does not fit the tool's own output schema: {shorten(what, 200)}",
            )

    @cached_property
    def _output(self) -> Schema | None:
        schema = self.definition.output_schema
        return None if schema is None else read_schema(schema)

    def __repr__(self) -> str:
        return f"<McpTool {self.name!r} of server {self.server!r}>"


def needs_approval(approval: Approval, hints: Any) -> bool:
    """Whether a person is to be asked, given what the server says of the tool.

    Silence counts as the protocol has it: a tool that does not say otherwise may destroy something.
    """
    if approval != "destructive":
        return approval == "always"
    if hints is None:
        return True
    return not hints.read_only_hint and hints.destructive_hint is not False


async def forward(
    sink: ProgressSink, progress: float, total: float | None, message: str | None
) -> None:
    """Hand what a server says of its progress to where the caller wants it."""
    if message is not None:
        message = hide_registered(shorten(clean(message), PROGRESS_TOKENS))
    sink(Progress(progress, total, message))
