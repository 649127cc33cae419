"""Runs and the events of sessions as streaming responses, for any ASGI application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager

from starlette.responses import JSONResponse, Response

from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.errors import as_http_error
from agent_brain.serving.web.frames import FRAMES, KEEPALIVE, SSE
from agent_brain.serving.web.responses import StreamResponse
from agent_brain.serving.web.views import describe_result

JSON = "application/json"
UseSession = AbstractAsyncContextManager[Session]


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
    chunks = _result(use, start) if media_type == JSON else _events(use, start, media_type)
    return _response(chunks, media_type, stall)


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
    return _response(_watch(use, after, media_type), media_type, stall)


def _response(chunks: AsyncGenerator[bytes, None], media_type: str, stall: float) -> Response:
    return StreamResponse(
        chunks, media_type=media_type, keepalive=KEEPALIVE.get(media_type, b""), stall=stall
    )


async def _events(
    use: UseSession, start: Callable[[Session], SessionRun], media_type: str
) -> AsyncGenerator[bytes, None]:
    frame = FRAMES[media_type]
    async with use as session, start(session) as run:
        try:
            async for item in run:
                yield frame(item)
        except Exception as error:
            if not run.begun or run.error is not error:  # else RunFailed has told the client
                raise
            as_http_error(error)  # logs what is not an error of the library


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
