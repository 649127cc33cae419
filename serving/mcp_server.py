"""A brain as an MCP server. Needs the extra ``mcp``.

The server has one tool, ``ask``. Events are reported as progress; a client that cancels its call
cancels the run. Over stdio, and in the sessions of older HTTP clients, the questions of one client
are one conversation. The newer protocol has no sessions: each answer has the name of its
conversation, and a client continues it by passing the name with the next question.

A run that waits for a person asks the client: in a form if the client supports forms
(elicitation), otherwise in the answer, to which the client's next question is the reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import Annotated, Any

import anyio
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from agent_brain.common.secrets import scrub
from agent_brain.errors import AgentBrainError, BrainDefinitionError, BrainUseError
from agent_brain.limits import StopReason
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.serving.access import (
    check_token,
    is_loopback,
    listen,
    origin_rules,
    require_token,
    shown,
)
from agent_brain.serving.conversations import Conversations, MakeBrain, SharedServers, Turn
from agent_brain.serving.pending import Approval, WaitingRequest, request_in
from agent_brain.serving.stdin import stdin_closed_by_interrupt
from agent_brain.states import events
from agent_brain.tools.answers import plain_schema
from agent_brain.tools.mcp import McpSource
from agent_brain.tools.mcp.questions import as_form, read_form

FORM = "reply"
LEFT_OPEN = "The client left the question open"
DESCRIPTION = "Ask an agent that thinks and calls its own tools before it answers."
IDLE_SECONDS = 3600.0
SESSION_HEADER = "mcp-session-id"
Question = Annotated[str, Field(description="The question or task.", min_length=1)]
ConversationName = Annotated[
    str | None,
    Field(description="The name of an earlier conversation to continue, from its answer."),
]


class Answer(BaseModel):
    """The structured result of the tool."""

    answer: str
    conversation: str
    stop_reason: str
    question: str | None = Field(None, description="The question that the agent waits for.")


class AskCall:
    """One call of the tool.

    Args:
        turn: The conversation.
        context: The call.
    """

    def __init__(self, turn: Turn, context: Context[Any, Any]) -> None:
        self._name = turn.name
        self._brain = turn.brain
        self._context = context
        self._reported = 0

    async def answer(self, question: str) -> CallToolResult | InputRequiredResult:
        """Run, or resume a waiting run, until the run ends or the client must answer."""
        await self._brain.memory.open()
        request = request_in(self._brain.memory)
        if self._context.request_state is not None:
            if request is None:
                raise BrainUseError("The agent does not wait for an answer any more: ask again")
            try:
                decided = _decided(request, (self._context.input_responses or {}).get(FORM))
            except (ValueError, BrainUseError):
                return self._result(None, request)
            run = self._brain.stream_resume(**decided)
        elif request is not None:
            run = self._brain.stream_resume(**request.decide(question))
        else:
            run = self._brain.stream(question)
        return await self._settle(await self._drive(run))

    async def _settle(self, result: Result) -> CallToolResult | InputRequiredResult:
        """Show forms to a client that supports them, while the run waits."""
        context = self._context
        while (request := request_in(self._brain.memory)) and _supports_forms(context):
            form = render_elicitation_schema(Approval) if request.call else as_form(request.schema)
            if context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
                # Newer clients get the form as a result, and repeat the call with the reply.
                params = ElicitRequestFormParams(message=request.question, requested_schema=form)
                return InputRequiredResult(
                    input_requests={FORM: ElicitRequest(params=params)}, request_state=self._name
                )
            try:
                reply = await context.session.elicit_form(
                    request.question, form, related_request_id=context.request_id
                )
                run = self._brain.stream_resume(**_decided(request, reply))
            except (MCPError, ValueError, BrainUseError):
                break
            result = await self._drive(run)
        return self._result(result, request)

    async def _drive(self, run: Run) -> Result:
        async with run:
            async for event in run:
                if (text := _progress_text(event)) is not None:
                    self._reported += 1
                    await self._context.report_progress(self._reported, message=text)
        return run.result

    def _result(self, result: Result | None, request: WaitingRequest | None) -> CallToolResult:
        text = said = "" if result is None else result.answer
        if result is not None:
            reason = result.stop_reason
        else:
            reason = StopReason.APPROVAL if request and request.call else StopReason.INPUT
        if request is not None:
            name = json.dumps(self._name)
            text = f"{said}\n\n{request.question}\n\n({request.how}, in conversation {name}.)"
        elif reason is not StopReason.DONE:
            text = f"{said}\n\n(The agent was stopped: {reason.value}.)"
        answer = Answer(
            answer=said,
            conversation=self._name,
            stop_reason=reason.value,
            question=None if request is None else request.question,
        )
        return CallToolResult(
            content=[TextContent(text=text if text is said else text.strip())],
            structured_content=answer.model_dump(exclude_none=True),
            is_error=reason is not StopReason.DONE and not said and request is None,
        )


def _supports_forms(context: Context[Any, Any]) -> bool:
    capabilities = context.client_capabilities
    forms = None if capabilities is None else capabilities.elicitation
    return forms is not None and (forms.form is not None or forms.url is None)


def _decided(request: WaitingRequest, reply: object) -> dict[str, Any]:
    """Return the arguments of ``Brain.resume`` for a form.

    A declined form denies a call, and leaves a question open that must be answered.

    Raises:
        ValueError: The form was not filled in as it asks for.
        BrainUseError: It decides nothing.
    """
    if not isinstance(reply, ElicitResult) or reply.action == "cancel":
        raise BrainUseError(LEFT_OPEN)
    accepted = reply.action == "accept"
    if request.call is not None:
        words = Approval.model_validate(reply.content).words() if accepted else "no"
        return request.decide(words)
    if accepted:
        return request.answer(read_form(reply.content or {}, request.schema))
    if request.schema is None or not plain_schema(request.schema)[1]:
        raise BrainUseError(LEFT_OPEN)
    return request.answer(None)


def _progress_text(event: events.Event) -> str | None:
    """Return the progress message of an event; arguments and results are not disclosed."""
    match event:
        case events.StateEntered():
            return " › ".join([*event.path, event.state or ""])
        case events.ActionRequested():
            return f"calls {event.action.name}"
        case events.ToolProgress():
            return f"{event.action.name}: {event.message or event.done}"
        case events.ActionFinished():
            return f"{event.action.name} {'failed' if event.result.is_error else 'is done'}"
    return None


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
