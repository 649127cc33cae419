"""Responses of a session, found again by their IDs in what its runs have recorded."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio

from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message
from agent_brain.memories.sessions.reading import memory_at
from agent_brain.memories.sessions.timeline import Part, SavedStep, read_parts
from agent_brain.memories.store.session import responses_key
from agent_brain.serving.pending import pending_in
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web.chat.elsewhere import asked_in, told_by
from agent_brain.serving.web.chat.translator import Path
from agent_brain.serving.web.openai.errors import SERVER, ApiError
from agent_brain.serving.web.openai.token_limit import ReachedLimit, TokenLimit
from agent_brain.serving.web.openai.translate import Json
from agent_brain.states.events import AgentEvent, Position, RunFailed, RunFinished, TextDelta
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action

_LIMITED = "limited"  # the kind of an entry
FIELDS = "openai_response"  # in the metadata of the task: what its response repeats of the request
_ID = re.compile(r"resp_[0-9a-f]+_(?P<after>\d{1,15}|x)_(?P<run>[^_]+)_(?P<session>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ResponseName:
    """What the ID of a response names.

    Attributes:
        session: The session.
        run_id: The run, which may have several responses if it waits for a person.
        after: The number of the last entry of the session before it; None if it keeps no steps.
    """

    session: str
    run_id: str
    after: int | None


def new_response_id(session: Session | None = None, run: SessionRun | None = None) -> str:
    """Return the ID of a response whose run begins now; it cannot be guessed."""
    token = f"resp_{secrets.token_hex(16)}"
    if session is None or run is None:
        return token
    goes_on = run.recorded is not None  # one that has waited
    run_id = session.memory.control.run_id if goes_on else run.run_id
    after = "x" if session.kept is None else session.kept.last
    return f"{token}_{after}_{(run_id or '').removeprefix('run_')}_{session.id}"


def read_response_id(response_id: str) -> ResponseName | None:
    """Return what an ID names; None if no response that is kept has it."""
    if (match := _ID.fullmatch(response_id)) is None:
        return None
    after = None if match["after"] == "x" else int(match["after"])
    return ResponseName(match["session"], f"run_{match['run']}", after)


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """A response as its session has recorded it.

    Attributes:
        name: What its ID names.
        parts: What happened, in order.
        end: The step that it ended with; None while it is in progress.
    """

    name: ResponseName
    parts: list[Part]
    end: SavedStep | None
    fields: Json = field(default_factory=dict)

    @property
    def created_at(self) -> int | None:
        """When it began, in seconds since 1970."""
        return _seconds(self.parts[0].entries[0].time)

    @property
    def completed_at(self) -> int | None:
        """When it ended."""
        return None if self.end is None else _seconds(self.end.time)

    @property
    def approved(self) -> list[str]:
        """The calls that a person has approved."""
        return [
            message.tool_call_id or ""
            for message in self._messages()
            if (message.metadata.get("decision") or {}).get("approved")  # type: ignore[union-attr]
        ]

    def _messages(self) -> Iterator[Message]:
        for part in self.parts:
            yield from part.messages

    async def limit(self, session: Session, response_id: str) -> TokenLimit:
        """Return the limit of its tokens, which may have been reached."""
        most = self.fields.get("max_output_tokens")
        if most is not None and session.kept is not None:
            for entry in await session.kept.journal.read(responses_key(session.kept.key)):
                data: Any = entry.data
                if entry.kind == _LIMITED and data["response"] == response_id:
                    return ReachedLimit(most, data["admitted"], cut=data["cut"])
        return TokenLimit(None)

    async def events(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Yield what the run has told, each message whole."""
        assert session.kept is not None
        memory = await memory_at(session.kept.journal, session.kept.key, self.end)
        new = {message.id for message in self._messages()}
        at = Position(self.name.run_id)
        calls: dict[str, tuple[Path, Action]] = {}
        yield TextDelta("", at=at)  # a response begins, even if nothing is said in it
        for message in await memory.turn():
            for event in told_by(message, calls, at.run_id, ()):
                if message.id in new:
                    yield event
        result = None if self.end is None else await memory.last_result()
        if result is None:
            return
        if result.stop_reason == "failed":
            yield RunFailed(ApiError(500, "The run failed", type=SERVER, code=SERVER), at=at)
            return
        for event in asked_in(pending_in(memory), at.run_id):
            yield event
        usage = Usage.of(result.usage)
        yield RunFinished(
            result.stop_reason, result.answer, None, usage, result.finish_reason, at=at
        )


async def find_response(session: Session, name: ResponseName) -> KeptResponse | None:
    """Return a response; None if the session does not have it, or not any more."""
    if session.kept is None or name.after is None:
        return None
    parts: list[Part] = []
    pages = read_parts(session.kept.journal, session.kept.key, after=name.after)
    async with aclosing(pages) as found:
        async for part in found:
            parts.append(part)
            step = part.step
            if step is not None and step.run_id != name.run_id:
                return None
            if step is not None and step.status != "running":
                return KeptResponse(name, parts, step, _fields(parts))
    return KeptResponse(name, parts, None, _fields(parts)) if parts else None


async def keep_limit(session: Session, response_id: str, limit: TokenLimit) -> None:
    """Keep where a response has reached its limit of tokens, which its steps do not tell."""
    if session.kept is not None and limit.reached:
        data: Json = {"response": response_id, "admitted": limit.admitted, "cut": limit.cut}
        with anyio.CancelScope(shield=True):
            key = responses_key(session.kept.key)
            await session.kept.journal.append(key, [Entry(_LIMITED, data)])


async def has_gone_on(session: Session, step: SavedStep) -> bool:
    """Return whether a session has steps after one."""
    assert session.kept is not None
    pages = read_parts(session.kept.journal, session.kept.key, after=step.number)
    async with aclosing(pages) as later:
        async for part in later:
            if part.step is not None:
                return True
    return False


def _fields(parts: list[Part]) -> Json:
    said: Any = (message for part in parts for message in part.messages)
    found: Any = next((m.metadata[FIELDS] for m in said if FIELDS in m.metadata), {})
    return dict(found)


def _seconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp())
