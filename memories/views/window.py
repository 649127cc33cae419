"""The window: which groups of messages a model is shown, within limits of messages and tokens.

A message costs the same however many came before it: groups enter at one end of a queue and leave
at the other, whole, oldest first. These stay: pinned messages, the goal, the newest group, the last
one that asked for calls as long as some have no result, and system messages while they take at most
half of a limit; beyond it the first and the newest of them stay.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import ClassVar

from pydantic import JsonValue

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message, Role, is_partial
from agent_brain.memories.store.checks import whole_number
from agent_brain.memories.store.events import Evicted
from agent_brain.memories.views.base import View
from agent_brain.memories.views.tokens import (
    MESSAGE_TOKENS,
    Counter,
    fit_group,
    message_tokens,
    shown_texts,
)

# Looking up an enum member is slow.
TOOL, ASSISTANT, SYSTEM = Role.TOOL, Role.ASSISTANT, Role.SYSTEM
CALL_ID = attrgetter("id")


class Group:
    """Messages that leave together."""

    __slots__ = ("messages", "missing", "tokens")

    def __init__(self, message: Message, tokens: int) -> None:
        self.messages = [message]
        self.tokens = tokens  # as shown
        self.missing: set[str] | None = None  # calls without a result yet


class Window(View):
    """Groups within limits. It evicts what does not fit, and the store drops that from RAM.

    Args:
        max_messages: How many messages are shown at most; None for no such limit.
        max_tokens: How many tokens are shown at most; None for no such limit.
        counter: Counts the tokens of a text.

    Raises:
        MemoryDefinitionError: A limit that is not a whole number from 1, or no counter.
    """

    keeps_old: ClassVar[bool] = False
    _goal: Group | str | None = None  # set aside when it became the oldest group
    _fixed_tokens: int = 0  # of what cannot be shortened

    def __init__(self, max_messages: int | None, max_tokens: int | None, counter: Counter) -> None:
        whole_number("max_messages", max_messages, optional=True)
        whole_number("max_tokens", max_tokens, optional=True)
        if not callable(counter):
            raise MemoryDefinitionError(f"counter= must be a function of a text: not {counter!r}")
        self.max_messages = max_messages
        self.max_tokens = max_tokens
        self.counter = counter
        self.tail = 100 if max_messages is None else 2 * max_messages + 10
        self._most = sys.maxsize if max_messages is None else max_messages
        self._most_tokens = sys.maxsize if max_tokens is None else max_tokens
        self._reserved = 0
        self._goal_id: str | None = None
        self._measured: dict[str, int] = {}  # tokens of what comes next, by ID
        self._beside: dict[str, int] = {}  # tokens of texts that are shown beside the messages
        self._begin()

    def _begin(self) -> None:
        self.count = 0
        self._sizes: dict[str, int] = {}  # tokens by ID, of whole messages
        self._pending: list[str] = []  # removed, and not yet returned by evict()
        self.tokens = self._reserved
        self._spoke = 0  # place of the last assistant message that was evicted
        self._short: dict[str, Message] = {}  # what is shown shortened, by ID
        self._groups: deque[Group | str] = deque()  # an ID stands for a message without tokens
        self._fixed_tokens = self._reserved
        self._system: list[Group] = []  # an empty deque is large
        self._system_tokens = 0
        self._asking: dict[str, Group] = {}  # by the ID of a call
        self._open: Group | None = None  # the last group with calls, while results are missing
        self._broken: list[Group] = []  # a call or a result is missing, and will not come
        self._goal = None

    def reset(self) -> None:
        """See :meth:`View.reset`."""
        self._reserved, self._goal_id = 0, None
        self._begin()

    def set_goal(self, message_id: str | None) -> None:
        """Keep this message; the previous goal is a message like others again."""
        self._goal_id = message_id
        if self._goal is not None:
            self._groups.appendleft(self._goal)
            self._goal = None

    def set_value(self, values: Mapping[str, JsonValue], name: str) -> None:
        """Leave room for values that are shown beside the messages."""
        if self.max_tokens is not None:
            texts = shown_texts(values.values())
            self._beside |= self._measure_texts(texts)
            self.reserve(sum(MESSAGE_TOKENS + self._beside[text] for text in texts))

    def reserve(self, tokens: int) -> None:
        """Leave room for ``tokens`` of something else that is shown."""
        if self.max_tokens is not None:
            self._fixed_tokens += tokens - self._reserved
            self.tokens += tokens - self._reserved
            self._reserved = tokens

    def remove(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.remove`."""
        self._fill_again()

    def update_pins(self) -> None:
        """See :meth:`View.update_pins`."""
        self._fill_again()

    def mark(self, upto: int) -> Evicted | None:
        """See :meth:`View.mark`."""
        if not upto and self.max_tokens is None:
            return None
        places = (self.log.place(message.id) for message in self._messages())
        return Evicted(upto, [place for place in places if place <= upto], self._spoke)

    def resume(self, mark: Evicted) -> None:
        """See :meth:`View.resume`."""
        self._spoke = mark.spoke
        self._fill_again()

    def _messages(self) -> list[Message]:
        """Return the messages of the window, whole."""
        return self.log.all()

    def _fill_again(self) -> None:
        spoke = self._spoke
        try:
            self.refill(self._messages())
        finally:
            self._spoke = spoke
            if self._open is not None and self.log.place(self._open.messages[0].id) < spoke:
                self.abandon()

    @property
    def measures(self) -> bool:
        """See :attr:`View.measures`."""
        return self.max_tokens is not None or type(self).measure is not Window.measure

    def measure(self, messages: Iterable[Message], values: Iterable[JsonValue] = ()) -> None:
        """See :meth:`View.measure`."""
        if self.max_tokens is None:
            return
        self._measured = {
            m.id: self._sizes[m.id] if m.id in self._sizes else message_tokens(m, self.counter)
            for m in messages
        }
        if values:
            self._beside = self._measure_texts(shown_texts(values))

    def _measure_texts(self, texts: Iterable[str]) -> dict[str, int]:
        known = self._beside
        return {text: known[text] if text in known else self.counter(text) for text in texts}

    def refill(self, messages: Iterable[Message]) -> None:
        """Contain ``messages`` and nothing else."""
        messages = list(messages)
        self.measure(messages)
        self._begin()
        failed: Exception | None = None
        for message in messages:
            Window.add(self, [message])  # a subclass is told of new messages only
            try:
                self.shorten_newest()
            except Exception as error:  # of the counter: all must be here before it is raised
                failed = failed or error
        if failed is not None:
            raise failed

    def add(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.add`."""
        if self.max_tokens is not None and any(m.id not in self._measured for m in messages):
            self.measure(messages)
        for message in messages:
            self.count += 1
            fields = message.__dict__  # attributes of pydantic models are slow, and this is often
            role, tokens = fields["role"], 0
            if self.max_tokens is not None:
                tokens = self._sizes[message.id] = self._measured[message.id]
                self.tokens += tokens
            if role is TOOL or role is ASSISTANT:
                self._add_step(message, tokens)
            elif fields["pinned"]:
                self._fixed_tokens += tokens
            elif role is SYSTEM:
                self._system.append(Group(message, tokens))
                self._system_tokens += tokens
                self._fixed_tokens += tokens
            else:
                group = fields["id"] if self.max_tokens is None else Group(message, tokens)
                self._groups.append(group)

    def _add_step(self, message: Message, tokens: int) -> None:
        """Add what the model said, or a result."""
        if message.role is TOOL:
            asking = self._asking.get(message.tool_call_id or "")
            if asking is not None:
                self._answer(asking, message, tokens)
                return
        elif self._open is not None:  # the model speaks again: nobody waits for what is missing
            self.abandon()
        if message.pinned and not message.tool_calls and message.role is ASSISTANT:
            self._fixed_tokens += tokens
            return
        group = Group(message, tokens)
        self._groups.append(group)
        if message.role is TOOL:
            self._broken.append(group)
        elif message.tool_calls:
            self._open = group
            group.missing = {*map(CALL_ID, message.tool_calls)}
            for call_id in group.missing:
                self._asking[call_id] = group

    def _answer(self, group: Group, result: Message, tokens: int) -> None:
        """Add ``result`` to the group that asked for it."""
        group.messages.append(result)
        group.tokens += tokens
        if self._groups and self._groups[-1] is not group and group in self._groups:
            self._groups.remove(group)  # something came between: what is new is the result
            self._groups.append(group)
        missing = group.missing
        if missing:
            missing.discard(result.tool_call_id or "")
            if not missing:
                if group is self._open:
                    self._open = None
                elif group in self._broken:
                    self._broken.remove(group)

    def abandon(self) -> None:
        """Stop waiting for missing results: the model has spoken since."""
        if self._open is not None:
            self._broken.append(self._open)
            self._open = None

    def evict(self) -> Sequence[str]:
        """Remove what does not fit any more, after shortening what is too big.

        Returns:
            The IDs of system messages beyond their half, then of groups, oldest first.
        """
        if self.max_tokens is not None:
            self.shorten_newest()
        elif self.count <= self._most:
            return ()
        elif self.count == self._most + 1 and len(self._system) <= 2:
            oldest = self._groups[0] if len(self._groups) > 1 else None
            if type(oldest) is str and oldest != self._goal_id:  # one comes, one leaves
                self.count -= 1
                return (self._groups.popleft(),)  # type: ignore[return-value]
        leaving, self._pending = [*self._pending, *self._leave_system()], []
        groups = self._groups
        while self._is_over() and len(groups) > self._newest():
            group = groups[0]
            if group is self._open:
                break
            del groups[0]
            if isinstance(group, str):
                if group == self._goal_id:
                    self._goal = group
                else:
                    self.count -= 1
                    leaving.append(group)
            elif group.messages[0].id == self._goal_id:
                self._goal = group
            elif any(message.pinned for message in group.messages):
                self._fixed_tokens += group.tokens
            else:
                self._leave(group)
                leaving += [message.id for message in group.messages]
        if self.max_tokens is not None and self.tokens > self.max_tokens:
            self._pending = leaving
            self._squeeze(self.max_tokens)
            self._pending = []
        return leaving

    def _newest(self) -> int:
        """Return how many groups at the end stay: one, and partial answers behind it."""
        groups, count = self._groups, 1
        while count < len(groups):
            newest = groups[-count]
            if isinstance(newest, str) or not is_partial(newest.messages[0]):
                break
            count += 1
        return count

    def _is_over(self) -> bool:
        return self.count > self._most or self.tokens > self._most_tokens

    def _leave_system(self) -> list[str]:
        """Remove the system messages beyond their half, but neither the first nor the newest."""
        leaving: list[str] = []
        system = self._system
        most, most_tokens = self._most // 2, self._most_tokens // 2
        while len(system) > 2 and self._is_over():
            if len(system) <= most and self._system_tokens <= most_tokens:
                break
            oldest = system.pop(1)
            if oldest.messages[0].id == self._goal_id:
                system.append(oldest)
                continue
            leaving.append(oldest.messages[0].id)
            self._fixed_tokens -= oldest.tokens
            self._system_tokens -= oldest.tokens
            self._leave(oldest)
        return leaving

    def _leave(self, group: Group) -> None:
        if group.messages[0].role is ASSISTANT:
            self._spoke = max(self._spoke, self.log.place(group.messages[0].id))
        self.count -= len(group.messages)
        self.tokens -= group.tokens
        if group.missing is not None:
            for call in group.messages[0].tool_calls:
                if self._asking.get(call.id) is group:
                    del self._asking[call.id]
        if self._broken and group in self._broken:
            self._broken.remove(group)
        for message in group.messages if self._sizes else ():
            self._sizes.pop(message.id, None)
            self._short.pop(message.id, None)

    def shorten_newest(self) -> None:
        """Shorten a newest group that exceeds the budget to half of it."""
        if self.max_tokens is not None and self._groups:
            newest = self._groups[-1]
            room = self.max_tokens - self._fixed_tokens - self._goal_tokens()
            if isinstance(newest, Group) and newest.tokens > room:
                self._shorten(newest, room // 2)

    def _squeeze(self, max_tokens: int) -> None:
        """Shorten what has to stay and exceeds the limit, the goal last."""
        newest, room = self._groups[-1] if self._groups else None, max_tokens - self._fixed_tokens
        if isinstance(newest, Group):
            self._shorten(newest, room - self._goal_tokens())
        if isinstance(self._goal, Group) and self.tokens > max_tokens:
            self._shorten(self._goal, room // 2)
            if isinstance(newest, Group):
                self._shorten(newest, room - self._goal_tokens())

    def _goal_tokens(self) -> int:
        return self._goal.tokens if isinstance(self._goal, Group) else 0

    def _shorten(self, group: Group, budget: int) -> None:
        short = {m.id: m for m in fit_group(group.messages, budget, self.counter)}
        tokens = sum(
            message_tokens(short[m.id], self.counter) if m.id in short else self._sizes[m.id]
            for m in group.messages
        )
        for message in group.messages:
            self._short.pop(message.id, None)
        self._short |= short
        self.tokens += tokens - group.tokens
        group.tokens = tokens

    def show(self) -> list[Message]:
        """Return what fits, in the order it happened."""
        messages = self.log.all()
        return self.fit(messages) if self._short or self._broken else messages

    def fit(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages of the window, shortened to fit and in whole groups."""
        if not self._short and not self._broken:
            return messages if type(messages) is list else list(messages)
        hidden = {message.id for group in self._broken for message in group.messages}
        return [self._short.get(m.id, m) for m in messages if m.id not in hidden]
