"""Which responses can be continued in sessions without a journal, which keep no steps."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_brain.memories.base import Memory
from agent_brain.serving.session import Session
from agent_brain.serving.sessions import SessionKey
from agent_brain.serving.web.openai.errors import invalid

MAX_KNOWN = 10_000  # sessions


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
