"""One call of a served brain's tool ``ask``. Needs the extra ``mcp``."""

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
from agent_brain.serving.waiting import Approval, Reply, Waiting, waiting_in
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
    Event,
    StateEntered,
    ToolProgress,
)

FORM = "reply"


class Answer(BaseModel):
    """What a client gets."""

    answer: str
    conversation: str
    stop_reason: str
    question: str | None = Field(None, description="What the agent waits for an answer to.")


class Asking:
    """One call of the tool.

    Args:
        turn: The conversation.
        context: The call.
    """

    def __init__(self, turn: Turn, context: Context[Any, Any]) -> None:
        self._name = turn.name
        self._brain = turn.brain
        self._context = context
        self._told = 0

    async def answer(self, question: str) -> CallToolResult | InputRequiredResult:
        """Run, or go on with what waits, as far as it goes without the client."""
        await self._brain.memory.open()
        waiting = waiting_in(self._brain.memory)
        if self._context.request_state is None:
            run = (
                self._brain.stream(question) if waiting is None else self._go_on(waiting, question)
            )
        elif waiting is None:
            raise BrainUseError("The agent waits for nothing any more: ask again")
        else:
            try:
                run = self._go_on(waiting, _words(self._context, waiting))
            except (_NotDecided, BrainUseError):
                return _answer(None, self._name, waiting)
        return await self._rest(await self._drive(run))

    def _go_on(self, waiting: Waiting, words: str) -> Run:
        return self._brain.stream_resume(**waiting.read(words))

    async def _rest(self, result: Result) -> CallToolResult | InputRequiredResult:
        """Ask the client in forms, if it shows them, as long as the run waits."""
        while (waiting := waiting_in(self._brain.memory)) and _shows_forms(self._context):
            if _asks_in_results(self._context):
                return InputRequiredResult(
                    input_requests={FORM: _request(waiting)}, request_state=self._name
                )
            try:
                outcome = await self._context.elicit(waiting.question, waiting.form)
                data = outcome.data if outcome.action == "accept" else None
                run = self._go_on(waiting, _decided(outcome.action, data, waiting))
            except (MCPError, ValueError, BrainUseError, _NotDecided):
                break
            result = await self._drive(run)
        return _answer(result, self._name, waiting)

    async def _drive(self, run: Run) -> Result:
        async with run:
            async for event in run:
                text = _in_words(event)
                if text is not None:
                    self._told += 1
                    await self._context.report_progress(self._told, message=text)
        return run.result


class _NotDecided(Exception):  # noqa: N818 - nothing went wrong
    """The client has left the question open."""


def _shows_forms(context: Context[Any, Any]) -> bool:
    capabilities = context.client_capabilities
    forms = None if capabilities is None else capabilities.elicitation
    return forms is not None and (forms.form is not None or forms.url is None)


def _asks_in_results(context: Context[Any, Any]) -> bool:
    """Newer clients are asked by the result of the call, which they then repeat."""
    return context.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS


def _request(waiting: Waiting) -> ElicitRequest:
    schema = render_elicitation_schema(waiting.form)
    params = ElicitRequestFormParams(message=waiting.question, requested_schema=schema)
    return ElicitRequest(params=params)


def _words(context: Context[Any, Any], waiting: Waiting) -> str:
    """The reply in a repeated call."""
    reply = (context.input_responses or {}).get(FORM)
    if not isinstance(reply, ElicitResult):
        raise _NotDecided
    try:
        data = waiting.form.model_validate(reply.content) if reply.action == "accept" else None
    except ValidationError as error:
        raise _NotDecided from error
    return _decided(reply.action, data, waiting)


def _decided(action: str, data: Approval | Reply | None, waiting: Waiting) -> str:
    """A form in words. One that is declined says no to a call, and nothing to a question."""
    if data is not None:
        return data.words()
    if action == "decline" and waiting.call is not None:
        return "no"
    raise _NotDecided


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


def _answer(result: Result | None, conversation: str, waiting: Waiting | None) -> CallToolResult:
    text = said = "" if result is None else result.answer
    reason = _stop_reason(result, waiting)
    if waiting is not None:
        name = json.dumps(conversation)
        text = f"{said}\n\n{waiting.question}\n\n({waiting.how}, in conversation {name}.)".strip()
    elif reason != StopReason.DONE:
        text = f"{said}\n\n(The agent was stopped: {reason}.)".strip()
    answer = Answer(
        answer=said,
        conversation=conversation,
        stop_reason=reason,
        question=None if waiting is None else waiting.question,
    )
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=answer.model_dump(exclude_none=True),
        is_error=reason != StopReason.DONE and not said and waiting is None,
    )


def _stop_reason(result: Result | None, waiting: Waiting | None) -> str:
    if result is not None:
        return result.stop_reason.value
    return "approval" if waiting is not None and waiting.call is not None else "input"
