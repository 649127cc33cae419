"""The view that records which calls have filled a store, for a memory that is given them again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pydantic import JsonValue

from agent_brain.memories.message import Message
from agent_brain.memories.views.base import View

GOALS = "durable_goals"  # the value with the IDs of earlier goals, in a copy of a session
STATE = "durable_state"  # the value with the state of a memory; see made_state.py


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a memory.

    Attributes:
        ids: The IDs of the messages that it was given.
        sets_goal: Whether it was ``set_goal``; otherwise it was ``update``.
    """

    ids: Sequence[str]
    sets_goal: bool = False


def calls_of(ids: Iterable[str], goals: Collection[str], goal: str | None) -> list[Call]:
    """Return the calls that add messages.

    Args:
        ids: Their IDs.
        goals: Those that were goals.
        goal: The one that is the goal when all are added; None if that does not matter.
    """
    calls: list[Call] = []
    together: list[str] = []
    for message_id in ids:
        if message_id != goal and message_id not in goals:
            together.append(message_id)
            continue
        if together:
            calls.append(Call(together))
        calls.append(Call([message_id], sets_goal=True))
        together = []
    if together:
        calls.append(Call(together))
    last = [call.ids[0] for call in calls if call.sets_goal][-1:]
    if goal is not None and last not in ([], [goal]):
        calls.append(Call([goal], sets_goal=True))
    return calls


def without(calls: Sequence[Call], gone: Collection[str]) -> list[Call]:
    """Return calls without some messages, and without those that had no others."""
    left = [Call([i for i in call.ids if i not in gone], call.sets_goal) for call in calls]
    return [call for call in left if call.ids]


class Calls(View):
    """Records the calls of ``set_goal`` and ``update`` that have filled a store, in order.

    Attributes:
        calls: The calls, without messages that were removed.
        changed: Whether something other than further calls has happened since this was last set to
            False: the session was read again, or messages were removed.
    """

    def reset(self) -> None:
        """See :meth:`View.reset`."""
        self.calls: list[Call] = []
        self.changed = True
        self._goals: frozenset[str] = frozenset()
        self._coming: str | None = None  # the goal, whose message is added next

    def set_goal(self, message_id: str | None) -> None:
        """See :meth:`View.set_goal`."""
        self._coming = None
        if message_id is not None and message_id in self.log:
            self.calls.append(Call([message_id], sets_goal=True))
        else:
            self._coming = message_id

    def add(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.add`."""
        ids = [message.id for message in messages]
        coming = self._coming if self._coming in ids else None
        self.calls += calls_of(ids, self._goals, coming)
        if coming is not None:
            self._coming = None

    def remove(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.remove`."""
        gone = {message.id for message in messages}
        self.calls = without(self.calls, gone)
        self.changed = True

    def set_value(self, values: Mapping[str, JsonValue], name: str) -> None:
        """See :meth:`View.set_value`."""
        if name == GOALS:
            goals = values.get(GOALS)
            self._goals = frozenset(map(str, goals if isinstance(goals, list) else ()))
        elif name == STATE and STATE not in values:
            self.changed = True  # it quoted something that was forgotten

    def stale_values(self, ids: AbstractSet[str] | None, held: AbstractSet[str]) -> Iterable[str]:
        """See :meth:`View.stale_values`: the state may quote any message."""
        return () if ids is not None and not ids else (STATE,)

    @property
    def goals(self) -> list[str]:
        """The IDs of all goals, in order."""
        return [call.ids[0] for call in self.calls if call.sets_goal]
