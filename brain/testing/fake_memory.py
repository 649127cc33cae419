"""A memory for tests: preloaded in a line, and a witness of every call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.views.groups import arranged
from agent_brain.testing.differences import explain_actions, explain_messages
from agent_brain.tools.action import Action
from agent_brain.tools.toolset import ToolLike


class FakeMemory(Memory):
    """The smallest memory there is, with a list of what was done to it.

    Args:
        goal: The current goal.
        messages: What it already holds; one message, or several.
        tools: What the agent may call.
        next_actions: Calls that wait to be run; one, or several.

    Attributes:
        calls: ``(method, argument)`` for every call, in order; the argument is None where the
            method takes none.
        updates: The lists of messages that ``update`` was called with, in order.
    """

    def __init__(
        self,
        goal: str | Message | None = None,
        messages: Message | Iterable[Message] = (),
        *,
        tools: Iterable[ToolLike] = (),
        next_actions: Action | Iterable[Action] = (),
    ) -> None:
        super().__init__(tools)
        self._goal = None if goal is None else as_message(goal)
        self._messages = [messages] if isinstance(messages, Message) else list(messages)
        for message in self._messages:
            if not isinstance(message, Message):
                raise MemoryUseError(
                    f"FakeMemory takes messages, such as Message.user('Hello'), not {message!r}"
                )
        self._turn_start = 0  # the messages it is made with belong to the current turn
        if isinstance(next_actions, Action):
            next_actions = [next_actions]
        self.next_actions = list(next_actions)
        self.calls: list[tuple[str, Any]] = []

    @property
    def updates(self) -> list[list[Message]]:
        """What ``update`` was called with, call by call."""
        return [argument for method, argument in self.calls if method == "update"]

    async def set_goal(self, goal: str | Message) -> None:
        """Take the goal, and note the call."""
        self.calls.append(("set_goal", goal))
        if self._goal is not None:
            self._messages.insert(self._turn_start, self._goal)
        self._turn_start = len(self._messages)
        self._goal = as_message(goal)

    async def update(self, messages: list[Message]) -> None:
        """Keep the messages, and note the call."""
        self.calls.append(("update", list(messages)))
        self._messages.extend(messages)

    async def goal(self) -> list[Message]:
        """The goal, and note the call."""
        self.calls.append(("goal", None))
        return [] if self._goal is None else [self._goal]

    async def context(self) -> list[Message]:
        """Earlier turns, the goal, what this turn has; and note the call."""
        self.calls.append(("context", None))
        return arranged(self._messages[: self._turn_start] + self._turn())

    async def turn(self) -> list[Message]:
        """The goal and what this turn has; and note the call."""
        self.calls.append(("turn", None))
        return self._turn()

    def _turn(self) -> list[Message]:
        goal = [] if self._goal is None else [self._goal]
        return goal + self._messages[self._turn_start :]

    async def dump(self) -> list[Message]:
        """A copy of the messages, and note the call."""
        self.calls.append(("dump", None))
        return list(self._messages)

    def assert_messages(self, expected: Iterable[Message]) -> None:
        """Check all that it holds, the current goal left out, in order.

        Messages are compared by role, text, name, tool calls, error flag and attachments; ids and
        times do not count.

        Raises:
            AssertionError: They differ, and where.
        """
        _check(explain_messages("The memory holds other messages", expected, self._messages))

    def assert_updated(self, *expected: Message) -> None:
        """Check what was added by ``update``, in all its calls together, in order; else as above.

        Without arguments, that anything was.

        Raises:
            AssertionError: Something else was added, or nothing.
        """
        added = [message for messages in self.updates for message in messages]
        if expected or not self.updates:
            wanted = expected or (Message.system("(anything)"),)
            _check(explain_messages("Other messages were added", wanted, added))

    def assert_not_updated(self) -> None:
        """Check that ``update`` added nothing.

        Raises:
            AssertionError: It did, and what.
        """
        added = [message for messages in self.updates for message in messages]
        _check(explain_messages("Messages were added", (), added))

    def assert_next_actions(self, expected: Iterable[Action]) -> None:
        """Check the calls that wait to be run, in order, by name and arguments.

        Raises:
            AssertionError: They differ, and where.
        """
        _check(explain_actions("Other calls wait to be run", expected, self.next_actions))

    def assert_goal(self, expected: str | Message | None) -> None:
        """Check the current goal; None for no goal.

        Raises:
            AssertionError: It is another one.
        """
        wanted = [] if expected is None else [as_message(expected)]
        found = [] if self._goal is None else [self._goal]
        _check(explain_messages("The goal is another one", wanted, found))


def _check(difference: str | None) -> None:
    if difference is not None:
        raise AssertionError(difference)
