"""The state of a memory of a user's own, as a session stores it.

Messages that the session has are named by their IDs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, JsonValue, ValidationError

from agent_brain.memories.control import Control
from agent_brain.memories.errors import SnapshotError
from agent_brain.memories.message import Message
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.views.calls import Call


class _Other(BaseModel):
    """A message that is not as the session has it.

    Attributes:
        message: The message.
        changed: Whether the session has a message of the same ID.
    """

    message: Message
    changed: bool


class MadeState(BaseModel):
    """A snapshot of a memory that has got the calls of a session up to a place.

    Attributes:
        last: The ID of the last message that it had got.
        goal_id: The ID of the goal that it had got.
        calls: How many calls had these two as the last ones: the same goal may be set again.
        goal: Its goal, at most one.
        messages: Its messages; ``"all"`` are those that it had got, ``"others"`` those without its
            goal.
        views: The additional data of its snapshot.
    """

    last: str | None
    goal_id: str | None
    calls: int = 1
    goal: list[str | _Other]
    messages: list[str | _Other] | Literal["all", "others"]
    views: dict[str, JsonValue]

    @classmethod
    def of(cls, snapshot: Snapshot, calls: Sequence[Call], log: MessageLog) -> MadeState:
        """Return the state of a memory that has got ``calls``."""
        got = _ids(calls)
        goals = [_named(message, log) for message in snapshot.goal]
        held = [_named(message, log) for message in snapshot.messages]
        others = [i for i in got if i not in goals]
        last = calls[-1].ids[-1] if calls else None
        goal_id = next((call.ids[0] for call in reversed(calls) if call.sets_goal), None)
        return cls(
            last=last,
            goal_id=goal_id,
            calls=len(_places(calls, last, goal_id)),
            goal=goals,
            messages="all" if held == got else "others" if held == others else held,
            views=snapshot.views,
        )

    def covers(self, calls: Sequence[Call]) -> int | None:
        """Return how many of ``calls`` the memory had got; None if that cannot be told."""
        if self.last is None:
            return 0
        places = _places(calls, self.last, self.goal_id)
        return places[min(self.calls, len(places)) - 1] if places else None

    def snapshot(self, calls: Sequence[Call], log: MessageLog, control: Control) -> Snapshot:
        """Return the snapshot, with the messages of the session as they are now.

        Args:
            calls: The calls that the memory had got.
            log: The messages of the session.
            control: The state of the run.
        """
        held: Sequence[str | _Other] = self.messages
        if isinstance(self.messages, str):
            gone = () if self.messages == "all" else self.goal
            held = [i for i in _ids(calls) if i not in gone]
        return Snapshot(
            goal=_found(self.goal, log),
            messages=_found(held, log),
            control=control.model_copy(deep=True),
            views=self.views,
        )


def read_state(value: JsonValue) -> MadeState | None:
    """Return the state that a session stores, if there is one.

    Raises:
        SnapshotError: It cannot be read.
    """
    try:
        return None if value is None else MadeState.model_validate(value)
    except ValidationError as error:
        raise SnapshotError(f"Not the state of a memory over a journal: {error}") from error


def _places(calls: Sequence[Call], last: str | None, goal_id: str | None) -> list[int]:
    """Return after how many calls a message was the last one, and another one the goal."""
    found, goal = [], None
    for count, call in enumerate(calls, 1):
        goal = call.ids[0] if call.sets_goal else goal
        if (call.ids[-1], goal) == (last, goal_id):
            found.append(count)
    return found


def _ids(calls: Sequence[Call]) -> list[str]:
    return [*dict.fromkeys(message_id for call in calls for message_id in call.ids)]


def _named(message: Message, log: MessageLog) -> str | _Other:
    known = log.get(message.id)
    return message.id if known == message else _Other(message=message, changed=known is not None)


def _found(items: Sequence[str | _Other], log: MessageLog) -> list[Message]:
    """Return the messages, without those that the session does not have any more."""
    found: list[Message] = []
    for item in items:
        if isinstance(item, _Other):
            if not item.changed or item.message.id in log:
                found.append(item.message)
        elif (message := log.get(item)) is not None:
            found.append(message)
    return found
