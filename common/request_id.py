"""The ID of the HTTP request that is being handled, for logs and errors."""

from __future__ import annotations

from contextvars import ContextVar

# Set for the task of a request and what it starts; a detached run keeps that of its start.
request_id: ContextVar[str | None] = ContextVar("agent_brain_request_id", default=None)
