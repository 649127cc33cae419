"""The view that shows everything."""

from __future__ import annotations

from collections.abc import Sequence

from agent_brain.memories.message import Message
from agent_brain.memories.views.base import View
from agent_brain.memories.views.groups import Answered


class Everything(View):
    """All messages in order, but no calls that never got a result, as models refuse them.

    It remembers what it has looked at: a call of :meth:`show` looks at what is new.
    """

    tail = 0

    def reset(self) -> None:
        """See :meth:`View.reset`."""
        self._calls = Answered()
        self._read = 0
        self._last = ""  # the ID of the last message that was read

    def remove(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.remove`."""
        self.reset()

    def show(self) -> list[Message]:
        """See :meth:`View.show`."""
        messages = self.log.all()
        if self._read and messages[self._read - 1].id != self._last:
            self.reset()  # a result has moved behind its call
        if self._read < len(messages):
            self._calls.read(messages[self._read :])
            self._read, self._last = len(messages), messages[-1].id
        hidden = self._calls.hidden
        return [message for message in messages if message.id not in hidden] if hidden else messages
