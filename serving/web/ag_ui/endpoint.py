"""The endpoint for clients of AG-UI, and the tools that they run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from ag_ui.core import RunAgentInput, Tool
from starlette.requests import Request
from starlette.responses import Response

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.errors import BrainUseError, ResumeError
from agent_brain.memories.base import Memory
from agent_brain.serving.pending import pending_in
from agent_brain.serving.session import Session
from agent_brain.serving.web.ag_ui.ending import run_error
from agent_brain.serving.web.ag_ui.read import (
    answered_session,
    check_ids,
    own_results,
    read_answers,
    read_news,
    read_said,
)
from agent_brain.serving.web.ag_ui.translate import AgUiTranslator, encode
from agent_brain.serving.web.chat.threads import Path, Said, use_thread, use_waiting, waiting_calls
from agent_brain.serving.web.requests import deps_of, error_response, read_json, settings_of
from agent_brain.serving.web.responses import SSE
from agent_brain.serving.web.streams import Answer, stream_answer
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import InputNeeded


class FrontEndTool(BaseTool):
    """A tool that the client runs: the run waits, and the answer is the result of the call."""

    async def execute(self, **arguments: Any) -> str:
        """Make the run wait."""
        raise InputNeeded(f"The user interface runs {self.name}")


def front_end_tools(tools: Iterable[Tool]) -> list[FrontEndTool]:
    """Return the tools that a client offers.

    Raises:
        BrainUseError: One cannot be offered to a model.
    """
    found = []
    for tool in tools:
        schema = tool.parameters or {"type": "object", "properties": {}}
        try:
            found.append(FrontEndTool(tool.name, tool.description, schema, idempotent=True))
        except ToolDefinitionError as error:
            raise BrainUseError(f"tools: {error}") from None
    return found


@contextmanager
def offered(memory: Memory, tools: Iterable[FrontEndTool]) -> Iterator[None]:
    """Offer tools to the model meanwhile.

    Raises:
        BrainUseError: Two tools have one name.
    """
    added = list(tools)
    try:
        memory.add_tools(added)
    except ToolDefinitionError as error:
        raise BrainUseError(f"tools: {error}") from None
    try:
        yield
    finally:
        for tool in added:
            if memory.available_tools.get(tool.name) is tool:
                del memory.available_tools[tool.name]


class _RunWaitsError(BrainUseError):
    """Raised for a new message in a thread whose run waits."""


async def run_agent(request: Request) -> Response:
    """Run the agent, or continue a run that waits, and stream the events."""
    body = await read_json(request, RunAgentInput)
    check_ids(body)
    tools = front_end_tools(body.tools or ())
    try:
        answered = answered_session(body)
    except BrainUseError as error:
        return _refusal(error)
    if answered is None:
        opening = _new_run(request, body, read_said(body), tools)
    else:
        opening = _resumed_run(request, body, answered, tools)

    def on_error(error: Exception, path: str) -> Response:
        kinds = (BrainUseError, ResumeError) if answered is not None else _RunWaitsError
        return _refusal(error) if isinstance(error, kinds) else error_response(error, path)

    return stream_answer(request, opening, on_error=on_error)


def _refusal(error: Exception) -> Response:
    """Return the stream for answers that do not fit, as the protocol wants it."""
    return Response(encode(run_error(error)), media_type=SSE)


@asynccontextmanager
async def _new_run(
    request: Request, body: RunAgentInput, said: Said, tools: list[FrontEndTool]
) -> AsyncIterator[Answer]:
    async with (
        use_thread(request, body.thread_id) as session,
        session.stream(said.news[-1], deps=deps_of(request)) as run,
    ):
        if _asks(session, tools):
            raise _RunWaitsError("The run of this thread waits: answer it in resume")
        await said.record(session.memory)
        translator = _translator(request, body, session, tools)
        with offered(session.memory, tools):
            yield Answer(run, translator)


def _asks(session: Session, tools: list[FrontEndTool]) -> bool:
    """Return whether the run waits for a person; not for results of the client's tools."""
    pending = pending_in(session.memory)
    if pending is None:
        return False
    names = {tool.name for tool in tools}
    own = {call.id for _, call in waiting_calls(session) if call.name in names}
    return bool(pending.calls) or bool(pending.questions.keys() - own)


@asynccontextmanager
async def _resumed_run(
    request: Request, body: RunAgentInput, session_id: str, tools: list[FrontEndTool]
) -> AsyncIterator[Answer]:
    async with use_waiting(request, body.thread_id, session_id) as session:
        answers = read_answers(body, session_id, session.pending)
        results = own_results(body)
        calls = waiting_calls(session)
        translator = _translator(
            request,
            body,
            session,
            tools,
            known=[each for each in calls if each[1].id not in results],
            answered=[each for each in calls if each[1].id in results],
        )
        news = read_news(body)
        async with session.stream_resume(**answers.arguments(), deps=deps_of(request)) as run:
            known = {m.id for m in [*await session.memory.goal(), *await session.memory.dump()]}
            for message in news:
                if message.id not in known:
                    run.send(message)
            with offered(session.memory, tools):
                yield Answer(run, translator)


def _translator(
    request: Request,
    body: RunAgentInput,
    session: Session,
    tools: list[FrontEndTool],
    *,
    known: Iterable[tuple[Path, Action]] = (),
    answered: Iterable[tuple[Path, Action]] = (),
) -> AgUiTranslator:
    show_tools = settings_of(request).show_tools
    pending = session.pending
    asked = set() if pending is None else {call.id for call in pending.calls} | {*pending.questions}
    return AgUiTranslator(
        body.thread_id,
        body.run_id,
        session=session.id,
        sent=[message.id for message in body.messages],
        known=[each for each in known if show_tools or each[1].id in asked],
        answered=answered,
        front_end=[tool.name for tool in tools],
        show_tools=show_tools,
    )
