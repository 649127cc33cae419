"""The sessions over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent_brain.memories.message import Attachment, Message
from agent_brain.serving.catalog import info_data
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun, WhenBusy
from agent_brain.serving.sessions import owner_of
from agent_brain.serving.web.requests import (
    Endpoints,
    HttpError,
    deps_of,
    owner_args,
    sessions_of,
    settings_of,
    use_session,
)
from agent_brain.serving.web.responses import NDJSON, SSE
from agent_brain.serving.web.streams import JSON, events_response, run_response
from agent_brain.serving.web.views import (
    describe_session,
    describe_usage,
)

ENDPOINTS = Endpoints()
ONE = "/sessions/{session}"
T = TypeVar("T")
Few: TypeAlias = Annotated[T, Field(max_length=1000)]  # millions would take seconds to refuse


class Body(BaseModel):
    """What the bodies of requests have in common: no unknown fields."""

    model_config = ConfigDict(extra="forbid")


class NewSession(Body):
    """The body of ``POST /sessions``."""


class SessionsQuery(BaseModel):
    """The query of ``GET /sessions``."""

    limit: int = Field(50, ge=1, le=200)
    after: str | None = None
    search: str = ""


class EventsQuery(BaseModel):
    """The query of ``GET /sessions/{id}/events``."""

    after: str | None = None


class RenameSession(Body):
    """The body of ``PATCH /sessions/{id}``."""

    title: Annotated[str, Field(min_length=1, max_length=1000)]


class UserMessage(Body):
    """A message of the user."""

    content: str = ""
    attachments: Few[list[Attachment]] = []

    def to_message(self) -> Message:
        """Return it as a message."""
        return Message.user(self.content, attachments=tuple(self.attachments))


class StartRun(Body):
    """The body of ``POST /sessions/{id}/runs``."""

    task: str | UserMessage
    detached: bool = Field(default=False, description="Whether the server drives the run.")
    when_busy: WhenBusy | None = None


class ResumeRun(Body):
    """The body of ``POST /sessions/{id}/resume``: decisions on what the run waits for."""

    approve: Few[list[str]] | Literal[True] | None = None
    deny: Few[dict[str, str]] | Few[list[str]] | None = None
    edit: Few[dict[str, dict[str, JsonValue]]] | None = None
    input: JsonValue = Field(
        default=None, description="The answer, or answers by the IDs of the questions."
    )
    detached: bool = False
    when_busy: WhenBusy | None = None

    def decisions(self) -> dict[str, Any]:
        """Return the decisions, as :meth:`Session.stream_resume` takes them."""
        return self.model_dump(include={"approve", "deny", "edit", "input"})


class SendMessage(UserMessage):
    """The body of ``POST /sessions/{id}/messages``."""


@ENDPOINTS.add("POST", "/sessions", status=201)
async def create_session(request: Request, body: NewSession) -> Response:
    """Make a session and return its ID."""
    async with sessions_of(request).use(None, **owner_args(request)) as session:
        return created(request, session.id, {"id": session.id})


def created(request: Request, session_id: str, body: Any) -> Response:
    """Return the response that describes a new session, and where it is."""
    place = f"{request.scope.get('root_path', '')}/sessions/{session_id}"
    return JSONResponse(body, 201, headers={"location": place})


@ENDPOINTS.add("GET", "/sessions")
async def list_sessions(request: Request, query: SessionsQuery) -> Response:
    """List the caller's sessions, the last changed first, and where the list continues."""
    found = await sessions_of(request).list(
        **owner_args(request), limit=query.limit + 1, after=query.after, search=query.search
    )
    listed = found[: query.limit]
    more = listed[-1].cursor if len(found) > query.limit else None
    return JSONResponse({"sessions": [info_data(info) for info in listed], "next": more})


@ENDPOINTS.add("PATCH", ONE)
async def rename_session(request: Request, body: RenameSession) -> Response:
    """Give a session another title."""
    info = await sessions_of(request).rename(
        request.path_params["session"], body.title, **owner_args(request)
    )
    return JSONResponse(info_data(info))


@ENDPOINTS.add("GET", ONE)
async def read_session(request: Request) -> Response:
    """Return the messages of a session, and what it does."""
    async with use_session(request) as session:
        chat = await sessions_of(request).chat(session.id, **owner_args(request))
        return JSONResponse(await describe_session(session, chat))


@ENDPOINTS.add("DELETE", ONE, status=204)
async def delete_session(request: Request) -> Response:
    """Delete a session and everything in it."""
    await sessions_of(request).delete(request.path_params["session"], **owner_args(request))
    return Response(status_code=204)


@ENDPOINTS.add("POST", f"{ONE}/runs", media=[SSE, NDJSON, JSON])
async def start_run(request: Request, body: StartRun) -> Response:
    """Run a task, and stream its events unless it is detached."""
    task = body.task if isinstance(body.task, str) else body.task.to_message()
    deps = deps_of(request)
    if body.detached:
        async with use_session(request) as session:
            return _accepted(
                session, await session.start(task, deps=deps, when_busy=body.when_busy)
            )
    return _stream(
        request, lambda session: session.stream(task, deps=deps, when_busy=body.when_busy)
    )


@ENDPOINTS.add("POST", f"{ONE}/resume", media=[SSE, NDJSON, JSON])
async def resume_run(request: Request, body: ResumeRun) -> Response:
    """Continue a run that waits or was interrupted."""
    chosen: Any = {**body.decisions(), "deps": deps_of(request), "when_busy": body.when_busy}
    if body.detached:
        async with use_session(request) as session:
            return _accepted(session, await session.start_resume(**chosen))
    return _stream(request, lambda session: session.stream_resume(**chosen))


@ENDPOINTS.add("GET", f"{ONE}/events", media=[SSE, NDJSON], headers=["Last-Event-ID"])
async def watch_events(request: Request, query: EventsQuery) -> Response:
    """Stream the events of all runs of a session."""
    media_type = _media_type(request, [SSE, NDJSON])
    if request.method == "HEAD":  # nobody would read the events
        return Response(media_type=media_type)
    after = request.headers.get("last-event-id") or query.after
    stall = settings_of(request).limits.stall
    return events_response(use_session(request), after=after, media_type=media_type, stall=stall)


@ENDPOINTS.add("POST", f"{ONE}/stop", status=202)
async def stop_run(request: Request) -> Response:
    """Stop the run of a session after its current step."""
    async with use_session(request) as session:
        current_run(session).stop()
        return JSONResponse({"status": "stopping"}, 202)


@ENDPOINTS.add("POST", f"{ONE}/cancel", status=202)
async def cancel_run(request: Request) -> Response:
    """Cancel the run of a session at once."""
    async with use_session(request) as session:
        current_run(session).cancel()
        return JSONResponse({"status": "cancelling"}, 202)


@ENDPOINTS.add("POST", f"{ONE}/messages", status=202)
async def send_message(request: Request, body: SendMessage) -> Response:
    """Send the run of a session a message."""
    async with use_session(request) as session:
        current_run(session).send(body.to_message())
        return JSONResponse({"status": "sent"}, 202)


@ENDPOINTS.add("GET", "/usage")
async def read_usage(request: Request) -> Response:
    """Return what the models of the caller's runs have used since the server was started."""
    sessions, owner = sessions_of(request), owner_of(**owner_args(request))
    if owner is None:
        return JSONResponse({"user": None, "used_up": None})
    used_up = sessions.ledger.used_up(user=owner)
    body = {
        "user": describe_usage(sessions.ledger.usage(user=owner)),
        "used_up": None if used_up is None else used_up.scope,
    }
    return JSONResponse(body)


def current_run(session: Session) -> SessionRun:
    """Return the run of a session.

    Raises:
        HttpError: It has none, or another process has it.
    """
    if session.run is not None:
        return session.run
    if session.elsewhere:
        message = (
            "Another process of the server has the run: send this until it reaches that one, or "
            "let all requests of a session reach the same process"
        )
        raise HttpError(409, "run_elsewhere", message, {"retry-after": "1"})
    raise HttpError(409, "no_run", "No run is active in this session")


def _accepted(session: Session, run: SessionRun) -> Response:
    body = {"session": session.id, "run_id": run.run_id, "after": run.after}
    return JSONResponse(body, 202)


def _stream(request: Request, start: Callable[[Session], SessionRun]) -> Response:
    """Answer with the events of an attached run, or with its result."""
    media_type = _media_type(request, [SSE, NDJSON, JSON])
    stall = settings_of(request).limits.stall
    return run_response(use_session(request), start, media_type=media_type, stall=stall)


def _media_type(request: Request, offered: list[str]) -> str:
    """Return the first of the accepted types that is offered, by the order of the header."""
    accepted = [
        part.partition(";")[0].strip().lower()
        for part in request.headers.get("accept", "*/*").split(",")
    ]
    for wanted in accepted:
        if wanted in offered:
            return wanted
        if wanted in ("*/*", "text/*", ""):
            return offered[0]
    raise HttpError(406, "not_acceptable", f"This can be sent as {', '.join(offered)}")
