"""A brain as an MCP server. Needs the extra ``mcp``.

The server has one tool, ``ask``. Events are reported as progress; a client that cancels its call
cancels the run. Over stdio, and in the sessions of older HTTP clients, the questions of one client
are one conversation. The newer protocol has no sessions: each answer has the name of its
conversation, and a client continues it by passing the name with the next question.

A run that waits for a person asks the client: in a form if the client supports forms
(elicitation), otherwise in the answer, to which the client's next question is the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import Field

from agent_brain.common.secrets import scrub
from agent_brain.errors import AgentBrainError, BrainDefinitionError
from agent_brain.serving.access import check_token, is_loopback, origin_rules, require_token
from agent_brain.serving.address import listen, shown
from agent_brain.serving.ask_tool import Answer, AskCall
from agent_brain.serving.conversations import Conversations, MakeBrain
from agent_brain.serving.servers import SharedServers
from agent_brain.serving.stdin import stdin_closed_by_interrupt
from agent_brain.tools.mcp import McpSource

DESCRIPTION = "Ask an agent that thinks and calls its own tools before it answers."
IDLE_SECONDS = 3600.0
SESSION_HEADER = "mcp-session-id"

Question = Annotated[str, Field(description="The question or task.", min_length=1)]
ConversationName = Annotated[
    str | None,
    Field(description="The name of an earlier conversation to continue, from its answer."),
]


def make_server(
    conversations: Conversations, *, name: str = "agent-brain", description: str = DESCRIPTION
) -> MCPServer[Any]:
    """Return the server, to run by its own methods or to mount in another application.

    Args:
        conversations: The conversations; closed by the caller.
        name: The name of the server.
        description: The description of the tool.
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
                return await AskCall(turn, context).answer(question)
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
    """Serve until stdin is closed or, over HTTP, until the process is terminated.

    Over stdio, what tools print goes to stderr. Over HTTP, every client with the token may ask;
    without a token, every program on this computer. Ctrl-C stops the server and raises
    ``KeyboardInterrupt``.

    Example::

        serve(lambda: Brain("react", tools=[search]), address=("127.0.0.1", 8000))

    Args:
        make_brain: Returns the brain of a new conversation.
        address: Host and port for streamable HTTP (port 0: any free port); None for stdio.
        token: Bearer token that clients must send; required if other computers can reach the
            address.
        servers: MCP servers whose tools all conversations share, through one connection each.
        on_ready: Called with the URL when the server accepts connections.
        name: The name of the server.
        description: The description of the tool.

    Raises:
        BrainDefinitionError: The address requires a token, or cannot be used.
        McpConfigError: The servers cannot be used as described.
        McpServerError: The servers could not be started or reached.
    """
    if token is not None:
        check_token(token)
    if address is not None:
        _check_address(address)
    if address is not None and token is None and not is_loopback(address[0]):
        raise BrainDefinitionError(
            f"Other computers can reach {address[0] or 'every address of this one'}: give a token "
            "that clients must send"
        )
    named = tuple(servers)
    shared = SharedServers(named) if named else None
    idle = None if address is None else IDLE_SECONDS  # over stdio there is one conversation

    async def main() -> None:
        async with Conversations(make_brain, idle=idle, servers=shared) as conversations:
            if shared is not None:
                await shared.tools()  # errors are raised now, not for the first client
            server = make_server(conversations, name=name, description=description)
            if address is None:
                await server.run_stdio_async()
            else:
                await _serve_http(server, address, token, on_ready)

    with nullcontext() if address is not None else stdin_closed_by_interrupt():
        anyio.run(main)


async def _serve_http(
    server: MCPServer[Any],
    address: tuple[str, int],
    token: str | None,
    on_ready: Callable[[str], None],
) -> None:
    from agent_brain.serving.http_config import HttpServer, http_config

    host, port = address
    with listen(host, port) as listener:
        app: Any = server.streamable_http_app(host=host, transport_security=origin_rules(host))
        if token is not None:
            app = require_token(app, token)
        config = http_config(app, ws="none", timeout_graceful_shutdown=2)
        url = f"http://{shown(host)}:{listener.getsockname()[1]}/mcp"

        await HttpServer(config, lambda: on_ready(url)).serve(sockets=[listener])


def _check_address(address: tuple[str, int]) -> None:
    host: object = None
    port: object = None
    with suppress(TypeError, ValueError):
        host, port = address
    is_port = isinstance(port, int) and not isinstance(port, bool) and 0 <= port <= 65_535
    if not isinstance(host, str) or not is_port:
        raise BrainDefinitionError(
            f"address={address!r}: give a host and a port from 0 (any free one) to 65535, such as "
            '("127.0.0.1", 8000)'
        )


def _own_conversation(context: Context[Any, Any]) -> str | None:
    """Return the name of the conversation of the client's connection, if it has one."""
    if context.headers is None:
        return "stdio"
    if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        session = context.headers.get(SESSION_HEADER)  # verified by the transport
        return None if session is None else f"session {session}"
    return None
