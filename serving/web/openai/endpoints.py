"""The endpoints of OpenAI's API. Needs the extra ``server``."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_brain.serving.event_log import SessionEvent
from agent_brain.serving.pending import request_in
from agent_brain.serving.web.openai.chat import ChatCompletion, ChatStream
from agent_brain.serving.web.openai.chat_request import ChatRequest, StreamOptions
from agent_brain.serving.web.openai.errors import (
    INVALID,
    ApiError,
    error_after_output,
    invalid,
)
from agent_brain.serving.web.openai.formats import format_options
from agent_brain.serving.web.openai.kept_responses import (
    UnkeptResponses,
    find_response,
    keep_limit,
    new_response_id,
)
from agent_brain.serving.web.openai.response_request import ResponseRequest
from agent_brain.serving.web.openai.responses import ResponseStream, WholeResponse
from agent_brain.serving.web.openai.session_runs import ResponseRun, session_of, unkept
from agent_brain.serving.web.openai.translate import Extension, OpenAITranslator, Shown, encode
from agent_brain.serving.web.requests import (
    deps_of,
    owner_args,
    read_json,
    sessions_of,
    settings_of,
)
from agent_brain.serving.web.streams import Answer, stream_answer

SESSION_HEADER = "x-session-id"
NEW = "new"


def routes() -> list[Route]:
    """Return the routes ``/v1/models``, ``/v1/chat/completions`` and ``/v1/responses``.

    The model is the name of the agent.
    """
    api = OpenAIApi()
    return [
        Route("/v1/models", api.list_models, methods=["GET"]),
        Route("/v1/models/{model:path}", api.describe_model, methods=["GET"]),
        Route("/v1/chat/completions", api.chat_completions, methods=["POST"]),
        Route("/v1/responses/{response}", api.retrieve, methods=["GET"]),
        Route("/v1/responses", api.responses, methods=["POST"]),
    ]


class OpenAIApi:
    """Answers requests of OpenAI's API."""

    def __init__(self) -> None:
        self._created = int(time.time())
        self._unkept = UnkeptResponses()

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
        opening = _chat_answer(request, body)
        return _answer(request, opening, stream=body.stream)

    async def responses(self, request: Request) -> Response:
        """Answer a request of the Responses API."""
        body = await read_json(request, ResponseRequest)
        _check_model(request, body.model)
        body.check()
        opening = self._response_answer(request, body)
        return _answer(request, opening, stream=body.stream)

    @asynccontextmanager
    async def _response_answer(
        self, request: Request, body: ResponseRequest
    ) -> AsyncIterator[Answer]:
        found = body.read_input()
        async with AsyncExitStack() as stack:
            session, run = await ResponseRun(request, body, found, self._unkept).begin(stack)
            response_id = new_response_id(session, run)
            stream = ResponseStream(
                response_id,
                body.model,
                shown=_shown(request, body.agent_brain),
                most_tokens=body.max_output_tokens,
                session=None if session is None else session.id,
                approved=found.approve,
                fields=body.repeated(),
            )
            try:
                yield Answer(run, stream, run)
            finally:
                if session is not None and stream.ended:
                    if session.kept is None:
                        failed = stream.failed_run
                        await self._unkept.ended(session, response_id, failed=failed)
                    else:  # its steps tell the rest
                        await keep_limit(session, response_id, stream.limit)

    async def retrieve(self, request: Request) -> Response:
        """Return a response that a session keeps, as it is recorded."""
        response_id = request.path_params["response"]
        if request.query_params.get("stream", "false") != "false":
            raise invalid("A stored response comes as a whole, not as a stream", "stream")
        why = "" if sessions_of(request).keeps_steps else ": the server has no journal"
        missing = ApiError(404, INVALID, f"Response with id {response_id!r} not found{why}.")
        async with session_of(request, response_id, missing) as (session, name):
            found = await find_response(session, name)
            if found is None:
                raise missing
            times = {"created_at": found.created_at}
            stream = ResponseStream(
                response_id,
                settings_of(request).name,
                shown=_shown(request, Extension()),
                session=session.id,
                approved=found.approved,
                fields={**found.fields, **times},
            )
            stream.limit = await found.limit(session, response_id)
            whole = WholeResponse()
            async with aclosing(found.events(session)) as events:
                async for event in events:
                    for part in stream.translate(event):
                        whole.add(part)
        body = whole.body()
        if body["status"] == "completed":
            body["completed_at"] = found.completed_at
        return Response(encode(body), media_type="application/json")


@asynccontextmanager
async def _chat_answer(request: Request, body: ChatRequest) -> AsyncIterator[Answer]:
    """Yield the answer to a request of Chat Completions, whose run has begun.

    The header ``X-Session-Id`` names the session that keeps the conversation, ``new`` a new one;
    without it the request holds all of the conversation.
    """
    said, deps, named = body.conversation(), deps_of(request), request.headers.get(SESSION_HEADER)
    if named is None:
        opening = unkept(request, said.history)
    else:
        opening = sessions_of(request).use(None if named == NEW else named, **owner_args(request))
    async with opening as session:
        options = format_options(session, body.response_format, "response_format")
        asked = None if named is None or session.run is not None else request_in(session.memory)
        if asked is None:
            run = session.stream(said.task, deps=deps, **options)
        else:
            decisions: Any = asked.decide(said.task.content)
            run = session.stream_resume(**decisions, deps=deps, **options)
        streaming = body.stream_options or StreamOptions()
        async with run:
            stream = ChatStream(
                f"chatcmpl-{secrets.token_hex(16)}",
                body.model,
                shown=_shown(request, body.agent_brain),
                most_tokens=body.max_completion_tokens or body.max_tokens,
                include_usage=bool(streaming.include_usage) or not body.stream,
                session=None if named is None else session.id,
            )
            yield Answer(run, stream, run)


def _answer(
    request: Request, opening: AbstractAsyncContextManager[Answer], *, stream: bool | None
) -> Response:
    """Return a response that streams an answer, or has it in one piece."""
    if stream:
        return stream_answer(request, opening)
    return stream_answer(request, _whole(opening), media_type="application/json")


@asynccontextmanager
async def _whole(opening: AbstractAsyncContextManager[Answer]) -> AsyncIterator[Answer]:
    async with opening as answer:
        assert isinstance(answer.frames, OpenAITranslator)
        yield replace(answer, frames=Whole(answer.frames))


class Whole:
    """An answer in one piece; an error after output tells clients not to ask again.

    Args:
        translator: Makes its parts.
    """

    def __init__(self, translator: OpenAITranslator) -> None:
        self._translator = translator
        self._answer = ChatCompletion() if isinstance(translator, ChatStream) else WholeResponse()
        self._begun = False

    def frames(self, item: SessionEvent) -> bytes:
        """Add up the parts."""
        for part in self._translator.translate(item.event):
            self._begun = True
            self._answer.add(part)
        return b""

    def failed(self, error: Exception, *, begun: bool) -> bytes:
        """Raise the error."""
        raise error_after_output(error) if self._begun else error

    @property
    def last(self) -> bytes:
        """The answer."""
        return encode(self._answer.body())

    @property
    def enough(self) -> bool:
        """Whether the run should be cancelled."""
        return self._translator.enough


def _check_model(request: Request, model: str) -> None:
    """Refuse a model that is not the agent."""
    name = settings_of(request).name
    if model != name:
        message = f"The model {model!r} does not exist: this server has {name!r}"
        raise ApiError(404, INVALID, message, code="model_not_found", param="model")


def _shown(request: Request, extension: Extension) -> Shown:
    return extension.over(Shown(tools=settings_of(request).show_tools))
