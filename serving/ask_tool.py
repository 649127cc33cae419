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
from pydantic import BaseModel, Field, ValidationError

from agent_brain.errors import BrainUseError
from agent_brain.limits import StopReason
from agent_brain.result import Result
from agent_brain.run import Run
from agent_brain.serving.conversations import Turn
from agent_brain.serving.pending import Approval, Reply, WaitingRequest, request_in
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
    Event,
    StateEntered,
    ToolProgress,
)

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
                run = self._resume(request, _words_of_repeated_call(self._context, request))
            except (_NotDecidedError, BrainUseError):
                return self._result(None, request)
        elif request is not None:
            run = self._resume(request, question)
        else:
            run = self._brain.stream(question)
        return await self._settle(await self._drive(run))

    def _resume(self, request: WaitingRequest, words: str) -> Run:
        return self._brain.stream_resume(**request.decide(words))

    async def _settle(self, result: Result) -> CallToolResult | InputRequiredResult:
        """Show forms to a client that supports them, while the run waits."""
        context = self._context
        while (request := request_in(self._brain.memory)) and _supports_forms(context):
            if context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
                # Newer clients get the form as a result, and repeat the call with the reply.
                schema = render_elicitation_schema(request.form)
                params = ElicitRequestFormParams(message=request.question, requested_schema=schema)
                return InputRequiredResult(
                    input_requests={FORM: ElicitRequest(params=params)}, request_state=self._name
                )
            try:
                outcome = await context.elicit(request.question, request.form)
                data = outcome.data if outcome.action == "accept" else None
                run = self._resume(request, _words_of_form(outcome.action, data, request))
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


def _words_of_repeated_call(context: Context[Any, Any], request: WaitingRequest) -> str:
    reply = (context.input_responses or {}).get(FORM)
    if not isinstance(reply, ElicitResult):
        raise _NotDecidedError
    try:
        data = request.form.model_validate(reply.content) if reply.action == "accept" else None
    except ValidationError as error:
        raise _NotDecidedError from error
    return _words_of_form(reply.action, data, request)


def _words_of_form(action: str, data: Approval | Reply | None, request: WaitingRequest) -> str:
    """Return a form in words; a declined form denies a call, and leaves a question open."""
    if data is not None:
        return data.words()
    if action == "decline" and request.call is not None:
        return "no"
    raise _NotDecidedError


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
