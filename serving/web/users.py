"""What is known about the caller over HTTP: facts, corrections, forgetting, an export."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent_brain.memories.errors import JournalError, LeaseHeldError, MemoryUseError
from agent_brain.memories.user.facts import MOST_LETTERS, Fact, Status
from agent_brain.memories.user.user_memory import UserMemory
from agent_brain.serving.sessions import owner_of
from agent_brain.serving.web.requests import (
    HttpError,
    owner_args,
    query_number,
    read_json,
    sessions_of,
)
from agent_brain.serving.web.routes import Body

LIMIT = 100  # facts in a list
ORDER: tuple[Status, ...] = ("current", "planned", "claim", "replaced", "ended")


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


async def read_user(request: Request) -> Response:
    """List what is known about the caller: current facts first, the newest first, and blocks."""
    limit = query_number(request, "limit", Annotated[int, Field(ge=1, le=500)]) or LIMIT
    after = request.query_params.get("after")
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


async def read_fact(request: Request) -> Response:
    """Return a fact with those that it replaced and that replaced it, oldest first."""
    async with _known(request) as known:
        chain = await known.history((await _fact(request, known)).id)
    return JSONResponse({"facts": [_described(fact) for fact in chain]})


async def correct_fact(request: Request) -> Response:
    """Replace a fact by what the caller says."""
    body = await read_json(request, CorrectFact)
    async with _known(request) as known:
        new = await known.correct((await _fact(request, known)).id, body.text)
    return JSONResponse(_described(new))


async def forget_fact(request: Request) -> Response:
    """Forget a fact, and the messages that it rests on, in all sessions of the caller."""
    async with _known(request) as known:
        fact = await _fact(request, known)
    return await _forget(request, {"fact_id": fact.id})


async def forget_user(request: Request) -> Response:
    """Forget facts and what they rest on: by a text, a slot, a person, a conversation, or all."""
    body = await read_json(request, Forget)
    return await _forget(request, body.model_dump(exclude_defaults=True))


async def export_user(request: Request) -> Response:
    """Return what is known about the caller as a file of JSON."""
    async with _known(request) as known:
        exported = await known.export()
    headers = {"content-disposition": 'attachment; filename="user.json"'}
    return JSONResponse(exported, headers=headers)


def routes() -> list[Route]:
    """Return the routes of what is known about users."""
    return [
        Route("/user", read_user, methods=["GET"]),
        Route("/user/export", export_user, methods=["GET"]),
        Route("/user/forget", forget_user, methods=["POST"]),
        Route("/user/facts/{fact}", read_fact, methods=["GET"]),
        Route("/user/facts/{fact}", correct_fact, methods=["PATCH"]),
        Route("/user/facts/{fact}", forget_fact, methods=["DELETE"]),
    ]


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
