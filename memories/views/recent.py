"""The recent end of a record, which is always shown, and the rest, which may be recalled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_brain.memories.message import Message
from agent_brain.memories.store.log import Record
from agent_brain.memories.views.groups import arranged, with_partners
from agent_brain.memories.views.tokens import Counter
from agent_brain.memories.views.window import Window


class Tail:
    """Which messages of a record are its recent end; costs the same however long the record is.

    Args:
        max_messages: At most so many messages.
        max_tokens: At most so many tokens; None for no such limit.
        counter: Counts the tokens of a text.

    Attributes:
        older: Ids of the messages before the end, in order.

    Raises:
        MemoryDefinitionError: A limit that is not a whole number from 1.
    """

    def __init__(self, max_messages: int, max_tokens: int | None, counter: Counter) -> None:
        self._window = Window(max_messages, max_tokens, counter)
        self._goal_id: str | None = None
        self._reserved = 0
        self._shown: dict[str, None] = {}
        self.older: dict[str, None] = {}

    def emptied(self) -> Tail:
        """A tail of the same size, with nothing in it."""
        window = self._window
        return Tail(window.max_messages or 1, window.max_tokens, window.counter)

    def set_goal(self, message_id: str | None) -> None:
        """Keep this message at the recent end, however old it is."""
        self._goal_id = message_id
        self._window.set_goal(message_id)

    def add(self, messages: Sequence[Message]) -> None:
        """Take new messages in."""
        self._shown.update((message.id, None) for message in messages)
        self._window.add(messages)
        self._let_go()

    def reserve(self, tokens: int) -> None:
        """Leave room for ``tokens`` of something else that is shown."""
        self._reserved = tokens
        self._window.reserve(tokens)
        self._let_go()

    def _let_go(self) -> None:
        leaving = self._window.overflow()
        for message_id in leaving:
            del self._shown[message_id]
            self.older[message_id] = None
        if len(leaving) > len(self._shown):
            self._shown = dict.fromkeys(self._shown)  # one with as many gaps is slow to walk

    def remove(self, ids: Iterable[str], record: Record) -> None:
        """Let messages go that ``record`` does not have any more."""
        gone = [message_id for message_id in ids if self.older.pop(message_id, self) is self]
        if not gone:
            return
        for message_id in gone:
            self._shown.pop(message_id, None)
        self.rebuild(record)

    def pins_changed(self, record: Record) -> None:
        """Show what is pinned in ``record``, with its group, also if it had left the end."""
        older = [message for message in map(record.get, self.older) if message is not None]
        back = with_partners([message.id for message in older if message.pinned], older)
        for message_id in back:
            del self.older[message_id]
        if back:
            self._shown = dict.fromkeys(sorted([*self._shown, *back], key=record.place))
        self.rebuild(record)
        self._let_go()

    def rebuild(self, record: Record) -> None:
        """Look at the shown messages of ``record`` again: some have gone, or were pinned."""
        self._window = self.emptied()._window
        self._window.reserve(self._reserved)
        self._window.set_goal(self._goal_id)
        for message in self._messages(record):
            self._window.add([message])
            self._window.shorten_newest()

    def show(self, record: Record) -> list[Message]:
        """What is shown of ``record``."""
        return self._window.show(self._messages(record))

    def _messages(self, record: Record) -> list[Message]:
        found = map(record.get, self._shown)
        shown = [message for message in found if message is not None]
        return arranged(shown) if record.moved else shown
