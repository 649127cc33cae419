"""Errors in OpenAI's form."""

from __future__ import annotations

from typing import Any

from agent_brain import errors
from agent_brain.common.secrets import get_logger, scrub
from agent_brain.serving.web.requests import HttpError, as_http_error

logger = get_logger(__name__)

INVALID = "invalid_request_error"
SERVER = "server_error"


class ApiError(HttpError):
    """An error as OpenAI's API reports it, such as ``"model_not_found"``."""

    def body(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"error": {**super().body()["error"], "param": self.param, "code": self.code}}


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return an error of status 400, for a request that cannot be answered as it is."""
    return ApiError(400, INVALID, message, code=code, param=param)


def unsupported(param: str, why: str) -> ApiError:
    """Return an error for a value that this server cannot take."""
    return invalid(f"Unsupported value of {param!r}: {why}", param, "unsupported_parameter")


def budget_error() -> ApiError:
    """Return the error for a run that a budget ended before it did anything."""
    quota = "insufficient_quota"
    return ApiError(429, quota, "The budget is used up", code=quota)


def api_error(error: Exception) -> ApiError:
    """Return ``error`` as OpenAI's API would report it, without secrets.

    The text of an error that is not the library's is left out: it may say anything.
    """
    if isinstance(error, ApiError):
        return error
    for kind, status, name, code in _KINDS:
        if isinstance(error, kind):
            return ApiError(status, name, scrub(str(error)), code=code)
    if not isinstance(error, errors.AgentBrainError | HttpError):
        return ApiError(500, SERVER, f"The run failed: {type(error).__name__}", code=SERVER)
    http = as_http_error(error)
    if http.status >= 500 and http is not error:
        return ApiError(500, SERVER, http.message, http.headers, code=SERVER)
    name = {429: "rate_limit_error", 503: SERVER}.get(http.status, INVALID)
    status = 400 if http.status == 422 else http.status
    return ApiError(status, name, http.message, http.headers, code=http.type)


def log_failure(error: Exception) -> None:
    """Log an error of which the client does not get the text."""
    logger.warning("A request failed", exc_info=error)


def error_after_output(error: Exception) -> ApiError:
    """Return the error of a run that has done something, so that clients do not repeat it.

    OpenAI's clients send a request again after most errors, unless this header says no.
    Source: ``_should_retry`` in https://github.com/openai/openai-python
    """
    known = api_error(error)
    known.headers["x-should-retry"] = "false"
    return known


_KINDS: tuple[tuple[type[Exception], int, str, str], ...] = (  # the first that fits
    (errors.ContextWindowError, 400, INVALID, "context_length_exceeded"),
    (errors.LLMBadRequestError, 400, INVALID, "invalid_prompt"),
    (errors.LLMRefusalError, 400, INVALID, "content_filter"),
    (errors.Refused, 403, "permission_error", "refused"),
    (errors.LLMQuotaError, 429, "insufficient_quota", "insufficient_quota"),
    (errors.LLMRateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.LLMTimeoutError, 504, SERVER, "timeout"),
    (errors.LLMConnectionError, 502, SERVER, "bad_gateway"),
    (errors.LLMServerError, 502, SERVER, "bad_gateway"),
    (errors.LLMError, 500, SERVER, SERVER),
    (errors.DecisionError, 400, INVALID, "invalid_request"),
    (errors.ResumeError, 400, INVALID, "nothing_to_resume"),
)
