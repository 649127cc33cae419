"""The session behind a conversation that a client names.

Clients of these protocols choose the ID of a conversation and send all its messages each time:

- A user who is identified has a session of that ID, which remembers the conversation; only new
  messages are taken from the client.
- So has anybody who names a session that the server has made.
- For all others, a session is made from the messages of the request. It is deleted after the run,
  unless the run waits: the IDs of what it waits for then name the session.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import anyio
from starlette.requests import Request

from agent_brain.errors import BrainUseError, SessionNotFoundError
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.message import Message
from agent_brain.memories.runs.human_requests import HumanRequests
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.wrapper import WrappingMemory
from agent_brain.serving.session import Session
from agent_brain.serving.web.requests import owner_args, sessions_of
from agent_brain.tools.action import Action

PREFIX = "wait:"
Path: TypeAlias = tuple[str, ...]


def wait_id(session: str, key: str) -> str:
    """Return the ID with which a client answers the call or the question ``key`` of a session.

    It names the session, so that the run is found although the client names another session, or
    none: the ID of a session that has no user cannot be guessed.
    """
    return f"{PREFIX}{quote(session, safe='')}:{key}"


def read_wait_id(text: str) -> tuple[str, str] | None:
    """Return the session and the key in ``text``; None if it is not such an ID."""
    if not text.startswith(PREFIX):
        return None
    session, colon, key = text.removeprefix(PREFIX).partition(":")
    return (unquote(session), key) if colon and session else None


def call_key(text: str) -> str:
    """Return the ID that a call has in the run, from the one that the client knows."""
    found = read_wait_id(text)
    return text if found is None or not found[1] else found[1]


def read_call(name: str, arguments: str, call_id: str) -> Action:
    """Return a tool call whose arguments are JSON text."""
    try:
        args: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        args = None
    if isinstance(args, dict):
        return Action(name=name, args=args, id=call_id)
    return Action(name=name, id=call_id, unparsed=arguments)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a person, or the client, answers to a run that waits.

    Attributes:
        session: The ID of the session.
        approve: IDs of calls that may run.
        deny: Reasons by the IDs of calls that may not.
        edit: Arguments by the IDs of calls that may run with them.
        input: Answers by the IDs of questions.
    """

    session: str
    approve: list[str] = field(default_factory=list)
    deny: dict[str, str] = field(default_factory=dict)
    edit: dict[str, dict[str, Any]] = field(default_factory=dict)
    input: dict[str, Any] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :meth:`Session.stream_resume`."""
        given = {"approve": self.approve, "deny": self.deny, "edit": self.edit, "input": self.input}
        return {name: value for name, value in given.items() if value}

    @property
    def keys(self) -> set[str]:
        """The IDs of everything that is answered."""
        return {*self.approve, *self.deny, *self.edit, *self.input}


@dataclass(frozen=True, slots=True)
class Said:
    """What a client says: all of the conversation, divided at the first new message.

    Attributes:
        history: The messages before.
        news: New messages of the user, the last of which is the task.
    """

    history: list[Message]
    news: list[Message]

    async def record(self, memory: Memory) -> None:
        """Record everything but the task: the news, and the history if the memory is empty.

        If the memory has a new message already, the user repeats it: it is deleted first, with
        everything after it.

        Raises:
            BrainUseError: The memory cannot delete messages.
        """
        known = {message.id for message in [*await memory.goal(), *await memory.dump()]}
        if not known:
            await memory.update(self.history)
        repeated = next((message.id for message in self.news if message.id in known), None)
        if repeated is not None:
            await _rewind(memory, repeated)
        await memory.update(self.news[:-1])


async def _rewind(memory: Memory, message_id: str) -> None:
    if not isinstance(memory, StoredMemory | WrappingMemory):
        raise BrainUseError(
            f"{type(memory).__name__} cannot delete messages, so none can be repeated: send the "
            "message with a new ID"
        )
    ids = [message.id for message in await memory.messages()]
    await memory.delete(ids[ids.index(message_id) :])


@asynccontextmanager
async def use_thread(request: Request, thread: str) -> AsyncIterator[Session]:
    """Yield the session of the conversation ``thread``, for a new run.

    Raises:
        BrainUseError: The ID is not valid, or the caller uses too many sessions.
    """
    sessions, owner = sessions_of(request), owner_args(request)
    async with AsyncExitStack() as stack:
        try:
            session = await stack.enter_async_context(sessions.use(thread, **owner))
        except SessionNotFoundError:
            if owner["user"] is not None or owner["tenant"] is not None:
                raise
            session = await stack.enter_async_context(_use_and_forget(request, None))
        yield session


@asynccontextmanager
async def use_waiting(request: Request, thread: str, session_id: str) -> AsyncIterator[Session]:
    """Yield the session that a client answers, with the run that waits in it.

    Raises:
        SessionNotFoundError: There is no such session.
    """
    owner = owner_args(request)
    if session_id == thread or owner["user"] is not None or owner["tenant"] is not None:
        async with sessions_of(request).use(session_id, **owner) as session:
            yield session
    else:
        async with _use_and_forget(request, session_id) as session:
            yield session


@asynccontextmanager
async def _use_and_forget(request: Request, session_id: str | None) -> AsyncIterator[Session]:
    sessions, owner = sessions_of(request), owner_args(request)
    async with sessions.use(session_id, **owner) as session:
        try:
            yield session
        finally:
            if session.run is None and session.pending is None:
                with anyio.CancelScope(shield=True):
                    await sessions.delete(session.id, **owner)


def current_path(control: Control) -> Path:
    """Return the path of the net whose state runs."""
    deepest = max(control.subnets, key=len, default="")
    return tuple(deepest.split("/")) if deepest else ()


def waiting_calls(session: Session) -> list[tuple[Path, Action]]:
    """Return the calls without a result of a run that waits, with the path of their net."""
    control = session.memory.control
    path = current_path(control)
    begun, asked = control.pending, control.human_requests or HumanRequests()
    inside = [(asked.inside[call.id], call) for call in asked.calls if call.id in asked.inside]
    return [
        (path, call)
        for call in control.next_actions
        if call.id not in begun or begun[call.id].result is None
    ] + [(tuple(inner.path), call) for inner, call in inside]
