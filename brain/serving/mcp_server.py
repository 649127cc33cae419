"""A brain as an MCP server. Needs the extra ``mcp``.

The server has one tool, ``ask``. What happens in a run is told as progress; a client that cancels
its call cancels the run. Over stdio, and in the sessions of older HTTP clients, the questions of
one client are one conversation. The newer protocol has no sessions: each answer brings the name of
its conversation, and a client that wants to go on passes it with the next question.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from agent_brain.controller import Brain
from agent_brain.errors import AgentBrainError
from agent_brain.limits import StopReason
from agent_brain.result import Result
from agent_brain.serving.conversations import Conversations, MakeBrain
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
    Event,
    StateEntered,
    ToolProgress,
)

DESCRIPTION = "Ask an agent, which thinks and uses tools of its own before it answers."
SESSION_HEADER = "mcp-session-id"

Question = Annotated[str, Field(description="What is to be answered or done.", min_length=1)]
ConversationName = Annotated[
    str | None,
    Field(description="To go on with an earlier conversation: the name that came with its answer."),
]


class Answer(BaseModel):
    """What a client gets."""

    answer: str
    conversation: str
    stop_reason: str


def make_server(
    conversations: Conversations, *, name: str = "agent-brain", description: str = DESCRIPTION
) -> MCPServer[Any]:
    """The server, to be run by its own methods or inside of another application.

    Args:
        conversations: Whom to ask; to be closed by the caller.
        name: What the server calls itself.
        description: What the tool says of itself.
    """
    server: MCPServer[Any] = MCPServer(name, log_level="WARNING")

    @server.tool(description=description, annotations=ToolAnnotations(read_only_hint=False))
    async def ask(
        question: Question,
        context: Context[Any, Any],
        conversation: ConversationName = None,
    ) -> Annotated[CallToolResult, Answer]:
        try:
            async with conversations.take(conversation, own=_own_conversation(context)) as turn:
                result = await _run(turn.brain, question, context)
        except AgentBrainError as error:
            raise ToolError(str(error)) from error
        return _answer(result, turn.name)

    return server


def serve(
    make_brain: MakeBrain,
    *,
    address: tuple[str, int] | None = None,
    on_ready: Callable[[str], None] = lambda url: None,
    name: str = "agent-brain",
    description: str = DESCRIPTION,
) -> None:
    """Serve until stdin is closed or, over HTTP, until the process is told to end.

    Over stdio, what tools print goes to stderr. Over HTTP anybody who reaches the address may ask:
    there is no authentication, so leave it at this computer or put a proxy in front of it.

    Args:
        make_brain: Makes the brain of a new conversation.
        address: Host and port for streamable HTTP (port 0: any free one); None for stdio.
        on_ready: Told the URL when it can be used.
        name: What the server calls itself.
        description: What the tool says of itself.
    """

    async def main() -> None:
        async with Conversations(make_brain) as conversations:
            server = make_server(conversations, name=name, description=description)
            if address is None:
                await server.run_stdio_async()
            else:
                await _serve_http(server, *address, on_ready)

    anyio.run(main)


async def _serve_http(
    server: MCPServer[Any], host: str, port: int, on_ready: Callable[[str], None]
) -> None:
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        app = server.streamable_http_app(host=host)
        config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=2)
        shown = f"[{host}]" if ":" in host else host
        on_ready(f"http://{shown}:{listener.getsockname()[1]}/mcp")
        await uvicorn.Server(config).serve(sockets=[listener])


def _own_conversation(context: Context[Any, Any]) -> str | None:
    """The conversation that belongs to the client's connection, if that means anything."""
    if context.headers is None:
        return "stdio"
    if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        session = context.headers.get(SESSION_HEADER)  # checked by the transport
        return None if session is None else f"session {session}"
    return None


async def _run(brain: Brain, question: str, context: Context[Any, Any]) -> Result:
    told = 0
    async with brain.stream(question) as run:
        async for event in run:
            text = _in_words(event)
            if text is not None:
                told += 1
                await context.report_progress(told, message=text)
    return run.result


def _in_words(event: Event) -> str | None:
    """What a client is told of an event; arguments and results are the agent's own matter."""
    match event:
        case StateEntered():
            return " › ".join([*event.path, event.state or ""])
        case ActionRequested():
            return f"calls {event.action.name}"
        case ToolProgress():
            return f"{event.action.name}: {event.message or event.done}"
        case ActionFinished():
            return f"{event.action.name} {'failed' if event.result.is_error else 'is done'}"
    return None


def _answer(result: Result, conversation: str) -> CallToolResult:
    done = result.stop_reason is StopReason.DONE
    text = result.answer
    if not done:
        text = f"{text}\n\n(The agent was stopped: {result.stop_reason.value}.)".strip()
    answer = Answer(
        answer=result.answer, conversation=conversation, stop_reason=result.stop_reason.value
    )
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=answer.model_dump(),
        is_error=not done and not result.answer,
    )
