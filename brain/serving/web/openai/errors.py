"""Errors in OpenAI's form. Private."""

from __future__ import annotations

from typing import Any

from agent_brain.errors import (
    AgentBrainError,
    BrainUseError,
    ContextWindowError,
    LeaseHeldError,
    LLMBadRequestError,
    LLMConnectionError,
    LLMError,
    LLMQuotaError,
    LLMRateLimitError,
    LLMRefusalError,
    LLMServerError,
    LLMTimeoutError,
    MemoryBusyError,
    Refused,
    ResumeError,
    SessionBusyError,
    SessionConflictError,
    SessionNotFoundError,
    TooManySessionsError,
)
from agent_brain.request_id import request_id
from agent_brain.tools.secrets import scrub

INVALID = "invalid_request_error"
SERVER = "server_error"


class ApiError(Exception):
    """An error as OpenAI's API reports it.

    Attributes:
        status: The HTTP status.
        message: What was wrong, and what to do.
        type: The kind of error, such as ``"invalid_request_error"``.
        code: A name for programs, such as ``"model_not_found"``.
        param: The field of the request that was wrong.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = INVALID,  # noqa: A002 - the field's name
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.code = code
        self.param = param
        self.headers: dict[str, str] = {}

    def body(self) -> dict[str, Any]:
        """Return the JSON object of the error."""
        told = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": {**told, "request_id": request_id.get()}}


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return an error of status 400, for a request that cannot be answered as it is."""
    return ApiError(400, message, code=code, param=param)


def budget_error() -> ApiError:
    """Return the error for a run that a budget ended before it did anything."""
    quota = "insufficient_quota"
    return ApiError(429, "The budget is used up", type=quota, code=quota)


def api_error(error: Exception) -> ApiError:
    """Return ``error`` as OpenAI's API would report it, without secrets.

    The text of an error that is not the library's is left out: it may say anything.
    """
    if isinstance(error, ApiError):
        return error
    for kind, status, name, code in _KINDS:
        if isinstance(error, kind):
            return ApiError(status, scrub(str(error)), type=name, code=code)
    if isinstance(error, AgentBrainError):
        return ApiError(500, scrub(str(error)), type=SERVER, code=SERVER)
    return ApiError(500, f"The run failed: {type(error).__name__}", type=SERVER, code=SERVER)


def error_after_output(error: Exception) -> ApiError:
    """Return the error of a run that has done something, so that clients do not repeat it.

    OpenAI's clients send a request again after most errors, unless this header says no.
    Source: ``_should_retry`` in https://github.com/openai/openai-python
    """
    known = api_error(error)
    known.headers["x-should-retry"] = "false"
    return known


_KINDS: tuple[tuple[type[Exception], int, str, str], ...] = (  # the first that fits
    (ContextWindowError, 400, INVALID, "context_length_exceeded"),
    (LLMBadRequestError, 400, INVALID, "invalid_prompt"),
    (LLMRefusalError, 400, INVALID, "content_filter"),
    (Refused, 403, "permission_error", "refused"),
    (LLMQuotaError, 429, "insufficient_quota", "insufficient_quota"),
    (LLMRateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (LLMTimeoutError, 504, SERVER, "timeout"),
    (LLMConnectionError, 502, SERVER, "bad_gateway"),
    (LLMServerError, 502, SERVER, "bad_gateway"),
    (LLMError, 500, SERVER, SERVER),
    (MemoryBusyError, 409, INVALID, "session_busy"),
    (SessionBusyError, 409, INVALID, "session_busy"),
    (SessionConflictError, 409, INVALID, "session_busy"),
    (LeaseHeldError, 409, INVALID, "session_busy"),
    (SessionNotFoundError, 404, INVALID, "session_not_found"),
    (TooManySessionsError, 429, "rate_limit_error", "too_many_sessions"),
    (ResumeError, 400, INVALID, "nothing_to_resume"),
    (BrainUseError, 400, INVALID, "invalid_request"),
)
