"""What is known about the caller over HTTP: facts, corrections, forgetting, an export."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agent_brain.memories.errors import JournalError, LeaseHeldError, MemoryUseError
from agent_brain.memories.user.facts import MOST_LETTERS, Fact, Status
from agent_brain.memories.user.user_memory import UserMemory
from agent_brain.serving.sessions import owner_of
from agent_brain.serving.web.requests import (
    Endpoints,
    HttpError,
    owner_args,
    sessions_of,
)
from agent_brain.serving.web.routes import Body

ENDPOINTS = Endpoints()
FACT = "/user/facts/{fact}"
ORDER: tuple[Status, ...] = ("current", "planned", "claim", "replaced", "ended")


class FactsQuery(BaseModel):
    """The query of ``GET /user``."""

    limit: int = Field(100, ge=1, le=500)
    after: str | None = None


class CorrectFact(Body):
    """The body of ``PATCH /user/facts/{id}``."""

    text: Annotated[str, Field(min_length=1, max_length=MOST_LETTERS, pattern=r"\S")]


class Forget(Body):
    """The body of ``POST /user/forget``: one choice, as for :meth:`UserMemory.forget`."""

    text: str | None = Field(default=None, description="Whatever contains this text.")
    slot: str | None = None
    about: str | None = None
    conversation: str | None = None
    everything: bool = Field(
        default=False, strict=True, description="All facts, blocks and sessions."
    )


@ENDPOINTS.add("GET", "/user")
async def read_user(request: Request, query: FactsQuery) -> Response:
    """List what is known about the caller: current facts first, the newest first, and blocks."""
    limit, after = query.limit, query.after
    async with _known(request) as known:
        found = await known.facts(status="all")
        facts = [fact for status in ORDER for fact in found[::-1] if fact.status == status]
        if after is not None:
            at = next((n for n, fact in enumerate(facts, 1) if fact.id == after), None)
            if at is None:
                raise HttpError(
                    422, "invalid_request", f"after={after[:100]!r} is not the ID of a fact"
                )
            facts = facts[at:]
        body = {
            "facts": [_described(fact) for fact in facts[:limit]],
            "next": facts[limit - 1].id if len(facts) > limit else None,
            "blocks": [block.model_dump(mode="json") for block in await known.blocks()],
        }
    return JSONResponse(body)


@ENDPOINTS.add("GET", FACT)
async def read_fact(request: Request) -> Response:
    """Return a fact with those that it replaced and that replaced it, oldest first."""
    async with _known(request) as known:
        chain = await known.history((await _fact(request, known)).id)
    return JSONResponse({"facts": [_described(fact) for fact in chain]})


@ENDPOINTS.add("PATCH", FACT)
async def correct_fact(request: Request, body: CorrectFact) -> Response:
    """Replace a fact by what the caller says."""
    async with _known(request) as known:
        new = await known.correct((await _fact(request, known)).id, body.text)
    return JSONResponse(_described(new))


@ENDPOINTS.add("DELETE", FACT)
async def forget_fact(request: Request) -> Response:
    """Forget a fact, and the messages that it rests on, in all sessions of the caller."""
    async with _known(request) as known:
        fact = await _fact(request, known)
    return await _forget(request, {"fact_id": fact.id})


@ENDPOINTS.add("POST", "/user/forget")
async def forget_user(request: Request, body: Forget) -> Response:
    """Forget facts and what they rest on: by a text, a slot, a person, a conversation, or all."""
    return await _forget(request, body.model_dump(exclude_defaults=True))


@ENDPOINTS.add("GET", "/user/export")
async def export_user(request: Request) -> Response:
    """Return what is known about the caller as a file of JSON."""
    async with _known(request) as known:
        exported = await known.export()
    headers = {"content-disposition": 'attachment; filename="user.json"'}
    return JSONResponse(exported, headers=headers)


@asynccontextmanager
async def _known(request: Request) -> AsyncIterator[UserMemory]:
    sessions, whose = sessions_of(request), owner_args(request)
    if not sessions.knows_users:
        raise HttpError(404, "no_user_memory", "This server keeps nothing about its users")
    if owner_of(**whose) is None:
        raise HttpError(403, "no_user", "Nothing is kept about callers who are not identified")
    try:
        async with sessions.known(**whose) as known:
            yield known
    except MemoryUseError as error:
        raise HttpError(422, "invalid_request", str(error)) from None


async def _fact(request: Request, known: UserMemory) -> Fact:
    name = request.path_params["fact"]
    for fact in await known.facts(status="all"):
        if fact.id == name:
            return fact
    raise HttpError(404, "fact_not_found", f"No fact has the ID {name[:100]!r}")


async def _forget(request: Request, choice: dict[str, Any]) -> Response:
    async with _known(request):  # it says who may not
        try:
            count = await sessions_of(request).forget_known(**choice, **owner_args(request))
        except JournalError as error:
            if isinstance(error.__cause__, LeaseHeldError):
                raise HttpError(409, "session_busy", str(error), {"retry-after": "1"}) from None
            raise
    return JSONResponse({"forgotten": count})


def _described(fact: Fact) -> dict[str, Any]:
    return fact.model_dump(mode="json")
