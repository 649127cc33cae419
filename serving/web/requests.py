"""Requests and the errors they are answered with: endpoints, who asks, and what the body says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice
from typing import Any, TypeVar, get_type_hints

import anyio
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from agent_brain import errors
from agent_brain.common.ids import request_id
from agent_brain.common.secrets import get_logger, scrub
from agent_brain.common.text import shorten
from agent_brain.common.values import error_lines
from agent_brain.serving.access import Caller
from agent_brain.serving.session import Session
from agent_brain.serving.sessions import Sessions
from agent_brain.serving.web.settings import WebSettings

MAX_PROBLEMS = 5  # named in an error
MANY_PROBLEMS = 1000
MAX_TOKENS = 500  # of all of them
BodyT = TypeVar("BodyT", bound=BaseModel)
HandlerT = TypeVar("HandlerT", bound=Callable[..., Awaitable[Response]])
logger = get_logger(__name__)
# The first class that fits: more special ones come first.
_STATUS: list[tuple[type[Exception], int, str]] = [
    (errors.SessionNotFoundError, 404, "session_not_found"),
    (errors.StepNotFoundError, 404, "step_not_found"),
    (errors.SessionBusyError, 409, "session_busy"),
    (errors.MemoryBusyError, 409, "session_busy"),
    (errors.SessionConflictError, 409, "session_busy"),
    (errors.LeaseHeldError, 409, "session_busy"),
    (errors.DecisionError, 400, "invalid_request"),
    (errors.ResumeError, 409, "nothing_to_resume"),
    (errors.SessionsClosedError, 503, "stopping"),
    (errors.TooManySessionsError, 429, "too_many_sessions"),
    (errors.BrainUseError, 400, "invalid_request"),
    (errors.LLMError, 502, "model_error"),
    (errors.AgentBrainError, 500, "agent_error"),
]


@dataclass(eq=False)
class HttpError(Exception):
    """An error that is answered with a status and JSON.

    Attributes:
        status: The HTTP status.
        type: The type of the error, such as ``"session_not_found"``.
        message: What is wrong, for people.
        headers: Further headers.
        code: A name for programs, where the protocol has one beside the type.
        param: The field of the request that is wrong, likewise.
    """

    status: int
    type: str
    message: str
    headers: dict[str, str] = field(default_factory=dict)
    _: KW_ONLY
    code: str | None = None
    param: str | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def body(self) -> dict[str, Any]:
        """Return it as JSON."""
        told = {"type": self.type, "message": self.message, "request_id": request_id.get()}
        return {"error": told}


async def read_json(request: Request, model: type[BodyT]) -> BodyT:
    """Return the JSON body of a request; an empty one is ``{}`` where no field is required.

    Raises:
        HttpError: It is not JSON (400), too slow (408), too large (413), of another content type
            (415), or not what the model describes (422).
    """
    body = await _read_body(request)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and content_type != "application/json" and not content_type.endswith("+json"):
        raise HttpError(415, "unsupported_media_type", "Send JSON: Content-Type: application/json")
    required = any(field.is_required() for field in model.model_fields.values())
    try:
        return model.model_validate_json(body if body or required else b"{}")
    except ValidationError as error:
        raise invalid_json(error) from None


def invalid_json(error: ValidationError) -> HttpError:
    """Return what to answer to JSON that is not valid."""
    count = error.error_count()
    if count > MANY_PROBLEMS:  # to describe all of them would take seconds
        return HttpError(422, "invalid_request", f"{count} values are not what they must be")
    problems = shorten("; ".join(islice(error_lines(error), MAX_PROBLEMS)), MAX_TOKENS)
    if error.errors()[0]["type"] == "json_invalid":
        return HttpError(400, "invalid_json", f"This is not JSON: {problems}")
    return HttpError(422, "invalid_request", problems)


def read_query(request: Request, model: type[BodyT]) -> BodyT:
    """Return the query of a request.

    Raises:
        HttpError: It is not what the model describes (422).
    """
    try:
        return model.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise invalid_json(error) from None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A handler of requests, and what the description of the server says of it.

    Attributes:
        method: The HTTP method.
        path: The path, with parameters.
        handler: Takes the request, and ``body`` and ``query``, of the models that it names.
        status: The status of success.
        media: The content types of a success.
        headers: The headers that it reads.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Response]]
    status: int = 200
    media: Sequence[str] = ("application/json",)
    headers: Sequence[str] = ()

    @property
    def models(self) -> dict[str, type[BaseModel]]:
        """The models of ``body`` and ``query``, if the handler takes them."""
        hints = get_type_hints(self.handler)
        return {name: hints[name] for name in ("body", "query") if name in hints}

    @property
    def route(self) -> Route:
        """The route, for Starlette."""
        handler, models = self.handler, self.models

        async def answer(request: Request) -> Response:
            read: dict[str, Any] = {}
            if "body" in models:
                read["body"] = await read_json(request, models["body"])
            if "query" in models:
                read["query"] = read_query(request, models["query"])
            return await handler(request, **read)

        return Route(self.path, answer, methods=[self.method])


class Endpoints(list[Endpoint]):
    """Endpoints, in the order in which they are looked for."""

    def add(self, method: str, path: str, **about: Any) -> Callable[[HandlerT], HandlerT]:
        """Return a decorator that adds a handler; ``about`` is as for :class:`Endpoint`."""

        def decorate(handler: HandlerT) -> HandlerT:
            self.append(Endpoint(method, path, handler, **about))
            return handler

        return decorate


async def _read_body(request: Request) -> bytes:
    limits = settings_of(request).limits
    too_large = HttpError(413, "body_too_large", f"The body has more than {limits.max_body} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limits.max_body:
        raise too_large
    body = bytearray()
    try:
        with anyio.fail_after(limits.body_timeout):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.max_body:
                    raise too_large
    except TimeoutError:
        message = f"The body took longer than {limits.body_timeout:g} seconds"
        raise HttpError(408, "request_timeout", message, {"connection": "close"}) from None
    except ClientDisconnect:
        raise HttpError(400, "disconnected", "The client left") from None
    return bytes(body)


def path_of(scope: Scope) -> str:
    """Return the path below that at which the application is mounted."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def settings_of(connection: HTTPConnection) -> WebSettings:
    """Return the settings of the application."""
    settings: WebSettings = connection.scope["agent_brain"]
    return settings


def sessions_of(connection: HTTPConnection) -> Sessions:
    """Return the sessions of the application."""
    return settings_of(connection).sessions


def caller_of(connection: HTTPConnection) -> Caller:
    """Return who asks."""
    caller: Caller = connection.scope["agent_brain.caller"]
    return caller


def deps_of(connection: HTTPConnection) -> Any:
    """Return the dependencies for a run that this request starts."""
    settings, caller = settings_of(connection), caller_of(connection)
    return caller if settings.make_deps is None else settings.make_deps(caller)


def owner_args(connection: HTTPConnection) -> dict[str, str | None]:
    """Return ``user`` and ``tenant`` for the methods of :class:`Sessions`."""
    caller = caller_of(connection)
    return {"user": caller.user, "tenant": caller.tenant}


def use_session(connection: HTTPConnection) -> AbstractAsyncContextManager[Session]:
    """Return the session that the path names, to be entered."""
    name: str = connection.path_params["session"]
    return sessions_of(connection).use(name, **owner_args(connection))


def as_http_error(error: Exception) -> HttpError:
    """Return the HTTP error for ``error``; one that is not ours is logged and not disclosed."""
    if isinstance(error, HttpError):
        return error
    for kind, status, type_ in _STATUS:
        if isinstance(error, kind):
            headers = {"retry-after": "1"} if status in (409, 429, 503) else {}
            return HttpError(status, type_, scrub(str(error)), headers)
    logger.error("A request failed", exc_info=error)
    return HttpError(500, "internal_error", "The server failed; its log says why")


def error_response(error: Exception, path: str = "") -> Response:
    """Return the response that describes ``error``; below ``/v1/`` as clients of OpenAI read it."""
    if path.startswith("/v1/"):
        from agent_brain.serving.web.openai.errors import api_error

        http: HttpError = api_error(error)
        if http.status == 500:
            logger.warning("A request failed", exc_info=error)
    else:
        http = as_http_error(error)
    return JSONResponse(http.body(), http.status, headers=http.headers)
