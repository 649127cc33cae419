"""Which session answers a request, and how its run begins."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from agent_brain.errors import SessionBusyError, SessionNotFoundError
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.serving.pending import request_in
from agent_brain.serving.session import BUSY, Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.sessions import SessionKey
from agent_brain.serving.web.openai.chat_request import ChatRequest
from agent_brain.serving.web.openai.errors import ApiError, invalid
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
    session: SessionKey | None = None
    approved: tuple[str, ...] = ()

    @property
    def session_id(self) -> str | None:
        """The ID of the session."""
        return None if self.session is None else self.session.session


@asynccontextmanager
async def answer_chat(request: Request, body: ChatRequest) -> AsyncIterator[Answering]:
    """Yield the run for a request of Chat Completions.

    The header ``X-Session-Id`` names the session that keeps the conversation, ``new`` a new one;
    without it the request holds all of the conversation.
    """
    said, deps, named = body.conversation(), deps_of(request), request.headers.get(SESSION_HEADER)
    if named is None:
        async with _unkept(request, said.history) as session:
            yield Answering(session.stream(said.task, deps=deps))
        return
    wanted = None if named == NEW else named
    async with sessions_of(request).use(wanted, **owner_args(request)) as session:
        yield Answering(_next_run(session, said.task, deps), _key(session))


def _unkept(request: Request, history: list[Message]) -> AbstractAsyncContextManager[Session]:
    return sessions_of(request).temporary(history, **owner_args(request))


def _key(session: Session) -> SessionKey:
    return SessionKey(session.owner, session.id)


def _next_run(session: Session, task: Message, deps: object) -> SessionRun:
    """Return a run of ``task``, or of the waiting run that ``task`` replies to."""
    asked = request_in(session.memory) if session.run is None else None
    if asked is None:
        return session.stream(task, deps=deps)
    return session.stream_resume(**asked.decide(task.content), deps=deps)


class ResponseSessions:
    """Finds the session of a response.

    The ID of a response holds the ID of its session, which belongs to its user or cannot be
    guessed.
    """

    def __init__(self) -> None:
        self._newest: OrderedDict[SessionKey, set[str]] = OrderedDict()

    @asynccontextmanager
    async def answer(self, request: Request, body: ResponseRequest) -> AsyncIterator[Answering]:
        """Yield the run for a request."""
        found, deps = body.read_input(), deps_of(request)
        if body.store is False:
            said = conversation(_without_decisions(found), "input")
            history = _instructions(body.instructions) + said.history
            async with _unkept(request, history) as session:
                yield Answering(session.stream(said.task, deps=deps))
            return
        async with self._session(request, body) as session:
            if session.run is not None and sessions_of(request).when_busy == "refuse":
                raise SessionBusyError(BUSY)
            run = await self._run(session, body, found, deps)
            yield Answering(run, _key(session), tuple(found.approve))

    @asynccontextmanager
    async def _session(self, request: Request, body: ResponseRequest) -> AsyncIterator[Session]:
        previous, wanted = body.previous_response_id, body.conversation_id
        if previous is not None:
            prefix, _, rest = previous.partition("_")
            wanted = rest.partition("_")[2]
            if prefix != "resp" or not wanted:
                raise _no_response(previous)
        async with AsyncExitStack() as stack:
            opening = sessions_of(request).use(wanted, **owner_args(request))
            try:
                session = await stack.enter_async_context(opening)
            except SessionNotFoundError:
                if previous is None:
                    raise
                raise _no_response(previous) from None
            if previous is not None:
                self._check(session, previous)
            yield session

    def _check(self, session: Session, previous: str) -> None:
        if session.memory.control.run_id is None:  # the session has ended
            raise _no_response(previous)
        newest = self._newest.get(_key(session))
        if newest is not None and previous not in newest:
            raise invalid(
                f"{previous!r} is not the last response of its conversation: only that can be "
                "continued",
                "previous_response_id",
            )

    async def _run(
        self, session: Session, body: ResponseRequest, found: ResponseInput, deps: object
    ) -> SessionRun:
        if found.approve or found.deny:
            if found.messages:
                raise invalid("Answer the approvals alone, without a message", "input")
            return session.stream_resume(
                approve=found.approve or None, deny=found.deny or None, deps=deps
            )
        said = conversation(found.messages, "input")
        if session.pending is None:
            async with session.exclusive():
                await _instruct(session.memory, body.instructions)
                if said.history:
                    await session.memory.update(said.history)
        return _next_run(session, said.task, deps)

    def new_id(self, session: str | None) -> str:
        """Return the ID of a new response, which cannot be guessed."""
        token = f"resp_{secrets.token_hex(16)}"
        return token if session is None else f"{token}_{session}"

    def ended(self, session: SessionKey, response_id: str, *, failed: bool) -> None:
        """Note that a response has ended, so that it is the one to continue.

        After one that failed, the one before can be continued too.
        """
        known = self._newest.pop(session, set()) if failed else set()
        if known or not failed:
            self._newest[session] = known | {response_id}
        while len(self._newest) > MAX_KNOWN:
            self._newest.popitem(last=False)


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
