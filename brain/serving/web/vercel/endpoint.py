"""The endpoint for clients of the AI SDK, such as ``useChat``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from agent_brain.errors import BrainUseError, SessionNotFoundError
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.chat.threads import (
    Answers,
    use_thread,
    use_waiting,
    waiting_calls,
)
from agent_brain.serving.web.frames import KEEPALIVE, SSE
from agent_brain.serving.web.requests import deps_of, read_json, settings_of
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


async def _new_run(request: Request, body: ChatRequest) -> AsyncGenerator[bytes, None]:
    said = read_said(body)
    async with (
        use_thread(request, body.id) as session,
        session.stream(said.news[-1], deps=deps_of(request)) as run,
    ):
        await said.record(session.memory)
        translator = UIMessageTranslator(
            session=session.id,
            message_id=new_id("msg"),
            show_tools=settings_of(request).show_tools,
        )
        async with aclosing(_translate(run, translator)) as chunks:
            async for chunk in chunks:
                yield chunk


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
        resumed = session.stream_resume(**answers.arguments(), deps=deps_of(request))
        async with resumed as run, aclosing(_translate(run, translator)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _translate(
    run: SessionRun, translator: UIMessageTranslator
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
