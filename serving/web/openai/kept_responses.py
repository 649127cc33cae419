"""Responses of a session, found again by their IDs in what its runs have recorded."""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio

from agent_brain.memories.base import Memory
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message
from agent_brain.memories.sessions.reading import memory_at
from agent_brain.memories.sessions.timeline import Part, SavedStep, read_parts
from agent_brain.memories.store.session import responses_key
from agent_brain.serving.pending import pending_in
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.sessions import SessionKey
from agent_brain.serving.web.chat.elsewhere import asked_in, told_by
from agent_brain.serving.web.chat.threads import Path
from agent_brain.serving.web.openai.errors import SERVER, ApiError, invalid
from agent_brain.serving.web.openai.translate import Json, ReachedLimit, TokenLimit
from agent_brain.states.events import AgentEvent, Position, RunFailed, RunFinished, TextDelta
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action

_LIMITED = "limited"  # the kind of an entry
FIELDS = "openai_response"  # in the metadata of the task: what its response repeats of the request
_ID = re.compile(r"resp_[0-9a-f]+_(?P<after>\d{1,15}|x)_(?P<run>[^_]+)_(?P<session>.+)", re.DOTALL)
MAX_KNOWN = 10_000  # sessions


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
    return f"{token}_{after}_{_written(run_id or '')}_{session.id}"


def read_response_id(response_id: str) -> ResponseName | None:
    """Return what an ID names; None if no response that is kept has it."""
    if (match := _ID.fullmatch(response_id)) is None:
        return None
    after = None if match["after"] == "x" else int(match["after"])
    return ResponseName(match["session"], _read(match["run"]), after)


def _written(run_id: str) -> str:
    """Return the ID of a run without underscores: those of queues may have any characters."""
    name = run_id.removeprefix("run_")
    return name if run_id == f"run_{name}" and "_" not in name else f"-{run_id.encode().hex()}"


def _read(written: str) -> str:
    if not written.startswith("-"):
        return f"run_{written}"
    try:
        return bytes.fromhex(written[1:]).decode()
    except ValueError:  # somebody else has made it: there is no such run
        return ""


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

    @property
    def fields(self) -> Json:
        """What it repeats of its request."""
        found: Any = next((m.metadata[FIELDS] for m in self.messages if FIELDS in m.metadata), {})
        return dict(found)

    @property
    def created_at(self) -> int | None:
        """When it began, in seconds since 1970."""
        return _seconds(self.parts[0].entries[0].time)

    @property
    def completed_at(self) -> int | None:
        """When it ended."""
        return None if self.end is None else _seconds(self.end.time)

    @property
    def messages(self) -> list[Message]:
        """What was recorded."""
        return [message for part in self.parts for message in part.messages]

    @property
    def approved(self) -> list[str]:
        """The calls that a person has approved."""
        decided: Any = ((m.tool_call_id, m.metadata.get("decision") or {}) for m in self.messages)
        return [call_id or "" for call_id, decision in decided if decision.get("approved")]

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
        new = {message.id for message in self.messages}
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
            yield RunFailed(ApiError(500, SERVER, "The run failed", code=SERVER), at=at)
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
                return KeptResponse(name, parts, step)
    return KeptResponse(name, parts, None) if parts else None


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


def _seconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp())


@dataclass(slots=True)
class _Known:
    """What is known of a session.

    Attributes:
        later: The responses that can be continued: the last one that did not fail, and failed ones
            after it; with the IDs of the messages that failed ones after each have recorded.
        before: The IDs of the messages that the current run has found.
    """

    later: dict[str, set[str]] = field(default_factory=dict)
    before: set[str] = field(default_factory=set)


class UnkeptResponses:
    """The responses that can be continued, of each session without a journal."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[SessionKey, _Known] = OrderedDict()

    def check(self, session: Session, response_id: str) -> None:
        """Refuse a response that cannot be continued any more.

        Raises:
            ApiError: The session has gone on since.
        """
        known = self._sessions.get(_key(session))
        if known is not None and known.later and response_id not in known.later:
            raise invalid(
                f"{response_id!r} is not the last response of its conversation, and this server "
                "keeps no steps: give it a journal",
                "previous_response_id",
            )

    async def begin(self, session: Session, previous: str | None) -> None:
        """Note that a run begins; what failed after ``previous``, which it continues, is deleted.

        Args:
            session: The session, in which no other run is active.
            previous: The ID of the response; None to continue from whatever was last.
        """
        known = self._sessions.setdefault(_key(session), _Known())
        self._sessions.move_to_end(_key(session))
        while len(self._sessions) > MAX_KNOWN:
            self._sessions.popitem(last=False)
        found = await _messages(session.memory)
        if previous is not None and previous in known.later:
            failed, known.later = known.later[previous], {previous: set()}
            delete: Any = getattr(session.memory, "delete", None)
            if delete is not None and failed & found:
                await delete([*(failed & found)])
                found -= failed
        known.before = found

    async def ended(self, session: Session, response_id: str, *, failed: bool) -> None:
        """Note that a response has ended; after one that failed, those before still count."""
        known = self._sessions.setdefault(_key(session), _Known())
        if not failed:
            known.later = {response_id: set()}
        elif known.later:
            with anyio.CancelScope(shield=True):
                recorded = await _messages(session.memory) - known.before
                for later in known.later.values():
                    later |= recorded
                known.later[response_id] = set()


def _key(session: Session) -> SessionKey:
    return SessionKey(session.owner, session.id)


async def _messages(memory: Memory) -> set[str]:
    return {message.id for message in [*await memory.goal(), *await memory.dump()]}
