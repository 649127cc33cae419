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
from agent_brain.memories.sessions.history import SavedStep
from agent_brain.memories.store.session import Session as StoredSession
from agent_brain.memories.store.session import responses_key
from agent_brain.options import RunOptions
from agent_brain.run import Run
from agent_brain.serving.forking import kept_by
from agent_brain.serving.pending import request_in
from agent_brain.serving.session import Session, WhenBusy
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.openai.chat_request import ChatRequest
from agent_brain.serving.web.openai.errors import ApiError, invalid
from agent_brain.serving.web.openai.formats import format_options
from agent_brain.serving.web.openai.kept_responses import (
    FIELDS,
    ResponseName,
    find_response,
    has_gone_on,
    keep_limit,
    read_response_id,
)
from agent_brain.serving.web.openai.messages import Conversation, conversation
from agent_brain.serving.web.openai.response_request import ResponseInput, ResponseRequest
from agent_brain.serving.web.openai.responses import ResponseStream
from agent_brain.serving.web.openai.unkept import UnkeptResponses
from agent_brain.serving.web.requests import deps_of, owner_args, sessions_of

SESSION_HEADER = "x-session-id"
NEW = "new"
_APPROVAL = "approval"  # the kind of an entry


@dataclass(frozen=True, slots=True)
class Answering:
    """A run that answers a request.

    Attributes:
        run: The run, which has begun.
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
    """Yield the run for a request of Chat Completions, which has begun.

    The header ``X-Session-Id`` names the session that keeps the conversation, ``new`` a new one;
    without it the request holds all of the conversation.
    """
    said, deps, named = body.conversation(), deps_of(request), request.headers.get(SESSION_HEADER)
    if named is None:
        async with _unkept(request, said.history) as session:
            options = format_options(session, body.response_format, "response_format")
            async with session.stream(said.task, deps=deps, **options) as run:
                yield Answering(run)
        return
    wanted = None if named == NEW else named
    async with sessions_of(request).use(wanted, **owner_args(request)) as session:
        options = format_options(session, body.response_format, "response_format")
        async with _next_run(session, said.task, deps, options) as run:
            yield Answering(run, session)


def _unkept(request: Request, history: list[Message]) -> AbstractAsyncContextManager[Session]:
    return sessions_of(request).temporary(history, **owner_args(request))


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
    """A session has gone on since a response: a copy continues it."""

    def __init__(self, end: SavedStep, source: ContinuedResponse) -> None:
        super().__init__()
        self.end = end
        self.source = source


class ResponseSessions:
    """Finds the session of a response.

    The ID of a response holds the ID of its session, which belongs to its user or cannot be
    guessed.
    """

    def __init__(self) -> None:
        self._unkept = UnkeptResponses()

    @asynccontextmanager
    async def answer(self, request: Request, body: ResponseRequest) -> AsyncIterator[Answering]:
        """Yield the run for a request, which has begun."""
        found, deps = body.read_input(), deps_of(request)
        if body.store is False:
            said = conversation(_without_decisions(found), "input")
            history = _instructions(body.instructions) + said.history
            async with _unkept(request, history) as session:
                options = format_options(session, body.format, "text.format")
                async with session.stream(said.task, deps=deps, **options) as run:
                    yield Answering(run)
            return
        async with AsyncExitStack() as stack:
            session, run = await self._begin(stack, request, body, found, deps)
            yield Answering(run, session, tuple(found.approve))

    async def _begin(
        self,
        stack: AsyncExitStack,
        request: Request,
        body: ResponseRequest,
        found: ResponseInput,
        deps: object,
    ) -> tuple[Session, SessionRun]:
        """Begin the run for a request, in the session that it names or in a copy of it.

        ``stack`` keeps the session and the run.
        """
        sessions, owner = sessions_of(request), owner_args(request)
        previous = body.previous_response_id
        if previous is None:
            opening = sessions.use(body.conversation_id, **owner)
            session = await stack.enter_async_context(opening)
            run = self._run(session, body, found, deps)
            return session, await stack.enter_async_context(run)
        opened = self.find(request, previous, _no_response(previous))
        session, name = await stack.enter_async_context(opened)
        end = await self._end_of(session, name, previous)
        try:
            run = self._run(session, body, found, deps, after=(name, end))
            return session, await stack.enter_async_context(run)
        except _GoneOnError as error:
            end, source = error.end, error.source
        except SessionBusyError:
            if end is None:
                raise
            source = ContinuedResponse(kept_by(session), frozenset())  # which waits for nothing
        await stack.aclose()
        copy = await sessions.fork(
            session.id, end.number, user=owner["user"], tenant=owner["tenant"]
        )
        session = await stack.enter_async_context(sessions.use(copy.id, **owner))
        try:
            run = self._run(session, body, found, deps, source=source)
            return session, await stack.enter_async_context(run)
        except Exception:  # nobody knows the copy
            await sessions.delete(session.id, **owner)
            raise

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
            self._unkept.check(session, previous)
            return None
        found = await find_response(session, name)
        if found is None:
            raise _no_response(previous)
        return found.end

    def _run(
        self,
        session: Session,
        body: ResponseRequest,
        found: ResponseInput,
        deps: object,
        *,
        after: tuple[ResponseName, SavedStep | None] | None = None,
        source: ContinuedResponse | None = None,
    ) -> SessionRun:
        """Return the run for a request; what it needs is written when it is its turn.

        Args:
            session: The session that it runs in.
            body: The request.
            found: What the request says.
            deps: What the tools get.
            after: The response that it continues, and the step that ended it, if it has ended. If
                the session has gone on by then, the run begins with a :class:`_GoneOnError`.
            source: The response that the session is a copy of.
        """
        options = format_options(session, body.format, "text.format")
        known = None if after else _read(session, found)
        previous = body.previous_response_id

        async def choose() -> tuple[Run[Any], Message | None]:
            if after is not None and previous is not None:
                await self._stay(session, after[0], previous)
            decisions, said = known or _read(session, found)
            if session.kept is None:
                await self._unkept.begin(session, previous)
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

    async def ended(self, session: Session, response_id: str, stream: ResponseStream) -> None:
        """Note that a response has ended, so that it is the one to continue.

        After one that failed, the one before can be continued too.
        """
        if session.kept is None:
            await self._unkept.ended(session, response_id, failed=stream.failed_run)
        else:  # its steps tell the rest
            await keep_limit(session, response_id, stream.limit)


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
