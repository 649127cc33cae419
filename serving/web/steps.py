"""The kept steps of sessions over HTTP: what happened, what a model saw, copies, differences."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated, Any, TypeAlias, TypeVar

from anyio import to_thread
from pydantic import BaseModel, Field, JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent_brain.common.text import clean_json
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.sessions.reading import Side, compare, memory_at, side_of
from agent_brain.memories.sessions.timeline import Part, find_part, read_last_parts, read_parts
from agent_brain.memories.store.session import Session as StoredSession
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.memories.wrapper import WrappingMemory, offers
from agent_brain.recording.places import Places, parts_of_run
from agent_brain.recording.step_data import describe_details, describe_message, describe_part
from agent_brain.serving.catalog import info_data
from agent_brain.serving.forking import NO_STEPS, no_step
from agent_brain.serving.session import Session
from agent_brain.serving.web.requests import (
    Endpoints,
    HttpError,
    owner_args,
    sessions_of,
    use_session,
)
from agent_brain.serving.web.routes import ONE, Body, created
from agent_brain.serving.web.views import describe_difference, describe_origin

T = TypeVar("T")
ENDPOINTS = Endpoints()
STEP = f"{ONE}/steps/{{step}}"
Few: TypeAlias = Annotated[T, Field(max_length=100)]
StepNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**53)]
UNDER_WAY = "now"
"""In place of a number: what happened after the last step that is kept."""


class StepsQuery(BaseModel):
    """The query of ``GET /sessions/{id}/steps``."""

    before: StepNumber | None = None
    after: StepNumber | None = None
    limit: int = Field(50, ge=1, le=200)


class CompareQuery(BaseModel):
    """The query of ``GET /sessions/{id}/compare``."""

    other: str = Field(alias="with", min_length=1, description="The ID of the other session.")
    step: StepNumber | None = None
    with_step: StepNumber | None = None


class ForkSession(Body):
    """The body of ``POST /sessions/{id}/fork``."""

    step: StepNumber = Field(description="The number of the step that is copied last.")
    messages: Few[dict[str, str]] = Field(
        default={}, description="New texts of messages in the copy, by ID."
    )
    calls: Few[dict[str, dict[str, JsonValue]]] = Field(
        default={}, description="New arguments of calls that run next in the copy, by ID."
    )


class BranchSession(Body):
    """The body of ``POST /sessions/{id}/branches``."""

    message: str = Field(description="The ID of the message of a user.")
    text: str | None = Field(
        default=None, description="What it says in the branch; without it, it is answered again."
    )


@ENDPOINTS.add("GET", f"{ONE}/steps")
async def list_steps(request: Request, query: StepsQuery) -> Response:
    """List the kept steps of a session: the last ones, or those before or after a step."""
    before, after, limit = query.before, query.after, query.limit
    if before is not None and after is not None:
        raise HttpError(422, "invalid_request", "Give before or after, not both")
    async with use_session(request) as session:
        stored, places = _kept(session), Places(session.brain.net)
        if after is None:
            parts, more = await read_last_parts(stored.journal, stored.key, limit, before=before)
        else:
            parts, more = await _parts_after(stored, after, limit)
        body = {
            "id": session.id,
            "title": session.info.title if session.info is not None else None,
            "status": session.status,
            "origin": describe_origin(session.info),
            "steps": [describe_part(part, places) for part in parts],
            "more": more,
        }
        return JSONResponse(body)


@ENDPOINTS.add("GET", STEP)
async def read_step(request: Request) -> Response:
    """Return all that happened in a step."""
    async with use_session(request) as session:
        stored = _kept(session)
        part = await _part(request, session, stored)
        return JSONResponse(await describe_details(part, Places(session.brain.net), stored))


@ENDPOINTS.add("GET", f"{STEP}/net.svg", media=["image/svg+xml"])
async def draw_step(request: Request) -> Response:
    """Draw the net with the way that the run had taken after a step."""
    async with use_session(request) as session:
        stored = _kept(session)
        part = await _part(request, session, stored)
        step = part.step or part.before
        parts = [] if step is None else await parts_of_run(stored.journal, stored.key, step.number)
        net = session.brain.net
        drawn = net.to_svg(Places(net).way(parts))
        return Response(drawn, media_type="image/svg+xml", headers={"cache-control": "no-store"})


@ENDPOINTS.add("GET", f"{STEP}/model-calls")
async def read_model_calls(request: Request) -> Response:
    """Return the recorded model calls of a step; without any, what the memory showed a model."""
    async with use_session(request) as session:
        part = await _part(request, session, _kept(session))
        before = part.before
        if before is None or part.begins_run:  # no state was run
            return JSONResponse({"model_calls": [], "context": None})
        calls = await _model_calls(session, part)
        body = {
            "model_calls": await to_thread.run_sync(_described, calls),
            "context": None if calls else await _context(session, before.number),
        }
        return await to_thread.run_sync(JSONResponse, body)


@ENDPOINTS.add("POST", f"{ONE}/fork", status=201)
async def fork_session(request: Request, body: ForkSession) -> Response:
    """Copy a session as of a step into a new session, with changes."""
    async with use_session(request) as session:
        _kept(session)
    info = await sessions_of(request).fork(
        request.path_params["session"],
        body.step,
        messages=body.messages,
        calls=body.calls,
        **owner_args(request),
    )
    return created(request, info.id, info_data(info))


@ENDPOINTS.add("POST", f"{ONE}/branches", status=201)
async def branch_session(request: Request, body: BranchSession) -> Response:
    """Take the turn of a message another way, in a new session that is a branch of the chat."""
    async with use_session(request) as session:
        _kept(session)
    info = await sessions_of(request).branch(
        request.path_params["session"], body.message, body.text, **owner_args(request)
    )
    return created(request, info.id, info_data(info))


@ENDPOINTS.add("GET", f"{ONE}/compare")
async def compare_sessions(request: Request, query: CompareQuery) -> Response:
    """Tell where two sessions part, and how their states differ."""
    sides: list[Side] = []
    names: list[dict[str, Any]] = []
    first, other = (request.path_params["session"], query.step), (query.other, query.with_step)
    for session, number in (first, other):
        async with sessions_of(request).use(session, **owner_args(request)) as opened:
            sides.append(await _side(opened, number))
            title = opened.info.title if opened.info is not None else None
            names.append({"id": opened.id, "title": title, "step": number})
    return JSONResponse(describe_difference(compare(*sides), names))


def _kept(session: Session) -> StoredSession:
    stored = session.kept
    if stored is None:
        raise HttpError(409, "no_steps", NO_STEPS)
    return stored


async def _parts_after(stored: StoredSession, after: int, limit: int) -> tuple[list[Part], bool]:
    """Return the parts after a step, and whether there are more behind them."""
    found: list[Part] = []
    async with aclosing(read_parts(stored.journal, stored.key, after=after)) as parts:
        async for part in parts:
            if len(found) == limit:
                return found, True
            found.append(part)
    return found, False


async def _part(request: Request, session: Session, stored: StoredSession) -> Part:
    """Return the part of a session that the path names.

    Raises:
        HttpError: No step is under way.
        StepNotFoundError: There is none.
    """
    name = request.path_params["step"]
    if name == UNDER_WAY:
        parts, _ = await read_last_parts(stored.journal, stored.key, 1)
        if parts and parts[-1].step is None:
            return parts[-1]
        raise HttpError(404, "step_not_found", "No step is under way")
    if not (name.isascii() and name.isdecimal() and len(name) < 16):
        raise no_step(session.id, name)
    return await _numbered_part(session, stored, name)


async def _numbered_part(session: Session, stored: StoredSession, number: int | str) -> Part:
    part = await find_part(stored.journal, stored.key, int(number))
    if part is None:
        raise no_step(session.id, number)
    return part


async def _model_calls(session: Session, part: Part) -> list[RecordedCall]:
    """Return the model calls that were recorded in a part of a session."""
    memory = session.memory
    if not (isinstance(memory, StoredMemory | WrappingMemory) and offers(memory, "model_calls")):
        return []
    if part.step is not None:
        return await memory.model_calls(step=part.step)
    since = 0 if part.before is None else part.before.number
    return [call for call in await memory.model_calls() if call.number > since]


def _described(calls: list[RecordedCall]) -> list[Any]:
    found: list[Any] = clean_json([call.to_dict() for call in calls])
    return found


async def _context(session: Session, number: int) -> list[dict[str, Any]] | None:
    """Return what the memory shows a model as of a step; None if it cannot tell."""
    memory = session.memory
    if not (isinstance(memory, StoredMemory | WrappingMemory) and offers(memory, "as_of")):
        return None
    try:
        earlier = await memory.as_of(number)
    except MemoryUseError:  # a memory of a user's own cannot
        return None
    shown = await earlier.context()
    return await to_thread.run_sync(lambda: [*map(describe_message, shown)])  # may be thousands


async def _side(session: Session, number: int | None) -> Side:
    stored = _kept(session)
    step = None
    if number is not None:
        step = (await _numbered_part(session, stored, number)).step
    return await side_of(await memory_at(stored.journal, stored.key, step))
