"""A brain as an MCP server. Needs the extra ``mcp``.

The server has one tool, ``ask``. What happens in a run is told as progress; a client that cancels
its call cancels the run. Over stdio, and in the sessions of older HTTP clients, the questions of
one client are one conversation. The newer protocol has no sessions: each answer brings the name of
its conversation, and a client that wants to go on passes it with the next question.

A run that waits for a person asks the client: through a form, if the client shows forms
(elicitation), and in any case in the answer, to which the client's next question is the reply.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    CallToolResult,
    InputRequiredResult,
    ToolAnnotations,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import Field

from agent_brain.errors import AgentBrainError, BrainDefinitionError
from agent_brain.serving.access import BearerToken, is_loopback, origin_rules
from agent_brain.serving.asking import Answer, Asking
from agent_brain.serving.conversations import Conversations, MakeBrain
from agent_brain.serving.interrupts import stdin_ending_at_interrupt
from agent_brain.serving.servers import SharedServers
from agent_brain.tools.mcp import McpSource
from agent_brain.tools.secrets import scrub

DESCRIPTION = "Ask an agent, which thinks and uses tools of its own before it answers."
IDLE_SECONDS = 3600.0
SESSION_HEADER = "mcp-session-id"

Question = Annotated[str, Field(description="What is to be answered or done.", min_length=1)]
ConversationName = Annotated[
    str | None,
    Field(description="To go on with an earlier conversation: the name that came with its answer."),
]


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
    ) -> Annotated[CallToolResult, Answer] | InputRequiredResult:
        name = context.request_state or conversation
        try:
            async with conversations.take(name, own=_own_conversation(context)) as turn:
                return await Asking(turn, context).answer(question)
        except AgentBrainError as error:
            raise ToolError(scrub(str(error))) from error

    return server


def serve(
    make_brain: MakeBrain,
    *,
    address: tuple[str, int] | None = None,
    token: str | None = None,
    servers: Iterable[McpSource] = (),
    on_ready: Callable[[str], None] = lambda url: None,
    name: str = "agent-brain",
    description: str = DESCRIPTION,
) -> None:
    """Serve until stdin is closed or, over HTTP, until the process is told to end.

    Over stdio, what tools print goes to stderr. Over HTTP, whoever has the token may ask; without
    one, whoever can reach this computer's own addresses. Ctrl-C ends it and raises
    ``KeyboardInterrupt``.

    Args:
        make_brain: Makes the brain of a new conversation.
        address: Host and port for streamable HTTP (port 0: any free one); None for stdio.
        token: What clients must send as ``Authorization: Bearer``; needed where other computers
            can reach the address.
        servers: MCP servers whose tools all conversations use, through one connection each.
        on_ready: Called with the URL when it can be used.
        name: What the server calls itself.
        description: What the tool says of itself.

    Raises:
        BrainDefinitionError: The address needs a token, or cannot be listened at.
        McpConfigError: Servers cannot be used as described.
        McpServerError: Servers could not be started or reached.
    """
    if token is not None and not (token.isascii() and token.isprintable() and token.strip()):
        raise BrainDefinitionError("The token must be printable ASCII text that is not empty")
    if address is not None and token is None and not is_loopback(address[0]):
        raise BrainDefinitionError(
            f"Other computers can reach {address[0] or 'every address of this one'}: give a token "
            "that clients must send"
        )
    named = tuple(servers)
    shared = SharedServers(named) if named else None
    kept = None if address is None else IDLE_SECONDS  # over stdio there is one, the client's own

    async def main() -> None:
        async with Conversations(make_brain, idle=kept, servers=shared) as conversations:
            if shared is not None:
                await shared.tools()  # what is wrong is said now, not to the first client
            server = make_server(conversations, name=name, description=description)
            if address is None:
                await server.run_stdio_async()
            else:
                await _serve_http(server, address, token, on_ready)

    with nullcontext() if address is not None else stdin_ending_at_interrupt():
        anyio.run(main)


async def _serve_http(
    server: MCPServer[Any],
    address: tuple[str, int],
    token: str | None,
    on_ready: Callable[[str], None],
) -> None:
    import uvicorn

    host, port = address
    with _listen(host, port) as listener:
        app: Any = server.streamable_http_app(host=host, transport_security=origin_rules(host))
        if token is not None:
            app = BearerToken(app, token)
        config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=2)
        shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
        on_ready(f"http://{shown}:{listener.getsockname()[1]}/mcp")
        await uvicorn.Server(config).serve(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "the port is taken" if taken else error.strerror or str(error)
        raise BrainDefinitionError(
            f"Cannot listen at {host}:{port}: {why}. Choose another port, or 0 for any free one"
        ) from error


def _own_conversation(context: Context[Any, Any]) -> str | None:
    """The conversation that belongs to the client's connection, if that means anything."""
    if context.headers is None:
        return "stdio"
    if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        session = context.headers.get(SESSION_HEADER)  # checked by the transport
        return None if session is None else f"session {session}"
    return None
