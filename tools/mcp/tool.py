"""A tool that an MCP server runs. Knows the SDK's types by their fields alone."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from typing import Any

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.secrets import hide_in_result
from agent_brain.common.text import clean, count_tokens, shorten, to_text
from agent_brain.tools.action import Media, ToolResult
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import Progress, ProgressSink, ToolContext, current_call
from agent_brain.tools.errors import McpServerError, ToolError
from agent_brain.tools.mcp.spec import Approval, ServerSpec
from agent_brain.tools.schemas import Schema, read_schema, reworded

PROGRESS_TOKENS = 200  # of a message about progress
SCHEMA_SHARE = 10  # a schema may be as long as this many descriptions

Send = Callable[[str, dict[str, Any], ToolContext], Awaitable[Any]]

_PICTURE = re.compile(r"image/[A-Za-z0-9.+-]+")


class McpTool(BaseTool):
    """A tool that an MCP server runs. Created by :class:`McpTools`.

    Arguments are validated against the server's schema before they are sent. The server's hints are
    trusted: a tool that says it is idempotent, or only reads, may be repeated after a crash.

    Attributes:
        server: Name of the server.
        remote_name: The server's name of the tool.
        definition: The server's definition of the tool.
    """

    def __init__(self, spec: ServerSpec, definition: Any, name: str, send: Send) -> None:
        hints = definition.annotations
        limit = spec.max_description_tokens
        text = clean(definition.description or definition.title or name)
        super().__init__(
            name,
            text if limit is None else shorten(text, limit),
            _fit_schema(name, definition.input_schema, limit),
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
        """Run the tool on the server.

        Raises:
            McpServerError: The server cannot be reached, stopped, or refused the call.
            ToolError: The tool reported an error.
            InputNeeded: The server asks a person.
        """
        answer = await self._send(self.remote_name, kwargs, current_call() or ToolContext())
        result = to_result(answer.content, answer.structured_content)
        if answer.is_error:
            raise ToolError(
                result.content or f"MCP server {self.server!r} reported an error without a reason"
            )
        self._check(answer)
        return result

    def _check(self, answer: Any) -> None:
        """Validate the answer against the tool's output schema, if that is usable."""
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
    """Return whether a person must approve calls of a tool with these hints.

    Without a hint a tool may be destructive, as in the protocol.
    """
    if approval != "destructive":
        return approval == "always"
    return hints is None or (not hints.read_only_hint and hints.destructive_hint is not False)


async def forward(
    sink: ProgressSink, progress: float, total: float | None, message: str | None
) -> None:
    """Pass on the progress that a server reports."""
    if message is not None:
        message = hide_in_result(shorten(clean(message), PROGRESS_TOKENS))
    sink(Progress(progress, total, message))


def to_result(content: Iterable[Any], structured: Any) -> ToolResult:
    """Return the text of all parts, in order, and the pictures among them.

    A picture leaves a note in the text, for models that cannot see. Other parts are described.
    Structured content is used only if there is no text, as servers should send the same in both.
    """
    read = [_read_part(part) for part in content]
    texts = [text for text, _ in read]
    if structured is not None and not any(texts):
        texts = [to_text(structured)]
    return ToolResult("\n\n".join(texts), tuple(media for _, media in read if media is not None))


def _read_part(part: Any) -> tuple[str, Media | None]:
    match part.type:
        case "text":
            return part.text, None
        case "image" | "audio":
            return _read_data(part.data, part.mime_type, None)
        case "resource_link":
            about = f": {part.description}" if part.description else ""
            return f"[resource {part.uri} ({part.mime_type or 'unknown type'}){about}]", None
        case "resource":
            resource = part.resource
            if hasattr(resource, "text"):
                return f"[resource {resource.uri}]\n{resource.text}", None
            return _read_data(resource.blob, resource.mime_type or "", str(resource.uri))
        case other:
            return f"[a part of type {other!r}, which cannot be shown]", None


def _read_data(data: str, media_type: str, name: str | None) -> tuple[str, Media | None]:
    label = f"{name} ({media_type or 'unknown type'})" if name else media_type or "unknown data"
    if data and _PICTURE.fullmatch(media_type):
        try:
            return f"[attached: {label}]", Media(media_type, data, name)
        except ValueError:
            return f"[{label}, which cannot be read: it is not in base64]", None
    return f"[{label}, about {len(data) * 3 // 4} bytes, which cannot be shown]", None


def _fit_schema(name: str, schema: dict[str, Any], limit: int | None) -> dict[str, Any]:
    """Return ``schema`` with shortened descriptions; refuse one that is still too long."""
    if limit is None:
        return schema
    if count_tokens(to_text(schema)) > limit:
        schema = reworded(
            schema, lambda key, text: shorten(text, limit) if key == "description" else text
        )
    tokens = count_tokens(to_text(schema))
    if tokens > SCHEMA_SHARE * limit:
        raise ToolDefinitionError(
            f"Tool {name!r} cannot be used: its input_schema has {tokens:,} tokens; at most "
            f"{SCHEMA_SHARE * limit:,} are allowed: raise maxDescriptionTokens, a tenth "
            "of that, or set it to null"
        )
    return schema
