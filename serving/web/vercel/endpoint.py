"""The endpoint for clients of the AI SDK, such as ``useChat``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from weakref import WeakSet

from starlette.requests import Request
from starlette.responses import Response

from agent_brain.common.ids import new_id
from agent_brain.errors import BrainUseError, SessionBusyError, SessionNotFoundError
from agent_brain.serving.event_log import Gap, SessionEvent
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.chat.elsewhere import recorded_events
from agent_brain.serving.web.chat.threads import (
    Answers,
    use_thread,
    use_waiting,
    waiting_calls,
)
from agent_brain.serving.web.requests import (
    deps_of,
    owner_args,
    read_json,
    sessions_of,
    settings_of,
)
from agent_brain.serving.web.streams import Answer, stream_answer
from agent_brain.serving.web.vercel.read import (
    ChatRequest,
    read_answers,
    read_said,
    still_waiting,
)
from agent_brain.serving.web.vercel.translate import UIMessageTranslator

HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
ENDS = ("run_finished", "run_failed")
_RUNS: WeakSet[SessionRun] = WeakSet()  # of users' chats, which the server drives


async def chat(request: Request) -> Response:
    """Answer the last message, or continue a run that waits, and stream the parts."""
    body = await read_json(request, ChatRequest)
    return stream_answer(request, _answer(request, body, read_answers(body)), headers=HEADERS)


@asynccontextmanager
async def _answer(
    request: Request, body: ChatRequest, answers: Answers | None
) -> AsyncIterator[Answer]:
    begun = False
    try:
        if answers is not None:
            async with _resumed_run(request, body, answers) as resumed:
                if resumed is not None:
                    begun = True
                    yield resumed
                    return
    except SessionNotFoundError:
        if begun or body.messages[-1].role != "user":
            raise
    async with _new_run(request, body) as answer:
        yield answer


async def continue_stream(request: Request) -> Response:
    """Stream the answer of the current run from its beginning; 204 if there is none."""
    nothing = Response(status_code=204)
    if _is_unknown(request):  # its chats are stored under other IDs
        return nothing
    chat = request.path_params["chat"]
    async with sessions_of(request).use(chat, **owner_args(request)) as session:
        run = session.run
        kept = session.elsewhere if run is None else session.log.keeps_after(run.after)
    if not kept:
        return nothing
    return stream_answer(request, _current_run(request, chat, run), headers=HEADERS)


@asynccontextmanager
async def _current_run(
    request: Request, chat: str, run: SessionRun | None
) -> AsyncIterator[Answer]:
    """Yield what is told of a run so far, and the rest; None stands for another process's."""
    async with sessions_of(request).use(chat, **owner_args(request)) as session:
        items = recorded_events(session) if run is None else _events(session, run)
        run_id = session.memory.control.run_id or "" if run is None else run.run_id
        async with aclosing(items):
            yield Answer(items, _translator(request, session, message_id=message_of(run_id)))


@asynccontextmanager
async def _new_run(request: Request, body: ChatRequest) -> AsyncIterator[Answer]:
    said, deps = read_said(body), deps_of(request)
    async with use_thread(request, body.id) as session:

        async def record() -> None:
            await said.record(session.memory)

        if _is_unknown(request):  # nobody could come back to the run
            async with session.stream(said.news[-1], deps=deps) as run:
                await record()
                message_id = message_of(run.run_id)
                yield Answer(run, _translator(request, session, message_id=message_id))
            return
        last = session.run
        if last is not None and last in _RUNS and not session.log.readers:
            last.cancel()  # its client has stopped reading it
        run = await session.start(said.news[-1], deps=deps, when_busy="wait", prepare=record)
        _RUNS.add(run)
        async with aclosing(_events(session, run)) as items:
            message_id = message_of(run.run_id)
            yield Answer(items, _translator(request, session, message_id=message_id))


async def _events(session: Session, run: SessionRun) -> AsyncGenerator[SessionEvent, None]:
    """Yield the events of a run that the server drives."""
    with session.events(run.after) as reader:
        async for item in reader:
            if isinstance(item, Gap):
                raise SessionBusyError("The client was too slow: load the conversation again")
            yield item
            if item.event.kind in ENDS:
                return


def _translator(request: Request, session: Session, **options: Any) -> UIMessageTranslator:
    show_tools = settings_of(request).show_tools
    return UIMessageTranslator(session=session.id, show_tools=show_tools, **options)


def message_of(run_id: str) -> str:
    """Return the ID of the message that a run writes, the same for each reader."""
    return f"msg_{run_id}"


def _is_unknown(request: Request) -> bool:
    return not any(owner_args(request).values())


@asynccontextmanager
async def _resumed_run(
    request: Request, body: ChatRequest, answers: Answers
) -> AsyncIterator[Answer | None]:
    """Continue the run that waits; yield None if a message of the user is not an answer to it."""
    async with use_waiting(request, body.id, answers.session) as session:
        pending, last = session.pending, body.messages[-1]
        calls = [] if pending is None else pending.calls
        questions = {} if pending is None else pending.questions
        waiting = [*(call.id for call in calls), *questions]
        answers = still_waiting(answers, waiting, one=last.role == "user")
        if not answers.keys:
            if last.role != "user":
                raise BrainUseError("The run does not wait for these answers any more")
            yield None
            return
        show_tools = settings_of(request).show_tools
        known = [each for each in waiting_calls(session) if show_tools or each[1].id in waiting]
        continues = last.role == "assistant"  # the message that has the calls
        translator = _translator(
            request,
            session,
            message_id=last.id if continues else new_id("msg"),
            known=known if continues else (),
            asked=() if continues else known,
            denied=answers.deny,
        )
        decided, deps = answers.arguments(), deps_of(request)
        if _is_unknown(request):
            async with session.stream_resume(**decided, deps=deps) as run:
                yield Answer(run, translator)
            return
        run = await session.start_resume(**decided, deps=deps)
        _RUNS.add(run)
        async with aclosing(_events(session, run)) as items:
            yield Answer(items, translator)
