"""The one ordered, indexed record of messages under every built-in memory.

Appending, looking up by id, role or cause, and telling a known id cost the same however long the
record is. Views read it; nothing else is stored about messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from agent_brain.memories.message import Message, Role

TOOL = Role.TOOL  # looking up a member of an enum takes a while


class Record:
    """Messages in order, each once, with their places and indexes by id, role and cause.

    The order is that of arrival, but for results: each is put right behind its call, before what
    arrived in between (see :mod:`agent_brain.memories.views.groups`).

    A message's place is a number that grows along the record and is never given twice: in a
    journal, the sequence number of its entry. A record that replaces another one continues its
    count. Roles and causes are indexed from the first time that they are asked for, and kept up to
    date from then on.

    Args:
        last: The last place that was given before.
    """

    def __init__(self, last: int = 0) -> None:
        self._messages: dict[str, Message] = {}  # insertion order is the order of the record
        self._places: dict[str, int] = {}  # insertion order is the order of arrival
        self._asked: dict[str, str] = {}  # ids of calls, and of the messages that asked for them
        self._asked_last: Collection[str] = ()  # calls of the group at the end
        self._index: _Index | None = None
        self._gaps = 0
        self.last = last
        self.moved = False  # the order is not quite that of arrival

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

    def place(self, message_id: str) -> int:
        """Where the message of that id, which must be here, stands."""
        return self._places[message_id]

    def unknown(self, messages: Sequence[Message]) -> list[Message]:
        """Those of ``messages`` that are not here yet, each id once."""
        fresh: dict[str, Message] = {}
        for message in messages:
            if message.id not in self._messages:
                fresh.setdefault(message.id, message)
        return list(fresh.values())

    def add_unknown(self, messages: Sequence[Message]) -> list[Message]:
        """Append those of ``messages`` that are not here yet, each id once; returns them."""
        fresh = []
        for message in messages:
            message_id = message.id
            if message_id not in self._messages:
                self.last = self._places[message_id] = self.last + 1
                self._messages[message_id] = message
                self._join(message)
                if self._index is not None:
                    self._index.add(message)
                fresh.append(message)
        return fresh

    def append(self, messages: Iterable[Message], first: int | None = None) -> None:
        """Add messages whose ids are not here yet (see :meth:`unknown`).

        Args:
            messages: What to add, in order.
            first: The place of the first of them; the others follow. Default: after the last one.
        """
        place = self.last if first is None else first - 1
        for message in messages:
            place += 1
            message_id = message.id
            self._messages[message_id] = message
            self._places[message_id] = place
            self._join(message)
            if self._index is not None:
                self._index.add(message)
        self.last = place

    def _join(self, message: Message) -> None:
        """Let a result that has just been appended join its call; others begin a group."""
        fields = message.__dict__  # attributes of pydantic models are slow, and this is often
        if fields["role"] is TOOL:
            if fields["tool_call_id"] not in self._asked_last:
                self._move_up(message)
            return
        calls = fields["tool_calls"]
        if calls:
            self._asked_last = {call.id for call in calls}
            self._asked.update((call_id, fields["id"]) for call_id in self._asked_last)
        else:
            self._asked_last = ()

    def _move_up(self, result: Message) -> None:
        """Put a result, which is at the end, behind its call; costs as much as came in between."""
        self._asked_last = ()
        asking = self._asked.get(result.tool_call_id or "")
        if asking is None:
            return
        between: list[Message] = []
        for message in islice(reversed(self._messages.values()), 1, None):
            if message.id == asking or self._asked.get(message.tool_call_id or "") == asking:
                break
            between.append(message)
        for message in reversed(between):
            self._messages[message.id] = self._messages.pop(message.id)
        self._gaps += len(between)
        self.moved = self.moved or bool(between)

    def remove(self, message_ids: Iterable[str]) -> list[Message]:
        """Take messages out; unknown ids are passed over. Returns what was removed."""
        removed = []
        for message_id in message_ids:
            message = self._messages.pop(message_id, None)
            if message is not None:
                del self._places[message_id]
                for call in message.tool_calls:
                    if self._asked.get(call.id) == message_id:
                        del self._asked[call.id]
                if self._index is not None:
                    self._index.discard(message)
                removed.append(message)
        self._gaps += len(removed)
        if self._gaps > 64 + 2 * len(self._messages):
            self._close_gaps()
        return removed

    def _close_gaps(self) -> None:
        """A dict is walked through with the gaps that removals have left in it: make new ones."""
        self._messages = dict(self._messages.items())
        self._places = dict(self._places.items())
        self._gaps = 0

    def put_back(self, messages: Iterable[tuple[int, Message]]) -> None:
        """Take removed messages in again, each at its place; costs O(n)."""
        everything = [(self._places[message.id], message) for message in self]
        everything += [(place, message) for place, message in messages]
        last = self.last
        self.__init__()  # type: ignore[misc]
        for place, message in sorted(everything, key=lambda pair: pair[0]):
            self.append([message], place)
        self.last = last

    def replace(self, message: Message) -> None:
        """Hold ``message`` instead of the one with its id; role and cause must be the same."""
        self._messages[message.id] = message

    def after(self, place: int) -> list[Message]:
        """What arrived behind a place, in order of arrival; costs only as much as there is."""
        found: list[Message] = []
        for message_id, at in reversed(self._places.items()):
            if at <= place:
                break
            found.append(self._messages[message_id])
        return found[::-1]

    def since(self, message_id: str) -> list[Message]:
        """The message of that id, which must be here, and those behind it, in order."""
        found: list[Message] = []
        for message in reversed(self._messages.values()):
            found.append(message)
            if message.id == message_id:
                break
        return found[::-1]

    def with_role(self, role: Role) -> list[Message]:
        """Messages of a role, in order."""
        return self._with(role, None)

    def with_cause(self, cause: str) -> list[Message]:
        """Messages of a cause, in order."""
        return self._with(None, cause)

    def _with(self, role: Role | None, cause: str | None) -> list[Message]:
        if self._index is None:
            self._index = _Index()
            for message in self:
                self._index.add(message)
        return [self._messages[i] for i in self._index.ids.get((role, cause), ())]


class _Index:
    """The ids of messages by role and by cause."""

    def __init__(self) -> None:
        self.ids: dict[tuple[Role | None, str | None], dict[str, None]] = {}

    def add(self, message: Message) -> None:
        for key in _keys(message):
            self.ids.setdefault(key, {})[message.id] = None

    def discard(self, message: Message) -> None:
        for key in _keys(message):
            del self.ids[key][message.id]
            if not self.ids[key]:
                del self.ids[key]


def _keys(message: Message) -> list[tuple[Role | None, str | None]]:
    by_role = (message.role, None)
    return [by_role] if message.cause_by is None else [by_role, (None, message.cause_by)]
