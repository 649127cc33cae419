"""The one ordered, indexed record of messages under every built-in memory.

Appending, looking up by id, role or cause, and telling a known id cost the same however long the
record is. Views read it; nothing else is stored about messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent_brain.memories.message import Message, Role


class Record:
    """Messages in order, each once, with indexes by id, role and cause."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}  # insertion order is the order of the record
        self._by_role: dict[str, dict[str, None]] = {}
        self._by_cause: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages.values())

    def __reversed__(self) -> Iterator[Message]:
        return reversed(self._messages.values())

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages

    def get(self, message_id: str) -> Message | None:
        """The message of that id, or None."""
        return self._messages.get(message_id)

    def unknown(self, messages: Iterable[Message]) -> list[Message]:
        """Those of ``messages`` that are not here yet, each id once."""
        fresh = {m.id: m for m in reversed(list(messages)) if m.id not in self._messages}
        return list(reversed(fresh.values()))

    def append(self, messages: Iterable[Message]) -> None:
        """Add messages whose ids are not here yet (see :meth:`unknown`)."""
        for message in messages:
            self._messages[message.id] = message
            self._by_role.setdefault(message.role, {})[message.id] = None
            if message.cause_by is not None:
                self._by_cause.setdefault(message.cause_by, {})[message.id] = None

    def remove(self, message_ids: Iterable[str]) -> list[Message]:
        """Take messages out; unknown ids are passed over. Returns what was removed."""
        removed = []
        for message_id in message_ids:
            message = self._messages.pop(message_id, None)
            if message is not None:
                self._by_role[message.role].pop(message_id)
                if message.cause_by is not None:
                    self._by_cause[message.cause_by].pop(message_id)
                removed.append(message)
        return removed

    def with_role(self, role: Role) -> list[Message]:
        """Messages of a role, in order."""
        return [self._messages[i] for i in self._by_role.get(role, ())]

    def with_cause(self, cause: str) -> list[Message]:
        """Messages of a cause, in order."""
        return [self._messages[i] for i in self._by_cause.get(cause, ())]
