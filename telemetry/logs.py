"""Records of runs for ``logging``, and where each record of a run comes from."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from agent_brain.common.ids import request_id
from agent_brain.common.secrets import get_logger
from agent_brain.errors import BrainDefinitionError
from agent_brain.states.hooks import (
    Hook,
    HookRequest,
    ModelRequest,
    ModelResponse,
    RunRequest,
    StateRequest,
    ToolRequest,
    ToolResponse,
)

FIELDS = ("run_id", "session", "tenant", "state", "step", "path")

_current: ContextVar[HookRequest | None] = ContextVar("agent_brain_log_place", default=None)


class RunFilter(logging.Filter):
    """Adds to every record the run and the HTTP request that it belongs to.

    The attributes are ``run_id``, ``session``, ``tenant``, ``state``, ``step`` and ``path``, and
    ``request_id``, which a server also sends as the header ``x-request-id``.

    Give it to handlers::

        handler.addFilter(RunFilter())
        handler.setFormatter(logging.Formatter("%(run_id)s %(state)s %(message)s"))

    The values are those of the run, if a state or a tool of a brain with the hook
    :class:`LogRuns` logs, or something that it calls; else None. ``step`` is the number of the
    step, ``path`` the names of the nets and branches around the state. Attributes that a record has
    already are left as they are. Drops no record.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes; return True."""
        request = _current.get()
        if not hasattr(record, "request_id"):
            record.request_id = request_id.get()
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, None if request is None else getattr(request, name))
        return True


class LogRuns(Hook):
    """A hook that logs runs, and lets :class:`RunFilter` know which run a record belongs to.

    Runs begin and end at ``INFO``; states, model calls and tool calls at ``DEBUG``. What failed is
    a ``WARNING``, with the class of the error. Each record has the attributes of
    :class:`RunFilter`. What users, models and tools say is not logged.

    Args:
        logger: Takes the records. Default: ``agent_brain.runs``.

    Raises:
        BrainDefinitionError: ``logger`` is not a logger.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        if logger is not None and not isinstance(logger, logging.Logger):
            raise BrainDefinitionError(
                f"LogRuns({logger!r}): pass a logger, such as logging.getLogger('my_agent')"
            )
        self._logger = logger or get_logger("agent_brain.runs")

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` writes to the same logger: a run then needs only one."""
        return isinstance(other, LogRuns) and other._logger is self._logger

    def __hash__(self) -> int:
        return hash(self._logger)

    def _log(self, level: int, request: HookRequest, text: str, *values: object) -> None:
        if self._logger.isEnabledFor(level):
            extra = {name: getattr(request, name) for name in FIELDS}
            self._logger.log(level, text, *values, extra=extra, stacklevel=2)

    def around(
        self, request: StateRequest | ModelRequest | ToolRequest
    ) -> AbstractContextManager[None]:
        """Return what makes the request known to :class:`RunFilter`."""
        return _Known(request)

    def before_run(self, request: RunRequest) -> None:
        """Log that a run begins or continues."""
        begins = "continues" if request.resumed else "begins"
        self._log(logging.INFO, request, "Run of %r %s", request.net, begins)

    def after_run(self, request: RunRequest, result: Any) -> None:
        """Log how a run has ended."""
        text = "Run of %r ended: %s, %d steps, %d tokens"
        counts = result.steps, result.usage.total_tokens
        self._log(logging.INFO, request, text, request.net, result.stop_reason, *counts)

    def on_run_error(self, request: RunRequest, error: Exception) -> None:
        """Log that a run failed."""
        self._log(logging.WARNING, request, "Run of %r failed: %s", request.net, _kind(error))

    def before_state(self, request: StateRequest) -> None:
        """Log that a state begins."""
        self._log(logging.DEBUG, request, "State %r begins", request.state)

    def after_state(self, request: StateRequest, next_state: str | None) -> None:
        """Log which state follows."""
        self._log(logging.DEBUG, request, "State %r ended, next: %s", request.state, next_state)

    def on_state_error(self, request: StateRequest, error: BaseException) -> None:
        """Log that a state failed or was left."""
        if isinstance(error, Exception):
            self._log(logging.WARNING, request, "State %r failed: %s", request.state, _kind(error))
        else:
            self._log(logging.DEBUG, request, "State %r was left", request.state)

    def before_model_call(self, request: ModelRequest) -> None:
        """Log which model is called."""
        count = len(request.messages)
        self._log(logging.DEBUG, request, "%s is sent %d messages", request.model, count)

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        """Log what a model call has used."""
        usage, calls = response.usage, len(response.actions)
        tokens = (0, 0) if usage is None else (usage.input_tokens, usage.output_tokens)
        text = "%s answered: %d tokens read, %d written, %d tool calls"
        self._log(logging.DEBUG, request, text, request.model, *tokens, calls)

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> None:
        """Log that an attempt failed, which another may follow."""
        text = "Attempt %d of %s failed: %s"
        self._log(logging.WARNING, request, text, request.attempt, request.model, _kind(error))

    def on_model_error(self, request: ModelRequest, error: Exception) -> None:
        """Log that a model call failed."""
        self._log(logging.WARNING, request, "Call of %s failed: %s", request.model, _kind(error))

    def before_tool_call(self, request: ToolRequest) -> None:
        """Log which tool is called."""
        action = request.action
        self._log(logging.DEBUG, request, "Tool %r is called, %s", action.name, action.id)

    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        """Log how a tool call has ended."""
        action = request.action
        if response.is_error:
            why = "an error" if response.exception is None else _kind(response.exception)
            text = "Tool %r failed, %s: %s"
            self._log(logging.WARNING, request, text, action.name, action.id, why)
        else:
            self._log(logging.DEBUG, request, "Tool %r returned, %s", action.name, action.id)


class _Known:
    """Makes a request known to :class:`RunFilter`."""

    __slots__ = ("_request", "_token")

    def __init__(self, request: HookRequest) -> None:
        self._request = request

    def __enter__(self) -> None:
        self._token = _current.set(self._request)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def _kind(error: BaseException) -> str:
    return type(error).__name__
