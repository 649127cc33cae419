"""The recent end of a conversation, which is always shown, and the rest, which may be recalled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agent_brain.common.text import count_tokens
from agent_brain.memories.message import Message
from agent_brain.memories.store.events import Evicted
from agent_brain.memories.views.groups import arranged, with_partners
from agent_brain.memories.views.tokens import Counter
from agent_brain.memories.views.window import Window


class Recent(Window):
    """The newest messages of a log that keeps all; costs the same however long the log is.

    It shows what a net needs: whole groups, the goal, pinned messages, the system messages while
    they take at most half of a limit, and as the newest group the one that last got a result, also
    if other messages have come between::

        class LastFive(StoredMemory):
            def __init__(self, tools=(), **options):
                super().__init__(tools, views=[Recent(5)], **options)

    Args:
        max_messages: How many messages at most; None for no such limit.
        max_tokens: How many tokens at most; None for no such limit.
        counter: Counts the tokens of a text.

    Attributes:
        fits: Whether all messages are shown.

    Raises:
        MemoryDefinitionError: A limit that is not a whole number from 1.
    """

    keeps_old: ClassVar[bool] = True
    fits: bool = False

    def __init__(
        self,
        max_messages: int | None,
        max_tokens: int | None = None,
        counter: Counter = count_tokens,
    ) -> None:
        super().__init__(max_messages, max_tokens, counter)
        self._start()

    def _start(self) -> None:
        self.left = 0
        self._shown: dict[str, None] = {}

    def reset(self) -> None:
        """See :meth:`View.reset`."""
        super().reset()
        self._start()

    def count_older(self) -> int:
        """Return how many messages there are before the recent end."""
        return len(self.log) - len(self._shown)

    def is_older(self, message_id: str) -> bool:
        """Return whether a message is before the recent end."""
        return message_id not in self._shown and message_id in self.log

    def add(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.add`."""
        self._shown.update((message.id, None) for message in messages)
        super().add(messages)

    def mark(self, upto: int) -> Evicted | None:
        """See :meth:`View.mark`; nothing is evicted from the log."""
        return super().mark(self.left or 0)

    def resume(self, mark: Evicted) -> None:
        """See :meth:`View.resume`."""
        staying = {*mark.staying}
        places = ((i, self.log.place(i)) for i in self.log.ids())
        self._shown = {i: None for i, at in places if at > mark.upto or at in staying}
        self.left = max(self.left or 0, mark.upto)
        super().resume(mark)

    def evict(self) -> Sequence[str]:
        """Let messages leave the recent end; they stay in the log."""
        leaving = super().evict()
        for message_id in leaving:
            del self._shown[message_id]
            self.left = max(self.left or 0, self.log.place(message_id))
        if self.log.leaving is not None:
            self.log.leaving += leaving
        if len(leaving) > len(self._shown):
            self._shown = dict.fromkeys(self._shown)  # iterating over a dict visits its gaps
        return ()

    def remove(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.remove`."""
        recent = [message.id for message in messages if message.id in self._shown]
        for message_id in recent:
            del self._shown[message_id]
        if recent:
            self._fill_again()

    def update_pins(self) -> None:
        """Show what is pinned, with its group, also if it had left the recent end."""
        back = [message_id for message_id in self.log.pinned() if message_id not in self._shown]
        if any(self.log[i].tool_calls or self.log[i].tool_call_id for i in back):
            back = with_partners(back, [m for m in self.log if m.id not in self._shown])
        self.measure([self.log[i] for i in [*self._shown, *back]])
        if back:
            self._shown = dict.fromkeys(sorted([*self._shown, *back], key=self.log.place))
        self._fill_again()
        self.evict()

    def show(self) -> list[Message]:
        """Return the recent messages, in the order they happened."""
        return self.fit(self._messages())

    def _messages(self) -> list[Message]:
        found = map(self.log.get, self._shown)
        shown = [message for message in found if message is not None]
        return arranged(shown) if self.log.moved else shown
