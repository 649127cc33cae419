"""Which session answers a request, and how its run begins. Private."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from agent_brain.errors import SessionBusyError, SessionNotFoundError
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.serving.pending import request_in
from agent_brain.serving.session import BUSY, Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.sessions import SessionKey, Sessions
from agent_brain.serving.web.openai.chat_request import ChatRequest
from agent_brain.serving.web.openai.errors import ApiError, invalid
from agent_brain.serving.web.openai.messages import conversation
from agent_brain.serving.web.openai.response_request import ResponseInput, ResponseRequest
from agent_brain.serving.web.openai.token_limit import TokenLimit
from agent_brain.states.events import AgentEvent

NEW = "new"
MAX_KNOWN = 10_000  # sessions


@dataclass(frozen=True, slots=True)
class Answering:
    """A run that answers a request.

    Attributes:
        run: The run, not begun.
        session: The ID of the session; None if the conversation is not kept.
        approved: The calls that the request approves.
        owner: Whose session it is; users may give sessions the same ID.
    """

    run: SessionRun
    session: str | None
    approved: tuple[str, ...] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, for :meth:`Sessions.use`, and the dependencies of the run."""

    user: str | None
    tenant: str | None
    deps: object

    @property
    def owner(self) -> dict[str, str | None]:
        """The arguments of the methods of :class:`Sessions`."""
        return {"user": self.user, "tenant": self.tenant}


@asynccontextmanager
async def answer_chat(
    sessions: Sessions, asker: Asker, body: ChatRequest, session_id: str | None
) -> AsyncIterator[Answering]:
    """Yield the run for a request of Chat Completions.

    Args:
        sessions: The sessions of the server.
        asker: Who asks.
        body: The request.
        session_id: The session that keeps the conversation, ``"new"`` for a new one; None if the
            request holds all of it.
    """
    said = body.conversation()
    if session_id is None:
        async with sessions.temporary(said.history, **asker.owner) as session:
            yield Answering(session.stream(said.task, deps=asker.deps), None)
        return
    wanted = None if session_id == NEW else session_id
    async with sessions.use(wanted, **asker.owner) as session:
        yield Answering(_next_run(session, said.task, asker), session.id)


def _next_run(session: Session, task: Message, asker: Asker) -> SessionRun:
    """Return a run of ``task``, or of the waiting run that ``task`` replies to."""
    request = request_in(session.memory) if session.run is None else None
    if request is None:
        return session.stream(task, deps=asker.deps)
    return session.stream_resume(**request.decide(task.content), deps=asker.deps)


class ResponseSessions:
    """Finds the session of a response.

    The ID of a response holds the ID of its session, which belongs to its user or cannot be
    guessed.
    """

    def __init__(self) -> None:
        self._newest: OrderedDict[SessionKey, set[str]] = OrderedDict()

    @asynccontextmanager
    async def answer(
        self, sessions: Sessions, asker: Asker, body: ResponseRequest
    ) -> AsyncIterator[Answering]:
        """Yield the run for a request."""
        found = body.read_input()
        if body.store is False:
            said = conversation(_without_decisions(found), "input")
            before = _instructions(body.instructions) + said.history
            async with sessions.temporary(before, **asker.owner) as session:
                yield Answering(session.stream(said.task, deps=asker.deps), None)
            return
        async with self._session(sessions, asker, body) as session:
            if session.run is not None and sessions.when_busy == "refuse":
                raise SessionBusyError(BUSY)
            run = await self._run(session, asker, body, found)
            yield Answering(run, session.id, tuple(found.approve), session.owner)

    @asynccontextmanager
    async def _session(
        self, sessions: Sessions, asker: Asker, body: ResponseRequest
    ) -> AsyncIterator[Session]:
        previous = body.previous_response_id
        if previous is None:
            async with sessions.use(body.conversation_id, **asker.owner) as session:
                yield session
            return
        prefix, _, rest = previous.partition("_")
        session_id = rest.partition("_")[2]
        if prefix != "resp" or not session_id:
            raise _no_response(previous)
        async with AsyncExitStack() as stack:
            try:
                opening = sessions.use(session_id, **asker.owner)
                session = await stack.enter_async_context(opening)
            except SessionNotFoundError:
                raise _no_response(previous) from None
            self._check(session, previous)
            yield session

    def _check(self, session: Session, previous: str) -> None:
        if session.memory.control.run_id is None:  # the session has ended
            raise _no_response(previous)
        newest = self._newest.get(SessionKey(session.owner, session.id))
        if newest is not None and previous not in newest:
            raise invalid(
                f"{previous!r} is not the last response of its conversation: only that can be "
                "continued",
                "previous_response_id",
            )

    async def _run(
        self, session: Session, asker: Asker, body: ResponseRequest, found: ResponseInput
    ) -> SessionRun:
        if found.approve or found.deny:
            if found.messages:
                raise invalid("Answer the approvals alone, without a message", "input")
            return session.stream_resume(
                approve=found.approve or None, deny=found.deny or None, deps=asker.deps
            )
        said = conversation(found.messages, "input")
        if session.pending is None:
            async with session.exclusive():
                await _instruct(session.memory, body.instructions)
                if said.history:
                    await session.memory.update(said.history)
        return _next_run(session, said.task, asker)

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


async def events_of(run: SessionRun, limit: TokenLimit) -> AsyncGenerator[AgentEvent, None]:
    """Yield the events of a run, and cancel it when the limit is reached.

    Raises:
        Exception: The run failed.
    """
    cancelled = False
    async with run:
        async for item in run:
            yield item.event
            if limit.reached and not cancelled:
                cancelled = True
                run.cancel()


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
