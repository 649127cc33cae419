"""Errors of the library as HTTP errors."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from agent_brain.common.secrets import get_logger, scrub
from agent_brain.errors import (
    AgentBrainError,
    BrainUseError,
    DecisionError,
    LeaseHeldError,
    LLMError,
    MemoryBusyError,
    ResumeError,
    SessionBusyError,
    SessionConflictError,
    SessionNotFoundError,
    SessionsClosedError,
    StepNotFoundError,
    TooManySessionsError,
)
from agent_brain.serving.web.requests import HttpError

logger = get_logger(__name__)

# The first class that fits: more special ones come first.
_STATUS: list[tuple[type[Exception], int, str]] = [
    (SessionNotFoundError, 404, "session_not_found"),
    (StepNotFoundError, 404, "step_not_found"),
    (SessionBusyError, 409, "session_busy"),
    (MemoryBusyError, 409, "session_busy"),
    (SessionConflictError, 409, "session_busy"),
    (LeaseHeldError, 409, "session_busy"),
    (DecisionError, 400, "invalid_request"),
    (ResumeError, 409, "nothing_to_resume"),
    (SessionsClosedError, 503, "stopping"),
    (TooManySessionsError, 429, "too_many_sessions"),
    (BrainUseError, 400, "invalid_request"),
    (LLMError, 502, "model_error"),
    (AgentBrainError, 500, "agent_error"),
]


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
    http = as_http_error(error)
    body = http.body()
    if path.startswith("/v1/"):
        body["error"] |= {"param": None, "code": http.type}
    return JSONResponse(body, http.status, headers=http.headers)
