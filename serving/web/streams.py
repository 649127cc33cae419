"""Runs and the events of sessions as streaming responses, for any ASGI application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent_brain.serving.event_log import Gap, SessionEvent
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.errors import as_http_error, error_response
from agent_brain.serving.web.frames import FRAMES, KEEPALIVE, SSE
from agent_brain.serving.web.requests import settings_of
from agent_brain.serving.web.responses import StreamResponse
from agent_brain.serving.web.translator import Frames
from agent_brain.serving.web.views import describe_result

JSON = "application/json"
UseSession = AbstractAsyncContextManager[Session]


@dataclass(frozen=True, slots=True)
class Answer:
    """What answers a request.

    Attributes:
        items: The events of a run.
        frames: Says what the client is sent of them.
        run: The run, if it is to be cancelled when the client is sent no more.
    """

    items: AsyncIterator[SessionEvent]
    frames: Frames
    run: SessionRun | None = None


async def frames_of(opening: AbstractAsyncContextManager[Answer]) -> AsyncGenerator[bytes, None]:
    """Yield what a client is sent.

    Raises:
        Exception: There was nothing to send before it.
    """
    begun = False
    async with opening as answer:
        frames = answer.frames
        try:
            async for item in answer.items:
                if data := frames.frames(item):
                    begun = True
                    yield data
                if frames.enough and answer.run is not None:
                    answer.run.cancel()
        except Exception as error:
            if not begun:
                raise
            if data := frames.failed(error):
                yield data
        if frames.last:
            yield frames.last


def stream_answer(
    request: Request,
    opening: AbstractAsyncContextManager[Answer],
    *,
    headers: Mapping[str, str] | None = None,
    on_error: Callable[[Exception], Response] = error_response,
) -> Response:
    """Return a response that streams what answers a request, as server-sent events.

    Args:
        request: The request.
        opening: Begins or finds the run; the run is left with the response.
        headers: Further headers.
        on_error: Returns the response to an error before anything was sent.
    """
    stall = settings_of(request).limits.stall
    return StreamResponse(
        frames_of(opening), media_type=SSE, headers=headers, stall=stall, on_error=on_error
    )


def run_response(
    use: UseSession,
    start: Callable[[Session], SessionRun],
    *,
    media_type: str = SSE,
    stall: float = 30.0,
) -> Response:
    """Return a response that streams an attached run; the run is cancelled if the client leaves.

    Errors before the first event become HTTP errors: 404 for a session that the caller does not
    have, 409 for one that is busy, and so on. ::

        @app.post("/chats/{chat}")
        async def chat(chat: str, question: Question) -> Response:
            return run_response(sessions.use(chat, user="ann"), lambda s: s.stream(question.text))

    Args:
        use: The session: what :meth:`Sessions.use` returned.
        start: Starts the run.
        media_type: ``text/event-stream``, ``application/x-ndjson``, or ``application/json`` for the
            result alone.
        stall: Seconds after which a client that takes no data is dropped, and the run cancelled.
    """
    whole = media_type == JSON
    chunks = _result(use, start) if whole else frames_of(_attached(use, start, media_type))
    return StreamResponse(chunks, media_type=media_type, stall=stall)


def events_response(
    use: UseSession,
    *,
    after: str | None = None,
    media_type: str = SSE,
    stall: float = 30.0,
) -> Response:
    """Return a response that streams the events of all runs of a session, until the client leaves.

    Args:
        use: The session: what :meth:`Sessions.use` returned.
        after: ID of the last event that the client knows, as for :meth:`Session.events`.
        media_type: ``text/event-stream`` or ``application/x-ndjson``.
        stall: Seconds after which a client that takes no data is dropped.
    """
    return StreamResponse(_watch(use, after, media_type), media_type=media_type, stall=stall)


class _Events:
    """The events as they are, each with its ID."""

    last, enough = b"", False

    def __init__(self, run: SessionRun, frame: Callable[[SessionEvent | Gap], bytes]) -> None:
        self._run = run
        self.frames = frame

    def failed(self, error: Exception) -> bytes:
        if self._run.error is not error:  # else RunFailed has told the client
            raise error
        as_http_error(error)  # logs what is not an error of the library
        return b""


@asynccontextmanager
async def _attached(
    use: UseSession, start: Callable[[Session], SessionRun], media_type: str
) -> AsyncIterator[Answer]:
    async with use as session, start(session) as run:
        yield Answer(run, _Events(run, FRAMES[media_type]))


async def _result(
    use: UseSession, start: Callable[[Session], SessionRun]
) -> AsyncGenerator[bytes, None]:
    async with use as session, start(session) as run:
        async for _ in run:
            pass
        yield bytes(JSONResponse(describe_result(session, run.result)).body)


async def _watch(
    use: UseSession, after: str | None, media_type: str
) -> AsyncGenerator[bytes, None]:
    frame = FRAMES[media_type]
    async with use as session:
        with session.events(after) as reader:
            yield KEEPALIVE[media_type]  # the client knows now that it is connected
            while batch := await reader.batch():
                yield b"".join(map(frame, batch))
