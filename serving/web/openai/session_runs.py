"""Which session answers a request, and how its run begins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue
from starlette.requests import Request

from agent_brain.errors import SessionBusyError, SessionNotFoundError
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import JournalConflictError
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, Role
from agent_brain.memories.sessions.timeline import SavedStep
from agent_brain.memories.store.session import Session as StoredSession
from agent_brain.memories.store.session import responses_key
from agent_brain.run import Run
from agent_brain.serving.forking import kept_by
from agent_brain.serving.pending import request_in
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun, WhenBusy
from agent_brain.serving.web.openai.errors import ApiError, invalid
from agent_brain.serving.web.openai.formats import format_options
from agent_brain.serving.web.openai.kept_responses import (
    FIELDS,
    ResponseName,
    UnkeptResponses,
    find_response,
    has_gone_on,
    read_response_id,
)
from agent_brain.serving.web.openai.messages import Conversation, conversation
from agent_brain.serving.web.openai.response_request import ResponseInput, ResponseRequest
from agent_brain.serving.web.requests import deps_of, owner_args, sessions_of

_APPROVAL = "approval"  # the kind of an entry


def unkept(request: Request, history: list[Message]) -> AbstractAsyncContextManager[Session]:
    """Return a session for a request that holds all of the conversation."""
    return sessions_of(request).temporary(history, **owner_args(request))


@dataclass(frozen=True, slots=True)
class ContinuedResponse:
    """An earlier response, which is continued in copies of its session.

    Attributes:
        kept: Where its session keeps its steps.
        approved: The calls that were approved in its session.
    """

    kept: StoredSession
    approved: frozenset[str]

    async def approve(self, calls: set[str], asked: str) -> None:
        """Note that calls are approved in a copy.

        Args:
            calls: Their IDs.
            asked: The ID of the message that asks for them.

        Raises:
            ApiError: One was approved before, in the session or in another copy: it would run
                twice.
        """
        journal, key = self.kept.journal, responses_key(self.kept.key)
        while True:
            entries: Any = await journal.read(key)
            _refuse_again(calls, self.approved, entries, asked)
            approved: list[JsonValue] = [*sorted(calls)]
            entry = Entry(_APPROVAL, {"asked": asked, "calls": approved})
            try:
                await journal.append(key, [entry], expect=entries[-1].seq if entries else 0)
            except JournalConflictError:  # another copy was approved meanwhile
                continue
            return


class _GoneOnError(Exception):
    """A session has gone on since a response that ended with a step: a copy continues it."""


@asynccontextmanager
async def session_of(
    request: Request, response_id: str, missing: ApiError
) -> AsyncIterator[tuple[Session, ResponseName]]:
    """Yield the session of a response, and what the ID names.

    Raises:
        ApiError: ``missing``: the caller has no such session.
    """
    async with AsyncExitStack() as stack:
        try:
            if (name := read_response_id(response_id)) is None:
                raise missing
            opening = sessions_of(request).use(name.session, **owner_args(request))
            session = await stack.enter_async_context(opening)
        except SessionNotFoundError:
            raise missing from None
        if session.memory.control.run_id is None:  # the session has ended
            raise missing
        yield session, name


@dataclass(frozen=True, slots=True)
class ResponseRun:
    """The run for a request of the Responses API.

    The ID of a response holds the ID of its session, which belongs to its user or cannot be
    guessed.

    Attributes:
        request: The request.
        body: Its body.
        found: What the body says.
        unkept: The responses of sessions that keep no steps.
    """

    request: Request
    body: ResponseRequest
    found: ResponseInput
    unkept: UnkeptResponses

    async def begin(self, stack: AsyncExitStack) -> tuple[Session | None, SessionRun]:
        """Begin the run, in the session that is named, in a copy of it, or in one that is not kept.

        Args:
            stack: Keeps the session and the run.

        Returns:
            The session, if it is kept; and the run.
        """
        if self.body.store is not False:
            return await self._begin(stack)
        said = conversation(_without_decisions(self.found), "input")
        history = _instructions(self.body.instructions) + said.history
        session = await stack.enter_async_context(unkept(self.request, history))
        options = format_options(session, self.body.format, "text.format")
        run = session.stream(said.task, deps=deps_of(self.request), **options)
        return None, await stack.enter_async_context(run)

    async def _begin(self, stack: AsyncExitStack) -> tuple[Session, SessionRun]:
        request, body = self.request, self.body
        sessions, owner = sessions_of(request), owner_args(request)
        previous = body.previous_response_id
        if previous is None:
            opening = sessions.use(body.conversation_id, **owner)
            session = await stack.enter_async_context(opening)
            run = self._run(session)
            return session, await stack.enter_async_context(run)
        opened = session_of(request, previous, _no_response(previous))
        session, name = await stack.enter_async_context(opened)
        end = await self._end_of(session, name, previous)
        try:
            run = self._run(session, after=(name, end))
            return session, await stack.enter_async_context(run)
        except _GoneOnError as error:
            end, source = error.args
        except SessionBusyError:
            if end is None:
                raise
            source = ContinuedResponse(kept_by(session), frozenset())  # which waits for nothing
        await stack.aclose()
        whose: Any = owner
        copy = await sessions.fork(session.id, end.number, **whose)
        session = await stack.enter_async_context(sessions.use(copy.id, **owner))
        try:
            run = self._run(session, source=source)
            return session, await stack.enter_async_context(run)
        except Exception:  # nobody knows the copy
            await sessions.delete(session.id, **owner)
            raise

    async def _end_of(
        self, session: Session, name: ResponseName, previous: str
    ) -> SavedStep | None:
        """Return the step that a response ended with.

        Returns:
            The step; None while the response is in progress, and if the session keeps no steps.

        Raises:
            ApiError: The response is not found, or cannot be continued.
        """
        if session.kept is None:
            self.unkept.check(session, previous)
            return None
        found = await find_response(session, name)
        if found is None:
            raise _no_response(previous)
        return found.end

    def _run(
        self,
        session: Session,
        *,
        after: tuple[ResponseName, SavedStep | None] | None = None,
        source: ContinuedResponse | None = None,
    ) -> SessionRun:
        """Return the run for a request; what it needs is written when it is its turn.

        Args:
            session: The session that it runs in.
            after: The response that it continues, and the step that ended it, if it has ended. If
                the session has gone on by then, the run begins with a :class:`_GoneOnError`.
            source: The response that the session is a copy of.
        """
        body, found, deps = self.body, self.found, deps_of(self.request)
        options = format_options(session, body.format, "text.format")
        known = None if after else _read(session, found)
        previous = body.previous_response_id

        async def choose() -> tuple[Run[Any], Message | None]:
            if after is not None and previous is not None:
                await self._stay(session, after[0], previous)
            decisions, said = known or _read(session, found)
            if session.kept is None:
                await self.unkept.begin(session, previous)
            if decisions:
                await _approve_once(session, source, decisions)
                return session.brain.stream_resume(**decisions, deps=deps, **options), None
            assert said is not None
            await _instruct(session.memory, body.instructions)
            if said.history:
                await session.memory.update(said.history)
            kept = {FIELDS: body.repeated()} if session.kept is not None else {}
            task = said.task.model_copy(update={"metadata": {**said.task.metadata, **kept}})
            return session.brain.stream(task, deps=deps, **options), task

        when: WhenBusy | None = None
        if after is not None and (end := after[1]) is not None:
            # an approval that is being given is known at the end of its run
            when = "wait" if end.status == "waiting" else "refuse"
        return session.stream_chosen(choose, when_busy=when)

    async def _stay(self, session: Session, name: ResponseName, previous: str) -> None:
        """Raise a :class:`_GoneOnError` if a session has gone on since a response."""
        end = await self._end_of(session, name, previous)
        if end is not None and await has_gone_on(session, end):
            source = ContinuedResponse(kept_by(session), await _approved_in(session))
            raise _GoneOnError(end, source)


async def _approved_in(session: Session) -> frozenset[str]:
    """Return the calls that were approved in a session itself."""
    asked = session.memory.control.human_requests
    decided = {} if asked is None else asked.decisions
    approved = {call_id for call_id, decision in decided.items() if decision.approved}
    for message in await session.memory.dump():
        decision: Any = message.metadata.get("decision") or {}
        if decision.get("approved"):
            approved.add(message.tool_call_id or "")
    return frozenset(approved)


async def _approve_once(
    session: Session, source: ContinuedResponse | None, decisions: Mapping[str, Any]
) -> None:
    """Refuse calls that are approved elsewhere; note those that are approved in a new copy.

    In a copy all calls are decided at once, so that none waits there and in its session both.

    Raises:
        ApiError: A call was approved before, or the decisions leave one in a copy open.
    """
    given: dict[str, set[str]] = {
        name: set(decisions.get(name) or ()) for name in ("approve", "deny", "edit")
    }
    waiting: set[str] = {call.id for call in session.pending.calls} if session.pending else set()
    approved, decided = given["approve"] | given["edit"], set().union(*given.values())
    if not decided or not decided <= waiting:  # it will be refused
        return
    if source is not None and decided < waiting:
        raise invalid(
            "Several calls wait: from an earlier response, decide about all of them in one "
            "request, with an mcp_approval_response for each",
            "input",
        )
    asked = await _asking(session.memory, decided)
    if source is not None and approved:
        await source.approve(approved, asked)
    elif source is None and approved and session.kept is not None:
        entries = await session.kept.journal.read(responses_key(session.kept.key))
        _refuse_again(approved, frozenset(), entries, asked)


async def _asking(memory: Memory, calls: set[str]) -> str:
    """Return the ID of the message that asks for calls."""
    messages = reversed(await memory.dump())
    return next((m.id for m in messages if calls & {call.id for call in m.tool_calls}), "")


def _refuse_again(
    calls: set[str], approved: frozenset[str], entries: Sequence[Any], asked: str
) -> None:
    """Refuse calls that were approved in a session or in copies of it.

    Raises:
        ApiError: One was approved before: it would run twice.
    """
    here = (
        each.data["calls"]
        for each in entries
        if each.kind == _APPROVAL and each.data["asked"] == asked
    )
    if again := sorted(calls & approved.union(*here)):
        raise invalid(
            f"The call {again[0]!r} has been approved before: it is not run again", "input"
        )


def _read(session: Session, found: ResponseInput) -> tuple[dict[str, Any], Conversation | None]:
    """Return what a request decides in a run that waits, and what it says.

    Raises:
        ApiError: It does both, or there is no task.
        BrainUseError: What it says is not a reply to what the run waits for.
    """
    if found.approve or found.deny:
        if found.messages:
            raise invalid("Answer the approvals alone, without a message", "input")
        return {"approve": found.approve or None, "deny": found.deny or None}, None
    said = conversation(found.messages, "input")
    asked = request_in(session.memory) if session.run is None else None
    return {} if asked is None else asked.decide(said.task.content), said


def _without_decisions(found: ResponseInput) -> list[Message]:
    if found.approve or found.deny:
        raise invalid("An approval needs previous_response_id or conversation", "input")
    return found.messages


def _instructions(text: str | None) -> list[Message]:
    return [Message.system(text, metadata={_MARK: True})] if text else []


async def _instruct(memory: Memory, text: str | None) -> None:
    """Make ``text`` the instructions; those of earlier responses are not carried over."""
    known = [
        message
        for message in await memory.dump()
        if message.role is Role.SYSTEM and message.metadata.get(_MARK)
    ]
    if [message.content for message in known] == [text]:
        return
    delete: Any = getattr(memory, "delete", None)
    if known and delete is not None:
        await delete([message.id for message in known])
    if text:
        await memory.update(_instructions(text))


_MARK = "openai_instructions"


def _no_response(response_id: str) -> ApiError:
    return invalid(
        f"Previous response with id {response_id!r} not found.",
        "previous_response_id",
        "previous_response_not_found",
    )
