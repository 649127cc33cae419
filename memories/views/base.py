"""The base class for views, what a memory shows of the messages in its store, and the usual one."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import JsonValue

from agent_brain.memories.message import Message
from agent_brain.memories.views.groups import Answered

if TYPE_CHECKING:
    from agent_brain.memories.store.events import Evicted
    from agent_brain.memories.store.log import MessageLog


class View:
    """Base class for views of a message store.

    A store notifies its views of every change once it is in the journal and in the log, in order.
    When a session is opened it calls :meth:`reset`, then the same methods for what the journal
    holds, so a view stores nothing itself. The methods must not await. All of them do nothing by
    default::

        class Titles(View):
            def show(self):
                return [message for message in self.log if message.role is Role.SYSTEM]

    Attributes:
        log: The messages of the store, set by :meth:`attach`. Views read it; none may change it.
        tail: How many of the newest messages :meth:`add` is called with when a session is opened;
            None for all of them. Of the messages before the tail it is called with system and
            pinned messages and the goal. A view with a tail of 0 reads ``log`` when it is asked,
            and older messages are decoded only when they are read.
        left: The place of the newest message that the view does not show any more; None if it needs
            no more than its tail. While this is not in the second half of the tail, the session is
            opened with a longer tail.
        keeps_old: Whether the log keeps the messages before the tail; a window needs only system
            and pinned messages of them.
        keeps_evicted: Whether RAM keeps what the view has evicted if there is no journal.
    """

    tail: int | None = None
    left: int | None = None
    keeps_old: ClassVar[bool] = True
    keeps_evicted: ClassVar[bool] = False
    log: MessageLog

    @property
    def measures(self) -> bool:
        """Whether :meth:`measure` counts something; asked once, when the view is registered."""
        return type(self).measure is not View.measure

    def attach(self, log: MessageLog) -> None:
        """Read from ``log`` from now on; called once, when the view is registered."""
        self.log = log

    def fresh(self) -> Self:
        """Return a view with the same options for a fork of the memory, which then resets it."""
        return copy.copy(self)

    def reset(self) -> None:
        """Start again with an empty log, in containers of its own: it may be a copy."""

    def add(self, messages: Sequence[Message]) -> None:
        """Add ``messages``, which are in the log now, from one update; a long one is in parts."""

    def remove(self, messages: Sequence[Message]) -> None:
        """Remove ``messages``, which are no longer in the log."""

    def measure(self, messages: Sequence[Message], values: Iterable[JsonValue] = ()) -> None:
        """Count what is to be added, before it is written: an error here leaves all as it was.

        Args:
            messages: They are added next.
            values: All values that are kept then, and those that they replace.
        """

    def mark(self, upto: int) -> Evicted | None:
        """Return what has left the view, for the journal; None if nothing of it matters.

        It is written before entries of the session are removed: without them, reading the session
        again would show older messages instead.

        Args:
            upto: The place of the newest message that was evicted.
        """
        return None

    def resume(self, mark: Evicted) -> None:
        """Show what was shown when :meth:`mark` returned ``mark``, as if it had just been added."""

    def set_goal(self, message_id: str | None) -> None:
        """Take the message with this ID as the goal; it may not be in the log yet."""

    def update_pins(self) -> None:
        """Look at the log again: messages were pinned or unpinned."""

    def set_value(self, values: Mapping[str, JsonValue], name: str) -> None:
        """Use ``values``, which a memory keeps beside its messages; ``name`` has changed."""

    def evict(self) -> Sequence[str]:
        """Return the IDs of messages that the store is to drop from RAM; called after each change.

        They stay in a durable journal.
        """
        return ()

    def stale_values(self, ids: AbstractSet[str] | None, held: AbstractSet[str]) -> Iterable[str]:
        """Return the names of values that may quote forgotten messages.

        Args:
            ids: The IDs of the messages that are forgotten; None if any message may be meant.
            held: The IDs of all messages that the memory or its journal still has.
        """
        return ()

    def show(self) -> list[Message]:
        """Return the messages that a model sees."""
        return list(self.log)


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
