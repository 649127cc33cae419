"""The view of a running summary: which messages it covers, and which are to be covered next."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar, cast

from pydantic import JsonValue

from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.events import Evicted
from agent_brain.memories.views.base import View
from agent_brain.memories.views.groups import group, is_whole
from agent_brain.memories.views.tokens import Counter, message_tokens, value_tokens
from agent_brain.memories.views.window import Window

ASSISTANT = Role.ASSISTANT
SUMMARY = "summary"  # the name of the value


class Summarized(View):
    """What came after a summary; what the summary covers is evicted.

    The summary is a value: its text, its level, and the place up to which it covers all messages
    but the ``spared`` ones.

    Args:
        max_messages: More messages are too many; None for no such limit.
        max_tokens: More tokens are too many; None for no such limit.
        keep: How many messages to leave as they are; None for half of the limits.
        counter: Counts the tokens of a text.
    """

    keeps_evicted: ClassVar[bool] = True

    def __init__(
        self, max_messages: int | None, max_tokens: int | None, keep: int | None, counter: Counter
    ) -> None:
        self.tail = 0
        self.max_messages = max_messages
        self.max_tokens = max_tokens
        self.counter = counter
        self._keep = keep
        self.reset()

    def reset(self) -> None:
        """See :meth:`View.reset`."""
        self._values: Mapping[str, JsonValue] = {}
        self._goal_id: str | None = None
        self._evicting: list[str] = []
        self._sizes: dict[str, int] = {}
        self._spoke = 0  # place of the last assistant message that was evicted
        self.retry_at = 0
        self._forget_summary()

    def _forget_summary(self) -> None:
        self.covered: dict[str, int] = {}  # with their places
        self.inherited: list[str] = []  # of before a restore: stored nowhere

    @property
    def state(self) -> dict[str, JsonValue]:
        """The value of the summary, empty if there is none."""
        return cast("dict[str, JsonValue]", self._values.get(SUMMARY) or {})

    def set_goal(self, message_id: str | None) -> None:
        """See :meth:`View.set_goal`."""
        self._goal_id = message_id

    def remove(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.remove`."""
        self.retry_at = 0

    def set_value(self, values: Mapping[str, JsonValue], name: str) -> None:
        """Evict what a new summary covers."""
        self._values = values
        if name != SUMMARY:
            return
        if not self.state:
            self._forget_summary()
            return
        state, log = self.state, self.log
        self.inherited = cast("list[str]", state.get("ids", []))
        upto = cast(int, state.get("upto", 0))
        spared = {*cast("list[str]", state.get("spared", []))}
        evicting = {i: log.place(i) for i in self._ids_upto(upto) if i not in spared}
        self.covered |= evicting
        self._evicting = [*evicting]
        spoken = (place for i, place in reversed(evicting.items()) if log[i].role is ASSISTANT)
        self._spoke = max(self._spoke, next(spoken, 0))
        self.retry_at = 0

    def _ids_upto(self, place: int) -> Iterator[str]:
        """Yield the IDs of messages up to a place, which the log begins with."""
        log = self.log
        for message_id in log.ids():
            if log.place(message_id) <= place:
                yield message_id
            elif log[message_id].role is not Role.TOOL:  # a result may be in front of what is older
                break

    def evict(self) -> Sequence[str]:
        """See :meth:`View.evict`."""
        evicting, self._evicting = self._evicting, []
        return evicting

    def stale_values(self, ids: AbstractSet[str] | None, held: AbstractSet[str]) -> Iterable[str]:
        """See :meth:`View.stale_values`."""
        covered = {*self.covered, *self.inherited}
        told = covered - held if ids is None else covered & ids
        return [SUMMARY] if told else []

    # What to summarise

    def size(self, messages: Iterable[Message]) -> int:
        """Return the tokens of ``messages``, counted once for each."""
        if self.max_tokens is None:
            return 0
        if len(self._sizes) > 64 + 2 * len(self.log):
            self._sizes = {i: n for i, n in [*self._sizes.items()] if i in self.log}
        total, sizes = 0, self._sizes
        for message in messages:
            if message.id not in sizes:
                sizes[message.id] = message_tokens(message, self.counter)
            total += sizes[message.id]
        return total

    def is_too_much(self) -> bool:
        """Return whether a limit is exceeded."""
        if self.max_messages is not None and len(self.log) > self.max_messages:
            return True
        if self.max_tokens is None:
            return False
        beside = self.counter(str(self.state.get("text", "")))
        beside += value_tokens(self._values, self.counter)
        return self.size(self.log) + beside > self.max_tokens

    def target(self) -> int:
        """Return how many messages are to stay as they are."""
        if self._keep is not None:
            return self._keep
        return len(self.log) if self.max_messages is None else max(1, self.max_messages // 2)

    def choose(self, messages: Sequence[Message]) -> list[Message]:
        """Return the oldest messages, in whole groups, without which few enough are left.

        Args:
            messages: Those of the log.
        """
        left, tokens = len(messages), self.size(messages)
        most_tokens = None if self.max_tokens is None else self.max_tokens // 2
        chosen: set[str] = set()
        speaker = next((m.id for m in reversed(messages) if m.role is ASSISTANT), None)
        newest = max(messages, key=lambda m: self.log.find(m.id) or 0).id if messages else ""
        staying = self._staying_system(messages) | {newest}
        for members in group(messages):
            if left <= self.target() and (most_tokens is None or tokens <= most_tokens):
                break
            waits = members[0].id == speaker and not is_whole(members)
            stays = waits or any(m.id in staying for m in members)
            if not stays and not any(m.pinned or m.id == self._goal_id for m in members):
                left -= len(members)
                tokens -= self.size(members)
                chosen.update(m.id for m in members)
        return [message for message in messages if message.id in chosen]

    def _staying_system(self, messages: Iterable[Message]) -> set[str]:
        """Return the first system message and the newest others that fit in half of the limits."""
        system = [message for message in messages if message.role is Role.SYSTEM]
        room = sys.maxsize if self.max_messages is None else max(2, self.max_messages // 2)
        room_tokens = sys.maxsize if self.max_tokens is None else self.max_tokens // 2
        staying = {message.id: message for message in [*system[:1], *system[-1:]]}
        tokens = self.size(staying.values())
        for message in reversed(system[1:-1]):
            tokens += self.size([message])
            if len(staying) >= room or tokens > room_tokens:
                break
            staying[message.id] = message
        return {*staying}

    def portions(self, messages: Sequence[Message]) -> Iterator[list[Message]]:
        """Yield ``messages`` in whole groups, as many at a time as the limits allow."""
        portion: list[Message] = []
        tokens = 0
        for members in group(messages):
            more = self.size(members)
            many = self.max_messages and len(portion) + len(members) > self.max_messages
            long = self.max_tokens and tokens + more > self.max_tokens
            if portion and (many or long):
                yield portion
                portion, tokens = [], 0
            portion += members
            tokens += more
        if portion:
            yield portion

    def replacement(
        self, chosen: Sequence[Message], before: JsonValue, state: dict[str, JsonValue]
    ) -> dict[str, JsonValue] | None:
        """Return ``state`` as the value of a summary that covers ``chosen`` as well.

        None if what the summary was made of has changed while it was written.
        """
        log, covered = self.log, {message.id for message in chosen}
        if self.state != before or not covered <= log.ids():
            return None
        upto = max(cast(int, self.state.get("upto", 0)), *map(log.place, covered))
        spared = [i for i in self._ids_upto(upto) if i not in covered]
        state |= {"upto": upto, "spared": cast("list[JsonValue]", spared)}
        if self.inherited:
            state["ids"] = cast("list[JsonValue]", [*self.inherited])
        return state

    def fit(self, summary_tokens: int) -> list[Message]:
        """Return all messages in whole groups, or a window of them if they are too many."""
        window = Window(self.max_messages, self.max_tokens, self.counter)
        window.reserve(summary_tokens + value_tokens(self._values, self.counter))
        window.set_goal(self._goal_id)
        window.attach(self.log)
        window.resume(Evicted(0, [], self._spoke))
        hidden = {*window.evict()}
        return window.fit(message for message in self.log if message.id not in hidden)
