"""A memory for tests that records its calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, as_message, checked_messages
from agent_brain.memories.views.groups import arranged
from agent_brain.testing.differences import explain_actions, explain_messages
from agent_brain.tools.action import Action
from agent_brain.tools.toolset import ToolLike


class FakeMemory(Memory):
    """A minimal memory that records its calls.

    For example::

        memory = FakeMemory("What is 1 + 2?", [Message.system("Be brief.")])
        await run_state(state, memory)
        memory.assert_updated(Message.assistant("3"))

    Assertions compare messages by role, text, name, tool calls, error flag and attachments; IDs and
    times are ignored. They raise AssertionError with a line-by-line difference.

    Args:
        goal: The current goal.
        messages: Messages that it already holds: one, or several.
        tools: The tools of the agent.
        next_actions: Calls that wait to run: one, or several.

    Attributes:
        calls: ``(method, argument)`` for every call, in order; None for methods without one.
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
        """The arguments of ``update``, call by call."""
        return [argument for method, argument in self.calls if method == "update"]

    async def set_goal(self, goal: str | Message) -> None:
        """Set the goal."""
        self.calls.append(("set_goal", goal))
        if self._goal is not None:
            self._messages.insert(self._turn_start, self._goal)
        self._turn_start = len(self._messages)
        self._goal = as_message(goal)

    async def update(self, messages: list[Message]) -> list[str] | Any:
        """Add the messages; known IDs are ignored; return the IDs of the others.

        Raises:
            MemoryUseError: Something in it is not a message.
        """
        given = checked_messages(messages)
        self.calls.append(("update", list(given)))
        known = {message.id for message in (*self._turn(), *self._messages)}
        added: list[str] = []
        for message in given:
            if message.id not in known:
                known.add(message.id)
                added.append(message.id)
                self._messages.append(message)
        return added

    async def goal(self) -> list[Message]:
        """Return the goal."""
        self.calls.append(("goal", None))
        return [] if self._goal is None else [self._goal]

    async def context(self) -> list[Message]:
        """Return earlier turns, the goal and the messages of this turn."""
        self.calls.append(("context", None))
        return arranged(self._messages[: self._turn_start] + self._turn())

    async def turn(self) -> list[Message]:
        """Return the goal and the messages of this turn."""
        self.calls.append(("turn", None))
        return self._turn()

    def _turn(self) -> list[Message]:
        goal = [] if self._goal is None else [self._goal]
        return goal + self._messages[self._turn_start :]

    async def dump(self) -> list[Message]:
        """Return the messages."""
        self.calls.append(("dump", None))
        return list(self._messages)

    def assert_messages(self, expected: Iterable[Message]) -> None:
        """Check all messages, without the current goal, in order."""
        _check(explain_messages("The memory holds different messages", expected, self._messages))

    def assert_updated(self, *expected: Message) -> None:
        """Check what all calls of ``update`` added, in order; without arguments, that any did."""
        if expected or not self.updates:
            wanted = expected or (Message.system("(anything)"),)
            _check(explain_messages("Different messages were added", wanted, self._added()))

    def assert_not_updated(self) -> None:
        """Check that no messages were added."""
        _check(explain_messages("Messages were added", (), self._added()))

    def _added(self) -> list[Message]:
        return [message for messages in self.updates for message in messages]

    def assert_next_actions(self, expected: Iterable[Action]) -> None:
        """Check the calls that wait to run, in order, by name and arguments."""
        _check(explain_actions("Different calls wait to run", expected, self.next_actions))

    def assert_goal(self, expected: str | Message | None) -> None:
        """Check the current goal; None for no goal."""
        wanted = [] if expected is None else [as_message(expected)]
        found = [] if self._goal is None else [self._goal]
        _check(explain_messages("The goal is different", wanted, found))


def _check(difference: str | None) -> None:
    if difference is not None:
        raise AssertionError(difference)
