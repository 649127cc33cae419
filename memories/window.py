"""The window: which groups of a record a model is shown, within limits of messages and tokens.

Each message costs the same however many came before it: groups enter at one end of a queue and
leave at the other. They leave whole, oldest first. These stay: pinned messages, the goal, the
newest group, and the last one that asked for calls as long as some are unanswered.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Sequence

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.tokens import Counter, fit_group, message_tokens
from agent_brain.tools.values import is_count

TOOL, ASSISTANT = Role.TOOL, Role.ASSISTANT  # looking up a member of an enum takes a while


class Group:
    """Messages that leave together."""

    __slots__ = ("messages", "missing", "tokens")

    def __init__(self, message: Message, tokens: int) -> None:
        self.messages = [message]
        self.tokens = tokens  # as shown
        self.missing: set[str] | None = None  # calls without a result yet


class Window:
    """Groups within limits.

    Args:
        max_messages: At most so many messages are shown; None for no such limit.
        max_tokens: At most so many tokens; None for no such limit.
        counter: Counts the tokens of a text.

    Raises:
        MemoryDefinitionError: A limit that is not a whole number of at least 1, or no counter.
    """

    def __init__(self, max_messages: int | None, max_tokens: int | None, counter: Counter) -> None:
        for name, limit in (("max_messages", max_messages), ("max_tokens", max_tokens)):
            if limit is not None and not is_count(limit):
                raise MemoryDefinitionError(f"{name}= must be at least 1, or None: not {limit!r}")
        if not callable(counter):
            raise MemoryDefinitionError(f"counter= must be a function of a text: not {counter!r}")
        self.max_messages = max_messages
        self.max_tokens = max_tokens
        self.counter = counter
        self._most = sys.maxsize if max_messages is None else max_messages
        self._most_tokens = sys.maxsize if max_tokens is None else max_tokens
        self.count = 0
        self.tokens = 0
        self._short: dict[str, Message] = {}  # what is shown shortened, by id
        self._groups: deque[Group | str] = deque()  # an id stands for a message without tokens
        self._fixed_tokens = 0  # of pinned messages
        self._asking: dict[str, Group] = {}  # by the id of a call
        self._open: Group | None = None  # the last group with calls, while results are missing
        self._broken: list[Group] = []  # a call or a result is missing, and will not come
        self._goal_id: str | None = None
        self._goal: Group | str | None = None  # set aside when it became the oldest group

    def set_goal(self, message_id: str | None) -> None:
        """Keep this message; the one kept so far is a message like others again."""
        self._goal_id = message_id
        if self._goal is not None:
            self._groups.appendleft(self._goal)
            self._goal = None

    def add(self, messages: Iterable[Message]) -> None:
        """Take new messages in at the end."""
        for message in messages:
            self.count += 1
            fields = message.__dict__  # attributes of pydantic models are slow, and this is often
            role = fields["role"]
            if role is TOOL or role is ASSISTANT:
                self._add_step(message)
            elif fields["pinned"]:
                self._fixed_tokens += self._count(message)
            elif self.max_tokens is None:
                self._groups.append(fields["id"])
            else:
                self._groups.append(Group(message, self._count(message)))

    def _count(self, message: Message) -> int:
        if self.max_tokens is None:
            return 0
        tokens = message_tokens(message, self.counter)
        self.tokens += tokens
        return tokens

    def _add_step(self, message: Message) -> None:
        """What the model says, or a result."""
        tokens = self._count(message)
        if message.role is TOOL:
            asking = self._asking.get(message.tool_call_id or "")
            if asking is not None:
                self._answer(asking, message, tokens)
                return
        elif self._open is not None:  # the model speaks again: nobody waits for what is missing
            self._broken.append(self._open)
            self._open = None
        if message.pinned and not message.tool_calls and message.role is ASSISTANT:
            self._fixed_tokens += tokens
            return
        group = Group(message, tokens)
        self._groups.append(group)
        if message.role is TOOL:
            self._broken.append(group)
        elif message.tool_calls:
            self._open = group
            group.missing = {call.id for call in message.tool_calls}
            for call_id in group.missing:
                self._asking[call_id] = group

    def _answer(self, group: Group, result: Message, tokens: int) -> None:
        """``result`` joins the group that asked for it."""
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

    def overflow(self) -> list[str]:
        """Take out what does not fit any more, after shortening what is too big.

        Returns:
            The ids of what leaves, oldest first.
        """
        if self.max_tokens is not None:
            self.shorten_newest()
        elif self.count <= self._most:
            return []
        leaving: list[str] = []
        groups = self._groups
        while len(groups) > 1 and (self.count > self._most or self.tokens > self._most_tokens):
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
            self._squeeze(self.max_tokens)
        return leaving

    def _leave(self, group: Group) -> None:
        self.count -= len(group.messages)
        self.tokens -= group.tokens
        if group.missing is not None:
            for call in group.messages[0].tool_calls:
                if self._asking.get(call.id) is group:
                    del self._asking[call.id]
        if self._broken and group in self._broken:
            self._broken.remove(group)
        if self._short:
            for message in group.messages:
                self._short.pop(message.id, None)

    def shorten_newest(self) -> None:
        """Have a newest group that exceeds the budget take half of it, to leave room for others."""
        if self.max_tokens is not None and self._groups:
            newest = self._groups[-1]
            room = self.max_tokens - self._fixed_tokens - self._goal_tokens()
            if isinstance(newest, Group) and newest.tokens > room:
                self._shorten(newest, room // 2)

    def _squeeze(self, max_tokens: int) -> None:
        """Only what has to stay is left, and it is too much: shorten it, the goal last."""
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
        for message in group.messages:
            self._short.pop(message.id, None)
        fitted = fit_group(group.messages, budget, self.counter)
        self._short.update({message.id: message for message in fitted})
        shown = [self._short.get(message.id, message) for message in group.messages]
        tokens = sum(message_tokens(message, self.counter) for message in shown)
        self.tokens += tokens - group.tokens
        group.tokens = tokens

    def show(self, messages: Sequence[Message]) -> list[Message]:
        """What is shown of ``messages``, which are all that is in the window."""
        if not self._short and not self._broken:
            return list(messages)
        hidden = {message.id for group in self._broken for message in group.messages}
        return [self._short.get(m.id, m) for m in messages if m.id not in hidden]
