"""One call of the tool ``ask``. Needs the extra ``mcp``."""

from __future__ import annotations

import json
from typing import Any

from mcp import MCPError
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from agent_brain.errors import BrainUseError
from agent_brain.limits import StopReason
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.serving.conversations import Turn
from agent_brain.serving.pending import Approval, WaitingRequest, request_in
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
    Event,
    StateEntered,
    ToolProgress,
)
from agent_brain.tools.answers import plain_schema
from agent_brain.tools.mcp.elicitation import as_form, read_form

FORM = "reply"


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
            except (_NotDecidedError, ValueError, BrainUseError):
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
            schema = _form(request)
            if context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
                # Newer clients get the form as a result, and repeat the call with the reply.
                params = ElicitRequestFormParams(message=request.question, requested_schema=schema)
                return InputRequiredResult(
                    input_requests={FORM: ElicitRequest(params=params)}, request_state=self._name
                )
            try:
                reply = await context.session.elicit_form(
                    request.question, schema, related_request_id=context.request_id
                )
                run = self._brain.stream_resume(**_decided(request, reply))
            except (MCPError, ValueError, BrainUseError, _NotDecidedError):
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


class _NotDecidedError(Exception):
    """Raised where the client left the question open."""


def _supports_forms(context: Context[Any, Any]) -> bool:
    capabilities = context.client_capabilities
    forms = None if capabilities is None else capabilities.elicitation
    return forms is not None and (forms.form is not None or forms.url is None)


def _form(request: WaitingRequest) -> dict[str, Any]:
    return render_elicitation_schema(Approval) if request.call else as_form(request.schema)


def _decided(request: WaitingRequest, reply: object) -> dict[str, Any]:
    """Return the arguments of ``Brain.resume`` for a form.

    A declined form denies a call, and leaves a question open that must be answered.

    Raises:
        ValueError: The form was not filled in as it asks for.
    """
    if not isinstance(reply, ElicitResult) or reply.action == "cancel":
        raise _NotDecidedError
    accepted = reply.action == "accept"
    if request.call is not None:
        words = Approval.model_validate(reply.content).words() if accepted else "no"
        return request.decide(words)
    if accepted:
        return request.answer(read_form(reply.content or {}, request.schema))
    if request.schema is None or not plain_schema(request.schema)[1]:
        raise _NotDecidedError
    return request.answer(None)


def _progress_text(event: Event) -> str | None:
    """Return the progress message of an event; arguments and results are not disclosed."""
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
