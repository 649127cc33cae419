"""The endpoint for clients of the AI SDK, such as ``useChat``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from weakref import WeakSet

from starlette.requests import Request
from starlette.responses import Response

from agent_brain.errors import BrainUseError, SessionBusyError, SessionNotFoundError
from agent_brain.serving.event_log import Gap, SessionEvent
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.chat.threads import (
    Answers,
    use_thread,
    use_waiting,
    waiting_calls,
)
from agent_brain.serving.web.frames import KEEPALIVE, SSE
from agent_brain.serving.web.requests import (
    deps_of,
    owner_args,
    read_json,
    sessions_of,
    settings_of,
)
from agent_brain.serving.web.responses import StreamResponse
from agent_brain.serving.web.vercel.read import (
    ChatRequest,
    read_answers,
    read_said,
    still_waiting,
)
from agent_brain.serving.web.vercel.translate import Chunk, UIMessageTranslator
from agent_brain.tools.ids import new_id
from agent_brain.tools.text import to_compact_json

HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
DONE = b"data: [DONE]\n\n"
ENDS = ("run_finished", "run_failed")
_RUNS: WeakSet[SessionRun] = WeakSet()  # of users' chats, which the server drives


async def chat(request: Request) -> Response:
    """Answer the last message, or continue a run that waits, and stream the parts."""
    body = await read_json(request, ChatRequest)
    return StreamResponse(
        _run(request, body, read_answers(body)),
        media_type=SSE,
        headers=HEADERS,
        keepalive=KEEPALIVE[SSE],
        stall=settings_of(request).limits.stall,
    )


async def _run(
    request: Request, body: ChatRequest, answers: Answers | None
) -> AsyncGenerator[bytes, None]:
    continues = False  # the run that waits
    if answers is not None:
        try:
            async with aclosing(_resumed_run(request, body, answers)) as chunks:
                async for chunk in chunks:
                    continues = True
                    yield chunk
        except SessionNotFoundError:
            if body.messages[-1].role != "user":
                raise
    if not continues:
        async with aclosing(_new_run(request, body)) as chunks:
            async for chunk in chunks:
                yield chunk


async def continue_stream(request: Request) -> Response:
    """Stream the answer of the current run from its beginning; 204 if there is none."""
    nothing = Response(status_code=204)
    if _is_unknown(request):  # its chats are stored under other IDs
        return nothing
    chat = request.path_params["chat"]
    async with sessions_of(request).use(chat, **owner_args(request)) as session:
        run = session.run
        if run is None or not session.log.keeps_after(run.after):
            return nothing
    return StreamResponse(
        _rest(request, chat, run),
        media_type=SSE,
        headers=HEADERS,
        keepalive=KEEPALIVE[SSE],
        stall=settings_of(request).limits.stall,
    )


async def _rest(request: Request, chat: str, run: SessionRun) -> AsyncGenerator[bytes, None]:
    async with sessions_of(request).use(chat, **owner_args(request)) as session:
        translator = _translator(request, session, message_of(run))
        async with aclosing(_translate(_events(session, run), translator)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _new_run(request: Request, body: ChatRequest) -> AsyncGenerator[bytes, None]:
    said, deps = read_said(body), deps_of(request)
    async with use_thread(request, body.id) as session:

        async def record() -> None:
            await said.record(session.memory)

        if _is_unknown(request):  # nobody could come back to the run
            async with session.stream(said.news[-1], deps=deps) as run:
                await record()
                translator = _translator(request, session, message_of(run))
                async with aclosing(_translate(run, translator)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            return
        _end_abandoned(session)
        run = await session.start(said.news[-1], deps=deps, when_busy="wait", prepare=record)
        _RUNS.add(run)
        translator = _translator(request, session, message_of(run))
        async with aclosing(_translate(_events(session, run), translator)) as chunks:
            async for chunk in chunks:
                yield chunk


def _end_abandoned(session: Session) -> None:
    """Cancel a run whose client has stopped reading it and sends a new message."""
    run = session.run
    if run is not None and run in _RUNS and not session.log.readers:
        run.cancel()


async def _events(session: Session, run: SessionRun) -> AsyncGenerator[SessionEvent, None]:
    """Yield the events of a run that the server drives."""
    with session.events(run.after) as reader:
        async for item in reader:
            if isinstance(item, Gap):
                raise SessionBusyError("The client was too slow: load the conversation again")
            yield item
            if item.event.kind in ENDS:
                return


def _translator(request: Request, session: Session, message_id: str) -> UIMessageTranslator:
    return UIMessageTranslator(
        session=session.id, message_id=message_id, show_tools=settings_of(request).show_tools
    )


def message_of(run: SessionRun) -> str:
    """Return the ID of the message that a run writes, the same for each reader."""
    return f"msg_{run.run_id}"


def _is_unknown(request: Request) -> bool:
    return not any(owner_args(request).values())


async def _resumed_run(
    request: Request, body: ChatRequest, answers: Answers
) -> AsyncGenerator[bytes, None]:
    """Continue the run that waits; yield nothing if a message of the user is no answer to it."""
    async with use_waiting(request, body.id, answers.session) as session:
        pending, last = session.pending, body.messages[-1]
        calls = [] if pending is None else pending.calls
        questions = {} if pending is None else pending.questions
        answers = still_waiting(answers, [*(call.id for call in calls), *questions])
        if not answers.keys:
            if last.role == "user":
                return
            raise BrainUseError("The run does not wait for these answers any more")
        show_tools = settings_of(request).show_tools
        asked = {call.id for call in calls}
        known = [each for each in waiting_calls(session) if show_tools or each[1].id in asked]
        continues = last.role == "assistant"  # the message that has the calls
        translator = UIMessageTranslator(
            session=session.id,
            message_id=last.id if continues else new_id("msg"),
            known=known if continues else (),
            denied=answers.deny,
            show_tools=show_tools,
        )
        decided, deps = answers.arguments(), deps_of(request)
        if _is_unknown(request):
            resumed = session.stream_resume(**decided, deps=deps)
            async with resumed as run, aclosing(_translate(run, translator)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        run = await session.start_resume(**decided, deps=deps)
        _RUNS.add(run)
        async with aclosing(_translate(_events(session, run), translator)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _translate(
    run: AsyncIterator[SessionEvent], translator: UIMessageTranslator
) -> AsyncGenerator[bytes, None]:
    begun = False
    try:
        async for item in run:
            chunks = translator.translate(item.event)
            if chunks:
                yield _frames(chunks)
                begun = True
    except Exception as error:
        if not begun:
            raise
        yield _frames(translator.fail(error))
    yield DONE


def _frames(chunks: Iterable[Chunk]) -> bytes:
    return b"".join(b"data: %b\n\n" % to_compact_json(chunk).encode() for chunk in chunks)
