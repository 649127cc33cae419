"""The recent end of a conversation, which is always shown, and the rest, which may be recalled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agent_brain.memories.message import Message
from agent_brain.memories.views.base import View
from agent_brain.memories.views.groups import arranged, with_partners
from agent_brain.memories.views.tokens import Counter
from agent_brain.memories.views.window import Window


class Recent(View):
    """The newest messages of a log that keeps all; costs the same however long the log is.

    Args:
        max_messages: How many messages at most.
        max_tokens: How many tokens at most; None for no such limit.
        counter: Counts the tokens of a text.

    Attributes:
        older: IDs of the messages before the recent end, in order.

    Raises:
        MemoryDefinitionError: A limit that is not a whole number from 1.
    """

    def __init__(self, max_messages: int, max_tokens: int | None, counter: Counter) -> None:
        self._limits = max_messages, max_tokens, counter
        self.reset()

    def reset(self) -> None:
        """See :meth:`View.reset`."""
        self._window = Window(*self._limits)
        self._shown: dict[str, None] = {}
        self.older: dict[str, None] = {}

    def set_goal(self, message_id: str | None) -> None:
        """Keep this message at the recent end, however old it is."""
        self._window.set_goal(message_id)

    def add(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.add`."""
        self._shown.update((message.id, None) for message in messages)
        self._window.add(messages)
        self._let_go()

    def set_value(self, values: Mapping[str, JsonValue], name: str) -> None:
        """Leave room for values that are shown beside the messages."""
        self._window.set_value(values, name)
        self._let_go()

    def _let_go(self) -> None:
        leaving = self._window.evict()
        for message_id in leaving:
            del self._shown[message_id]
            self.older[message_id] = None
        if len(leaving) > len(self._shown):
            self._shown = dict.fromkeys(self._shown)  # iterating over a dict visits its gaps

    def remove(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.remove`."""
        recent = [m.id for m in messages if self.older.pop(m.id, self) is self]
        if recent:
            for message_id in recent:
                self._shown.pop(message_id, None)
            self._window.refill(self._messages())

    def update_pins(self) -> None:
        """Show what is pinned, with its group, also if it had left the recent end."""
        older = [message for message in map(self.log.get, self.older) if message is not None]
        back = with_partners([message.id for message in older if message.pinned], older)
        for message_id in back:
            del self.older[message_id]
        if back:
            self._shown = dict.fromkeys(sorted([*self._shown, *back], key=self.log.place))
        self._window.refill(self._messages())
        self._let_go()

    def show(self) -> list[Message]:
        """Return the recent messages, in the order they happened."""
        return self._window.fit(self._messages())

    def _messages(self) -> list[Message]:
        found = map(self.log.get, self._shown)
        shown = [message for message in found if message is not None]
        return arranged(shown) if self.log.moved else shown
