"""Which session answers a request, and how its run begins."""

from __future__ import annotations

from collections import OrderedDict
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
from agent_brain.memories.store.session import Session as StoredSession
from agent_brain.one_run import RunOptions
from agent_brain.serving.catalog import approvals_key
from agent_brain.serving.forking import kept_by
from agent_brain.serving.pending import request_in
from agent_brain.serving.session import BUSY, Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.sessions import SessionKey
from agent_brain.serving.web.openai.chat_request import ChatRequest
from agent_brain.serving.web.openai.errors import ApiError, invalid
from agent_brain.serving.web.openai.formats import format_options
from agent_brain.serving.web.openai.kept_responses import (
    FIELDS,
    ResponseName,
    find_response,
    has_gone_on,
    read_response_id,
)
from agent_brain.serving.web.openai.messages import conversation
from agent_brain.serving.web.openai.response_request import ResponseInput, ResponseRequest
from agent_brain.serving.web.requests import deps_of, owner_args, sessions_of

SESSION_HEADER = "x-session-id"
NEW = "new"
MAX_KNOWN = 10_000  # sessions


@dataclass(frozen=True, slots=True)
class Answering:
    """A run that answers a request.

    Attributes:
        run: The run, not begun.
        session: The session; None if the conversation is not kept.
        approved: The calls that the request approves.
    """

    run: SessionRun
    session: Session | None = None
    approved: tuple[str, ...] = ()

    @property
    def session_id(self) -> str | None:
        """The ID of the session."""
        return None if self.session is None else self.session.id


@asynccontextmanager
async def answer_chat(request: Request, body: ChatRequest) -> AsyncIterator[Answering]:
    """Yield the run for a request of Chat Completions.

    The header ``X-Session-Id`` names the session that keeps the conversation, ``new`` a new one;
    without it the request holds all of the conversation.
    """
    said, deps, named = body.conversation(), deps_of(request), request.headers.get(SESSION_HEADER)
    if named is None:
        async with _unkept(request, said.history) as session:
            options = format_options(session, body.response_format, "response_format")
            yield Answering(session.stream(said.task, deps=deps, **options))
        return
    wanted = None if named == NEW else named
    async with sessions_of(request).use(wanted, **owner_args(request)) as session:
        options = format_options(session, body.response_format, "response_format")
        yield Answering(_next_run(session, said.task, deps, options), session)


def _unkept(request: Request, history: list[Message]) -> AbstractAsyncContextManager[Session]:
    return sessions_of(request).temporary(history, **owner_args(request))


def _key(session: Session) -> SessionKey:
    return SessionKey(session.owner, session.id)


def _next_run(session: Session, task: Message, deps: object, options: RunOptions) -> SessionRun:
    """Return a run of ``task``, or of the waiting run that ``task`` replies to."""
    asked = request_in(session.memory) if session.run is None else None
    if asked is None:
        return session.stream(task, deps=deps, **options)
    decisions: Any = asked.decide(task.content)
    return session.stream_resume(**decisions, deps=deps, **options)


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
        journal, key = self.kept.journal, approvals_key(self.kept.key)
        while True:
            entries: Any = await journal.read(key)
            _refuse_again(calls, self.approved, entries, asked)
            approved: list[JsonValue] = [*sorted(calls)]
            entry = Entry("approval", {"asked": asked, "calls": approved})
            try:
                await journal.append(key, [entry], expect=entries[-1].seq if entries else 0)
            except JournalConflictError:  # another copy was approved meanwhile
                continue
            return


class ResponseSessions:
    """Finds the session of a response.

    The ID of a response holds the ID of its session, which belongs to its user or cannot be
    guessed.
    """

    def __init__(self) -> None:
        # Of sessions without a journal, which keep no steps: what can be continued.
        self._newest: OrderedDict[SessionKey, set[str]] = OrderedDict()

    @asynccontextmanager
    async def answer(self, request: Request, body: ResponseRequest) -> AsyncIterator[Answering]:
        """Yield the run for a request."""
        found, deps = body.read_input(), deps_of(request)
        if body.store is False:
            said = conversation(_without_decisions(found), "input")
            history = _instructions(body.instructions) + said.history
            async with _unkept(request, history) as session:
                options = format_options(session, body.format, "text.format")
                yield Answering(session.stream(said.task, deps=deps, **options))
            return
        async with self._session(request, body) as (session, source):
            if session.run is not None and sessions_of(request).when_busy == "refuse":
                raise SessionBusyError(BUSY)
            try:
                run = await self._run(session, source, body, found, deps)
            except Exception:
                if source is not None:  # nobody knows the copy
                    await sessions_of(request).delete(session.id, **owner_args(request))
                raise
            yield Answering(run, session, tuple(found.approve))

    @asynccontextmanager
    async def _session(
        self, request: Request, body: ResponseRequest
    ) -> AsyncIterator[tuple[Session, ContinuedResponse | None]]:
        """Yield the session to record a response in, and of what response it is a new copy."""
        previous = body.previous_response_id
        if previous is None:
            async with sessions_of(request).use(body.conversation_id, **owner_args(request)) as new:
                yield new, None
            return
        missing = _no_response(previous)
        async with self.find(request, previous, missing) as (session, name):
            step = await self._left_at(session, name, previous)
            if step is None:
                yield session, None
                return
            source = ContinuedResponse(kept_by(session), await _approved_in(session))
        sessions, owner = sessions_of(request), owner_args(request)
        copy = await sessions.fork(session.id, step, user=owner["user"], tenant=owner["tenant"])
        async with sessions.use(copy.id, **owner) as session:
            yield session, source

    @asynccontextmanager
    async def find(
        self, request: Request, response_id: str, missing: ApiError
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

    async def _left_at(self, session: Session, name: ResponseName, previous: str) -> int | None:
        """Return the step to go on from in a copy; None if the session itself goes on."""
        if session.kept is None:
            newest = self._newest.get(_key(session))
            if newest is not None and previous not in newest:
                raise invalid(
                    f"{previous!r} is not the last response of its conversation, and this server "
                    "keeps no steps: give it a journal",
                    "previous_response_id",
                )
            return None
        found = await find_response(session, name)
        if found is None:
            raise _no_response(previous)
        if found.end is None:
            return None
        goes_on = session.run is None and not await has_gone_on(session, found.end)
        return None if goes_on else found.end.number

    async def _run(
        self,
        session: Session,
        source: ContinuedResponse | None,
        body: ResponseRequest,
        found: ResponseInput,
        deps: object,
    ) -> SessionRun:
        options = format_options(session, body.format, "text.format")
        if found.approve or found.deny:
            if found.messages:
                raise invalid("Answer the approvals alone, without a message", "input")
            decisions: Any = {"approve": found.approve or None, "deny": found.deny or None}
            await _approve_once(session, source, decisions)
            return session.stream_resume(**decisions, deps=deps, **options)
        said = conversation(found.messages, "input")
        if session.pending is None:
            async with session.exclusive():
                await _instruct(session.memory, body.instructions)
                if said.history:
                    await session.memory.update(said.history)
        kept = {FIELDS: body.repeated()} if session.kept is not None else {}
        task = said.task.model_copy(update={"metadata": {**said.task.metadata, **kept}})
        asked = request_in(session.memory) if session.run is None else None
        if asked is not None:
            await _approve_once(session, source, asked.decide(task.content))
        return _next_run(session, task, deps, options)

    def ended(self, session: Session, response_id: str, *, failed: bool) -> None:
        """Note that a response has ended, so that it is the one to continue.

        After one that failed, the one before can be continued too.
        """
        if session.kept is not None:  # its steps tell it
            return
        key = _key(session)
        known = self._newest.pop(key, set()) if failed else set()
        if known or not failed:
            self._newest[key] = known | {response_id}
        while len(self._newest) > MAX_KNOWN:
            self._newest.popitem(last=False)


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
        entries = await session.kept.journal.read(approvals_key(session.kept.key))
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
    here = (each.data["calls"] for each in entries if each.data["asked"] == asked)
    if again := sorted(calls & approved.union(*here)):
        raise invalid(
            f"The call {again[0]!r} has been approved before: it is not run again", "input"
        )


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
