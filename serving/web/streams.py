"""Runs and the events of sessions as streaming responses, for any ASGI application."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent_brain.serving.event_json import event_json
from agent_brain.serving.event_log import Gap, SessionEvent
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.requests import as_http_error, error_response, settings_of
from agent_brain.serving.web.responses import KEEPALIVE, NDJSON, SSE, StreamResponse
from agent_brain.serving.web.views import describe_result
from agent_brain.states.events import AgentEvent

PartT = TypeVar("PartT")
JSON = "application/json"
UseSession = AbstractAsyncContextManager[Session]


def sse_frame(item: SessionEvent | Gap) -> bytes:
    """Return ``item`` as a server-sent event: its ID, its kind and its JSON.

    Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    if isinstance(item, Gap):
        return b"id: %b\nevent: gap\ndata: {}\n\n" % item.id.encode()
    kind = item.event.kind.encode()
    return b"id: %b-%d\nevent: %b\ndata: %b\n\n" % (
        item.log.encode(),
        item.number,
        kind,
        event_json(item.event),
    )


def ndjson_line(item: SessionEvent | Gap) -> bytes:
    """Return ``item`` as one line of JSON: its ID and the event.

    Source: https://github.com/ndjson/ndjson-spec
    """
    if isinstance(item, Gap):
        return b'{"id": "%b", "event": {"kind": "gap"}}\n' % item.id.encode()
    return b'{"id": "%b-%d", "event": %b}\n' % (
        item.log.encode(),
        item.number,
        event_json(item.event),
    )


FRAMES = {SSE: sse_frame, NDJSON: ndjson_line}


class Frames(Protocol):
    """Turns the events of one run into bytes; it awaits nothing."""

    def frames(self, item: SessionEvent, /) -> bytes:
        """Return what the client is sent for an event; empty for nothing."""
        ...

    def failed(self, error: Exception, *, begun: bool) -> bytes:
        """Return what ends a stream after an error, which may not be an event.

        Args:
            error: The error.
            begun: Whether the client was sent anything.

        Raises:
            Exception: The error, if the stream cannot tell it.
        """
        ...

    @property
    def last(self) -> bytes:
        """What follows everything else."""
        ...

    @property
    def enough(self) -> bool:
        """Whether the client is sent no more text, so that the run should be cancelled."""
        ...


class Translator(ABC, Generic[PartT]):
    """Frames of a protocol that are made of parts, such as its own events.

    Attributes:
        last: What follows everything else.
        enough: Whether the client is sent no more text.
    """

    last: bytes = b""
    enough = False

    @abstractmethod
    def translate(self, event: AgentEvent) -> list[PartT]:
        """Return the parts for an event of the run."""

    @abstractmethod
    def fail(self, error: Exception) -> list[PartT]:
        """Return the parts that end a stream after an error, unless it has ended."""

    @abstractmethod
    def encode(self, part: PartT) -> bytes:
        """Return a part as the client is sent it."""

    def frames(self, item: SessionEvent) -> bytes:
        """Return what the client is sent for an event; empty for nothing."""
        return b"".join([self.encode(part) for part in self.translate(item.event)])

    def failed(self, error: Exception, *, begun: bool) -> bytes:
        """Return what ends a stream that has begun."""
        if not begun:
            raise error
        return b"".join([self.encode(part) for part in self.fail(error)])


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
            if data := frames.failed(error, begun=begun):
                yield data
        if frames.last:
            yield frames.last


def stream_answer(
    request: Request,
    opening: AbstractAsyncContextManager[Answer],
    *,
    media_type: str = SSE,
    headers: Mapping[str, str] | None = None,
    on_error: Callable[[Exception, str], Response] = error_response,
) -> Response:
    """Return a response that streams what answers a request.

    Args:
        request: The request.
        opening: Begins or finds the run; the run is left with the response.
        media_type: The content type.
        headers: Further headers.
        on_error: Returns the response to an error before anything was sent, by it and the path.
    """
    stall = settings_of(request).limits.stall
    return StreamResponse(
        frames_of(opening), media_type=media_type, headers=headers, stall=stall, on_error=on_error
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

    def failed(self, error: Exception, *, begun: bool) -> bytes:
        if not begun or self._run.error is not error:  # else RunFailed has told the client
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
