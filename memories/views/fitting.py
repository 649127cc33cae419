"""Everything while it fits, and then the recent end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import cast

from pydantic import JsonValue

from agent_brain.common.text import count_tokens
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.events import Evicted
from agent_brain.memories.store.log import MessageLog
from agent_brain.memories.views.base import Everything
from agent_brain.memories.views.recent import Recent
from agent_brain.memories.views.tokens import MESSAGE_TOKENS, message_tokens

DIGEST = "digest"  # the value with the summary of what has left, and of some that is about to


class Fitting(Recent):
    """All messages, until they exceed a limit; then the recent end, in half of it.

    While all fit, a message costs no more than in a memory that shows everything.

    Args:
        max_tokens: The limit.

    Attributes:
        fits: Whether all messages are shown.
        max_whole: The limit, of which the window takes half.
        total: The tokens of all messages when they exceeded it.
    """

    fits: bool = True

    def __init__(self, max_tokens: int) -> None:
        super().__init__(None, max(1, max_tokens // 2))
        self.max_whole = max_tokens

    def _start(self) -> None:
        super()._start()
        self.fits, self.total = True, 0
        self._values: Mapping[str, JsonValue] = {}

    def _begin(self) -> None:
        if self.fits:  # a window that nothing has left takes no place
            self.tokens = self._reserved
        else:
            super()._begin()

    def limit(self, max_tokens: int) -> None:
        """Set the limit, before any message is added."""
        self.max_whole = max_tokens
        self.max_tokens = self._most_tokens = max(1, max_tokens // 2)

    def attach(self, log: MessageLog) -> None:
        """See :meth:`View.attach`."""
        super().attach(log)
        self._everything = Everything()
        self._everything.attach(log)

    def reset(self) -> None:
        """See :meth:`View.reset`."""
        super().reset()
        self._everything.reset()

    @property
    def measures(self) -> bool:
        """See :attr:`View.measures`: counting cannot fail."""
        return False

    def add(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.add`."""
        if not self.fits:
            super().add(messages)
            return
        for message in messages:
            fields = message.__dict__  # attributes of pydantic models are slow, and this is often
            text, self._shown[fields["id"]] = fields["content"], None
            if text.isascii() and not (fields["tool_calls"] or fields["attachments"]):
                self.tokens += MESSAGE_TOKENS + (len(text) + 3) // 4  # as message_tokens() returns
            else:
                self.tokens += message_tokens(message, count_tokens)
        if self.tokens > self.max_whole:
            self._shrink()

    def _shrink(self) -> None:
        """Show no more than the recent end from now on."""
        self.fits, self.total = False, self.tokens
        self._begin()
        self.refill(self._messages())

    def evict(self) -> Sequence[str]:
        """See :meth:`Recent.evict`."""
        return () if self.fits else super().evict()

    def remove(self, messages: Sequence[Message]) -> None:
        """See :meth:`View.remove`."""
        if not self.fits:
            super().remove(messages)
            return
        for message in messages:
            if message.id in self._shown:
                del self._shown[message.id]
                self.tokens -= message_tokens(message, count_tokens)
        self._everything.reset()

    def mark(self, upto: int) -> Evicted | None:
        """See :meth:`View.mark`."""
        return None if self.fits else super().mark(upto)

    def resume(self, mark: Evicted) -> None:
        """See :meth:`View.resume`."""
        if self.fits:
            self._shrink()
        super().resume(mark)

    def update_pins(self) -> None:
        """See :meth:`Recent.update_pins`."""
        if not self.fits:
            super().update_pins()

    def set_value(self, values: Mapping[str, JsonValue], name: str) -> None:
        """See :meth:`Recent.set_value`."""
        self._values = values
        super().set_value(values, name)
        if self.fits and self.tokens > self.max_whole:
            self._shrink()

    def show(self) -> list[Message]:
        """See :meth:`View.show`."""
        return self._everything.show() if self.fits else super().show()

    # What a summary covers

    @property
    def digest(self) -> dict[str, JsonValue]:
        """The value of the summary; empty if there is none."""
        return cast("dict[str, JsonValue]", self._values.get(DIGEST) or {})

    def stale_values(self, ids: AbstractSet[str] | None, held: AbstractSet[str]) -> Iterable[str]:
        """See :meth:`View.stale_values`."""
        upto = self.log.find(cast("str | None", self.digest.get("upto")))
        if upto is None or ids is None:
            return [DIGEST]
        return [DIGEST] if any((self.log.find(i) or sys.maxsize) <= upto for i in ids) else []

    def undigested(self) -> list[Message]:
        """Return what is to be summarised next: nothing, if all that has left is.

        Else what has left since, and the older half of what is shown, so that the next time is not
        soon; of a long backlog only the newest part, within the limit of tokens.
        """
        log, half = self.log, self.max_whole // 4
        upto = log.find(cast("str | None", self.digest.get("upto"))) or 0
        if (self.left or 0) <= upto:
            return []
        found: list[Message] = []
        newer, kept, tokens = None, 0, 0
        for message in reversed(log):
            if tokens > self.max_whole or log.place(message.id) <= upto:
                break
            if kept < half and message.id in self._shown:
                newer = message
                kept += message_tokens(message, count_tokens)
            else:
                found.append(message)
                tokens += message_tokens(message, count_tokens)
        while found and newer is not None and newer.role is Role.TOOL:  # not half of a group
            newer = found.pop(0)
        return [m for m in reversed(found) if not (m.pinned or m.role is Role.SYSTEM)]
