"""The endpoints of OpenAI's API. Needs the extra ``server``."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_brain.serving.sessions import SessionKey
from agent_brain.serving.web.frames import KEEPALIVE, SSE
from agent_brain.serving.web.openai.chat import ChatChunk, ChatCompletion, ChatStream
from agent_brain.serving.web.openai.chat_request import ChatRequest
from agent_brain.serving.web.openai.encoding import DONE, encode, frame
from agent_brain.serving.web.openai.errors import ApiError, api_error, error_after_output
from agent_brain.serving.web.openai.response_items import ResponseEvent
from agent_brain.serving.web.openai.response_request import ResponseRequest
from agent_brain.serving.web.openai.responses import ResponseStream
from agent_brain.serving.web.openai.session_runs import (
    Answering,
    Asker,
    ResponseSessions,
    answer_chat,
    events_of,
)
from agent_brain.serving.web.openai.shown import Shown
from agent_brain.serving.web.requests import (
    HttpError,
    caller_of,
    deps_of,
    read_json,
    sessions_of,
    settings_of,
)
from agent_brain.serving.web.responses import StreamResponse
from agent_brain.states.events import RunFailed
from agent_brain.tools.secrets import get_logger

SESSION_HEADER = "x-session-id"
JSON = "application/json"

_T = TypeVar("_T")
logger = get_logger(__name__)


def routes() -> list[Route]:
    """Return the routes ``/v1/models``, ``/v1/chat/completions`` and ``/v1/responses``.

    The model is the name of the agent.
    """
    api = OpenAIApi()
    return [
        Route("/v1/models", _with_errors(api.list_models), methods=["GET"]),
        Route("/v1/models/{model:path}", _with_errors(api.describe_model), methods=["GET"]),
        Route("/v1/chat/completions", _with_errors(api.chat_completions), methods=["POST"]),
        Route("/v1/responses", _with_errors(api.responses), methods=["POST"]),
    ]


class OpenAIApi:
    """Answers requests of OpenAI's API."""

    def __init__(self) -> None:
        self._created = int(time.time())
        self._responses = ResponseSessions()

    async def list_models(self, request: Request) -> Response:
        """List the agent as the only model."""
        return JSONResponse({"object": "list", "data": [self._model(request)]})

    async def describe_model(self, request: Request) -> Response:
        """Describe the agent as a model."""
        _check_model(request, request.path_params["model"])
        return JSONResponse(self._model(request))

    def _model(self, request: Request) -> dict[str, object]:
        name = settings_of(request).name
        return {"id": name, "object": "model", "created": self._created, "owned_by": "agent-brain"}

    async def chat_completions(self, request: Request) -> Response:
        """Answer a request of Chat Completions."""
        body = await read_json(request, ChatRequest)
        _check_model(request, body.model)
        body.check()
        asker, session_id = _asker(request), request.headers.get(SESSION_HEADER)

        async def chunks() -> AsyncGenerator[ChatChunk, None]:
            async with answer_chat(sessions_of(request), asker, body, session_id) as answering:
                stream = ChatStream(
                    f"chatcmpl-{secrets.token_hex(16)}",
                    body.model,
                    shown=body.agent_brain.over(_shown(request)),
                    most_tokens=body.most_tokens,
                    include_usage=body.includes_usage or not body.stream,
                    session=answering.session,
                )
                async with aclosing(events_of(answering.run, stream.limit)) as events:
                    async for event in events:
                        for chunk in stream.take(event):
                            yield chunk

        if body.stream:
            return _streaming(request, _chat_frames(chunks()))
        return _at_the_end(request, _whole_chat(_not_repeated(chunks())))

    async def responses(self, request: Request) -> Response:
        """Answer a request of the Responses API."""
        body = await read_json(request, ResponseRequest)
        _check_model(request, body.model)
        body.check()
        asker, shown = _asker(request), body.agent_brain.over(_shown(request))

        async def events() -> AsyncGenerator[ResponseEvent, None]:
            opening = self._responses.answer(sessions_of(request), asker, body)
            async with (
                opening as answering,
                aclosing(self._events(body, answering, shown)) as translated,
            ):
                async for event in translated:
                    yield event

        if body.stream:
            return _streaming(request, _frames(events()))
        return _at_the_end(request, _whole(_not_repeated(events())))

    async def _events(
        self, body: ResponseRequest, answering: Answering, shown: Shown
    ) -> AsyncGenerator[ResponseEvent, None]:
        session = answering.session
        response_id = self._responses.new_id(session)
        stream = ResponseStream(
            response_id,
            body.model,
            shown=shown,
            most_tokens=body.max_output_tokens,
            session=session,
            approved=answering.approved,
            fields=_repeated(body),
        )
        try:
            async with aclosing(events_of(answering.run, stream.limit)) as events:
                async for event in events:
                    for translated in stream.take(event):
                        yield translated
        except Exception as error:
            if not stream.ended:
                for translated in stream.take(RunFailed(error)):
                    yield translated
            raise
        finally:
            if session is not None and stream.ended:
                key = SessionKey(answering.owner, session)
                self._responses.ended(key, response_id, failed=stream.failed)


async def _chat_frames(chunks: AsyncGenerator[ChatChunk, None]) -> AsyncGenerator[bytes, None]:
    """Yield a stream; after the first chunk, an error is an event."""
    began = False
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                began = True
                yield frame(chunk)
        except Exception as error:
            if not began:
                raise
            _log(error)
            yield frame(api_error(error).body())
    yield DONE


async def _not_repeated(items: AsyncGenerator[_T, None]) -> AsyncGenerator[_T, None]:
    """Yield ``items``; an error after the first one tells clients not to ask again."""
    began = False
    async with aclosing(items):
        try:
            async for item in items:
                began = True
                yield item
        except Exception as error:
            if not began:
                raise
            raise error_after_output(error) from error


async def _whole_chat(chunks: AsyncGenerator[ChatChunk, None]) -> AsyncGenerator[bytes, None]:
    completion = ChatCompletion()
    async with aclosing(chunks):
        async for chunk in chunks:
            completion.add(chunk)
    yield encode(completion.body())


async def _frames(events: AsyncGenerator[ResponseEvent, None]) -> AsyncGenerator[bytes, None]:
    """Yield a stream; the event ``response.failed`` has told the client of an error."""
    began = False
    async with aclosing(events):
        try:
            async for event in events:
                began = True
                yield frame(event, event["type"])
        except Exception as error:
            if not began:
                raise
            _log(error)


async def _whole(events: AsyncGenerator[ResponseEvent, None]) -> AsyncGenerator[bytes, None]:
    response = None
    async with aclosing(events):
        async for event in events:
            response = event.get("response", response)
    yield encode(response or {})


def _streaming(request: Request, chunks: AsyncGenerator[bytes, None]) -> Response:
    return StreamResponse(
        chunks,
        media_type=SSE,
        keepalive=KEEPALIVE[SSE],
        stall=settings_of(request).limits.stall,
        on_error=_error_response,
    )


def _at_the_end(request: Request, chunks: AsyncGenerator[bytes, None]) -> Response:
    """Return a response of one chunk; the run is cancelled if the client does not wait for it."""
    stall = settings_of(request).limits.stall
    return StreamResponse(chunks, media_type=JSON, stall=stall, on_error=_error_response)


def _check_model(request: Request, model: str) -> None:
    """Refuse a model that is not the agent."""
    name = settings_of(request).name
    if model != name:
        message = f"The model {model!r} does not exist: this server has {name!r}"
        raise ApiError(404, message, code="model_not_found", param="model")


def _shown(request: Request) -> Shown:
    return Shown(tools=settings_of(request).show_tools)


def _asker(request: Request) -> Asker:
    caller = caller_of(request)
    return Asker(caller.user, caller.tenant, deps_of(request))


def _repeated(body: ResponseRequest) -> dict[str, object]:
    """Return the fields of a request that its response repeats."""
    conversation = body.conversation_id
    return {
        "instructions": body.instructions,
        "metadata": body.metadata or {},
        "previous_response_id": body.previous_response_id,
        "conversation": None if conversation is None else {"id": conversation},
        "store": body.store is not False,
    }


def _with_errors(
    endpoint: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    """Return ``endpoint`` with its errors in OpenAI's form."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            return _error_response(error)

    return answer


def _error_response(error: Exception) -> Response:
    if isinstance(error, HttpError):
        status = 400 if error.status == 422 else error.status
        known, headers = ApiError(status, error.message, code=error.type), error.headers
    else:
        known = api_error(error)
        headers = known.headers
    if known.status == 500:
        _log(error)
    return JSONResponse(known.body(), known.status, headers=headers)


def _log(error: Exception) -> None:
    logger.warning("A request failed", exc_info=error)
