"""What a client sends to each server, and how it knows the chunks of text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Request = tuple[str, str, Any]  # method, path, body


@dataclass(frozen=True, slots=True)
class Stream:
    """A way to get a stream.

    Attributes:
        title: As the table names it.
        app: The module in ``apps``.
        marker: Is in each chunk of text once.
        request: Returns the request whose answer is the stream, for a task and the ID that
            ``before`` gave.
        once: A request whose answer has an ``id``, made once for each client.
        before: The same, made before each stream and measured with it.
    """

    title: str
    app: str
    marker: bytes
    request: Callable[[str, str], Request]
    once: Request | None = None
    before: Callable[[str], Request] | None = None
    id: str = "id"


def ag_ui(task: str, session: str) -> Request:
    body = {
        "threadId": session,
        "runId": "run",
        "state": {},
        "messages": [{"id": "one", "role": "user", "content": task}],
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    return "POST", "/ag-ui", body


def openai(task: str, session: str) -> Request:
    messages = [{"role": "user", "content": task}]
    body = {"model": "agent-brain", "stream": True, "messages": messages}
    return "POST", "/v1/chat/completions", body


def native(task: str, session: str) -> Request:
    return "POST", f"/sessions/{session}/runs", {"task": task}


def chat(task: str, session: str) -> Request:
    return "POST", "/chat", {"task": task, "thread": session}


def workflow(task: str) -> Request:
    return "POST", "/workflows/talk/run-nowait", {"start_event": {"task": task}}


def workflow_events(task: str, session: str) -> Request:
    return "GET", f"/events/{session}?after_sequence=-1", None


SESSION: Request = ("POST", "/sessions", {})
TEXT = b'data: {"text"'
DELTA = b"event: text_delta\n"
CONTENT = b'"delta":{"content":"t'

STREAMS = {
    "bare": Stream("bare Starlette, events", "bare", DELTA, native, once=SESSION),
    "ours": Stream("Agent Brain, events", "ours", DELTA, native, once=SESSION),
    "bare-openai": Stream("bare Starlette, OpenAI", "bare", CONTENT, openai),
    "ours-openai": Stream("Agent Brain, OpenAI", "ours", CONTENT, openai),
    "ours-ag-ui": Stream("Agent Brain, AG-UI", "ours", b"TEXT_MESSAGE_CONTENT", ag_ui),
    "pydantic-ai": Stream("pydantic-ai, AG-UI", "pydantic_ai", b"TEXT_MESSAGE_CONTENT", ag_ui),
    "langgraph": Stream("langgraph, FastAPI", "langgraph", TEXT, chat),
    "openai-agents": Stream("openai-agents, FastAPI", "openai_agents", TEXT, chat),
    "burr": Stream("burr, FastAPI", "burr", TEXT, chat),
    "workflows": Stream(
        "workflows, own server", "workflows", b'"token', workflow_events,
        before=workflow, id="handler_id",
    ),
}  # fmt: skip


def encoded(request: Request, port: int) -> bytes:
    """Return an HTTP request."""
    method, path, body = request
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: text/event-stream, application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content
