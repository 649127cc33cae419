"""The ordered, indexed log of messages in a store.

Appending, looking up by ID, role or cause, and checking for a known ID cost the same however long
the log is. Messages read from a journal stay JSON text until they are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, KeysView, Sequence
from itertools import islice
from typing import overload

from pydantic import ValidationError

from agent_brain.memories.errors import JournalError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.many import in_slices

TOOL = Role.TOOL  # looking up an enum member is slow
_ANSWERS = re.compile(r'"tool_call_id":"((?:[^"\\]|\\.)*)"')
_ID = '{"id":"'  # what the JSON text of a message begins with
PINNED, CALLS, EXPIRES = '"pinned":true', '"tool_call', '"expires_at":'  # in that text
ON_LOOP = 200  # messages that are decoded at once
LOADED = 5_000  # messages that are loaded at once, as other threads wait meanwhile


class Held(Sequence[Message]):
    """The messages of a log as they are there; those that are JSON text are decoded when asked for.

    All of them as objects would make Python's garbage collector stop the event loop.

    Args:
        ids: Their IDs, each once.
        places: Their places.
        found: The messages, or their texts.
    """

    def __init__(
        self, ids: Sequence[str], places: Sequence[int], found: Sequence[Message | str]
    ) -> None:
        self.ids = ids
        self.places = places
        self.found = found

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> Held: ...
    def __getitem__(self, at: int | slice) -> Message | Held:
        if isinstance(at, slice):
            return Held(self.ids[at], self.places[at], self.found[at])
        found = self.found[at]
        return decode(found, self.places[at]) if isinstance(found, str) else found

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def may_expire(self) -> bool:
        """Whether a message may have a time at which it expires."""
        return any(
            EXPIRES in found if isinstance(found, str) else found.expires_at is not None
            for found in self.found
        )


class MessageLog:
    """Messages in order, each once, with their places and indexes by role and cause.

    The order is that of arrival, except that each tool result stands right behind its call, before
    what arrived in between (see :mod:`agent_brain.memories.views.groups`).

    The place of a message is a number that grows along the log and is never reused: in a journal,
    the sequence number of its entry. Roles and causes are indexed from the first lookup on.

    Attributes:
        last: The last place that was given.
        moved: Whether the order differs from that of arrival.
        encoded: How many messages are still JSON text.
        leaving: IDs of what has left the views and is to be reported; None if nobody reads it.
    """

    def __init__(self) -> None:
        self.last = 0
        self.leaving: list[str] | None = None
        self.clear()

    def clear(self) -> None:
        """Remove all messages; places continue to count."""
        self._messages: dict[str, Message | str] = {}  # insertion order is the log's order
        self._places: dict[str, int] = {}  # insertion order is the order of arrival
        self._asked: dict[str, str] = {}  # IDs of calls, and of the messages that asked for them
        self._asked_last: Collection[str] = ()  # calls of the group at the end
        self._ids: dict[tuple[str, str | None], dict[str, None]] | None = None
        self._all: list[Message] | None = None  # a list is copied faster than a dict's values
        self._gaps = 0
        self._loaded = False  # whether there were texts, whose calls are not in _asked
        self.moved = False
        self.encoded = 0

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        if self.encoded:
            for message_id, message in [*self._messages.items()]:
                if type(message) is str and message_id in self._messages:
                    self._decode(message_id, message)
        return iter(self._messages.values())  # type: ignore[arg-type]  # all are decoded

    def all(self) -> list[Message]:
        """Return all messages, in order."""
        if self._all is None:
            self._all = list(self)
        return self._all.copy()

    def __reversed__(self) -> Iterator[Message]:
        for message_id in reversed(self._messages):
            yield self[message_id]

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    def __getitem__(self, message_id: str) -> Message:
        message = self._messages[message_id]
        return self._decode(message_id, message) if type(message) is str else message  # type: ignore[return-value]

    def get(self, message_id: str) -> Message | None:
        """Return the message with this ID, or None."""
        return self[message_id] if message_id in self._messages else None

    def peek(self, message_id: str) -> Message | str | None:
        """Return the message with this ID as it is here, maybe as JSON text, or None."""
        return self._messages.get(message_id)

    def peek_each(self, ids: Iterable[str]) -> list[Message | str | None]:
        """Return :meth:`peek` of each of these IDs."""
        return [*map(self._messages.get, ids)]

    def held(self) -> Held:
        """Return all messages as they are here, in order."""
        ids = [*self._messages]
        return Held(ids, [*map(self.place, ids)], [*self._messages.values()])

    def pinned(self) -> list[str]:
        """Return the IDs of pinned messages, in order, without decoding the others."""
        return [
            message_id
            for message_id, message in [*self._messages.items()]
            if (type(message) is not str or PINNED in message) and self[message_id].pinned
        ]

    def place(self, message_id: str) -> int:
        """Return the place of the message with this ID, which must be here."""
        return self._places[message_id]

    def find(self, message_id: str | None) -> int | None:
        """Return the place of the message with this ID, None if it is not here."""
        return self._places.get(message_id)  # type: ignore[arg-type]

    def ids(self) -> KeysView[str]:
        """Return the IDs of all messages, in order."""
        return self._messages.keys()

    # Messages as JSON text

    def load(
        self, ids: Sequence[str], places: Sequence[int], lines: Sequence[str], calls: Iterable[int]
    ) -> None:
        """Append messages as JSON text.

        Args:
            ids: Their IDs.
            places: Their places.
            lines: Their texts.
            calls: Where in ``lines`` there may be calls or results, in order.

        Raises:
            JournalError: A text that must be decoded is not a message.
        """
        strays, asking = _strays(lines, calls)
        self._all = None
        self._loaded = True
        done = 0
        for stray in strays:
            self._load(ids[done : stray + 1], places[done : stray + 1], lines[done : stray + 1])
            self._asked_last = ()
            self._join(self[ids[stray]])
            done = stray + 1
        if done < len(ids):
            self._load(ids[done:], places[done:], lines[done:])
        self.last = max([self.last, *places[-1:]])
        self._asked_last = ()
        if asking is not None:
            self._note_calls(self[ids[asking]])

    def _load(self, ids: Sequence[str], places: Sequence[int], lines: Sequence[str]) -> None:
        before = len(self._messages)
        for start in range(0, len(ids), LOADED):
            part = slice(start, start + LOADED)
            self._messages.update(zip(ids[part], lines[part], strict=True))
            self._places.update(zip(ids[part], places[part], strict=True))
        self.encoded += len(self._messages) - before

    def _decode(self, message_id: str, line: str) -> Message:
        message = decode(line, self.place(message_id))
        self._messages[message_id] = message
        self.encoded -= 1
        return message

    async def decoded(self) -> None:
        """Decode all messages; if they are many, other tasks run meanwhile."""
        if self.encoded <= ON_LOOP:
            return
        async for message_id in in_slices(self._messages):
            self.get(message_id)

    # Changing

    def unknown(self, messages: Sequence[Message]) -> list[Message]:
        """Return those of ``messages`` that are not here yet, each ID once."""
        known = self._messages
        fresh: dict[str, Message] = {}
        for message in messages:
            message_id = message.__dict__["id"]  # attributes of pydantic models are slow
            if message_id not in known:
                fresh.setdefault(message_id, message)
        return list(fresh.values())

    def add_unknown(self, messages: Iterable[Message], first: int | None = None) -> list[Message]:
        """Append those of ``messages`` that are not here yet, each ID once; return them.

        Args:
            messages: The messages in order.
            first: The place of the first one; the others follow. Default: after the last place.
        """
        known, fresh = self._messages, []
        if first is not None:
            self.last = first - 1
        for message in messages:
            fields = message.__dict__  # attributes of pydantic models are slow, and this is often
            message_id = fields["id"]
            if message_id not in known:
                self.last = self._places[message_id] = self.last + 1
                known[message_id] = message
                if self._all is not None:
                    self._all.append(message)
                if fields["role"] is TOOL or fields["tool_calls"]:
                    self._join(message)
                    known = self._messages
                else:
                    self._asked_last = ()
                if self._ids is not None:
                    self._add_to_index(message)
                fresh.append(message)
        return fresh

    def append(self, messages: Held, first: int | None = None) -> None:
        """Add messages whose IDs are not here yet, as :meth:`add_unknown`; text stays text."""
        if first is not None:
            self.last = first - 1
        for at, message_id in enumerate(messages.ids):
            found = messages.found[at]
            if isinstance(found, str) and self._ids is None and CALLS not in found:
                self.load([message_id], [self.last + 1], [found], ())
            else:
                self.add_unknown([messages[at]])

    def _join(self, message: Message) -> None:
        """Move a result that was just appended behind its call; other calls start a group."""
        if message.role is not TOOL:
            self._note_calls(message)
            return
        if (message.tool_call_id or "") not in self._asked_last:
            self._move_up(message)

    def _note_calls(self, message: Message) -> None:
        self._asked_last = asked_last = []
        for call in message.tool_calls:
            asked_last.append(call.id)
            self._asked[call.id] = message.id

    def _move_up(self, result: Message) -> None:
        """Put a result, which is at the end, behind its call; costs as much as came in between."""
        self._asked_last = ()
        asking = self._asking(result.tool_call_id or "")
        if asking is None or asking not in self._messages:
            return
        between: list[Message] = []
        for message in islice(reversed(self), 1, None):
            if message.id == asking:
                break
            between.append(message)
        calls = {call.id for call in self[asking].tool_calls}
        while between and between[-1].role is TOOL and between[-1].tool_call_id in calls:
            between.pop()
        self._all = None
        for message in reversed(between):
            self._messages[message.id] = self._messages.pop(message.id)
        self._gaps += len(between)
        self.moved = self.moved or bool(between)

    def _asking(self, call_id: str) -> str | None:
        """Return the ID of the last message that asked for a call, also one that was text."""
        if call_id not in self._asked and self._loaded:
            quoted = f'"id":{json.dumps(call_id, ensure_ascii=False)}'
            for message_id, found in reversed(self._messages.items()):
                if type(found) is str and ('"tool_calls":' not in found or quoted not in found):
                    continue
                if any(call.id == call_id for call in self[message_id].tool_calls):
                    self._asked[call_id] = message_id
                    break
        return self._asked.get(call_id)

    def remove(self, message_ids: Iterable[str]) -> list[Message]:
        """Remove messages and return them; unknown IDs are ignored."""
        return [message for _, message in self.take(message_ids)]

    def take(self, message_ids: Iterable[str]) -> list[tuple[int, Message]]:
        """Remove messages and return them with their places; unknown IDs are ignored."""
        taken = []
        self._all = None
        for message_id in message_ids:
            message = self._messages.pop(message_id, None)
            if message is not None:
                place = self._places.pop(message_id)
                if type(message) is str:
                    self.encoded -= 1
                    message = decode(message, place)
                calls = message.__dict__["tool_calls"]
                for call in calls:
                    if self._asked.get(call.id) == message_id:
                        del self._asked[call.id]
                if self._ids is not None:
                    for key in _keys(message):  # type: ignore[arg-type]
                        del self._ids[key][message_id]
                taken.append((place, message))
        self._gaps += len(taken)
        if self._gaps > 64 + 2 * len(self._messages):
            self._close_gaps()
        return taken  # type: ignore[return-value]

    def discard(self, message_ids: Iterable[str]) -> None:
        """Remove messages, without decoding those that are still text."""
        decoded = []
        for message_id in message_ids:
            if type(self._messages.get(message_id)) is str:
                del self._messages[message_id], self._places[message_id]
                self.encoded -= 1
                self._gaps += 1
            else:
                decoded.append(message_id)
        self.remove(decoded)

    def _close_gaps(self) -> None:
        """Copy the dicts: iterating over one visits the gaps that removals have left."""
        self._messages = dict(self._messages.items())
        self._places = dict(self._places.items())
        self._gaps = 0

    def put_back(self, messages: Iterable[tuple[int, Message]]) -> None:
        """Insert removed messages again, each at its place; costs O(n)."""
        everything = [(self._places[message.id], message) for message in self]
        last = self.last
        self.clear()
        for place, message in sorted([*everything, *messages], key=lambda pair: pair[0]):
            self.add_unknown([message], place)
        self.last = last

    def replace(self, message: Message) -> None:
        """Store ``message`` instead of the one with its ID; role and cause must be the same."""
        self._messages[message.id] = message
        self._all = None

    # Looking up

    def after(self, place: int) -> list[Message]:
        """Return what arrived after a place, in order of arrival; costs as much as there is."""
        found: list[Message] = []
        for message_id, at in reversed(self._places.items()):
            if at <= place:
                break
            found.append(self[message_id])
        return found[::-1]

    def since(self, message_id: str) -> list[Message]:
        """Return the message with this ID, which must be here, and those behind it, in order."""
        count = 1
        for known_id in reversed(self._messages):
            if known_id == message_id:
                break
            count += 1
        newest = reversed(self) if self.encoded else reversed(self._messages.values())
        found: list[Message] = [*islice(newest, count)]  # type: ignore[list-item]
        return found[::-1]

    def newest(self, count: int) -> list[Message]:
        """Return the last messages, at least ``count`` of them, starting with a whole group."""
        found: list[Message] = []
        for message in reversed(self):
            found.append(message)
            if len(found) >= count and message.role is not TOOL:
                break
        return found[::-1]

    def having(self, field: str, value: str) -> list[Message]:
        """Return the messages with a role or a cause, in order.

        Args:
            field: ``"role"`` or ``"cause_by"``.
            value: The role or the cause.
        """
        if self._ids is None:
            self._ids = {}
            for message in self:
                self._add_to_index(message)
        return [self[i] for i in self._ids.get((field, value), ())]

    def _add_to_index(self, message: Message) -> None:
        assert self._ids is not None
        for key in _keys(message):
            self._ids.setdefault(key, {})[message.id] = None


def _keys(message: Message) -> tuple[tuple[str, str | None], ...]:
    return ("role", message.role), ("cause_by", message.cause_by)


def _strays(lines: Sequence[str], calls: Iterable[int]) -> tuple[list[int], int | None]:
    """Return which results do not stand right behind their calls, and which calls end the log.

    Args:
        lines: Messages as JSON text.
        calls: Where in ``lines`` there may be calls or results, in order.
    """
    strays: list[int] = []
    asking, before = None, -1
    for at in calls:
        line = lines[at]
        if at != before + 1:
            asking = None
        before = at
        if '"role":"tool"' not in line:
            asking = at if '"tool_calls":' in line else None
            continue
        call = _ANSWERS.search(line)
        if call is None or asking is None or f'"id":"{call[1]}"' not in lines[asking]:
            strays.append(at)
            asking = None
    return strays, asking if before == len(lines) - 1 else None


def id_of(line: str) -> str:
    """Return the ID of a message from its JSON text, without decoding the rest.

    Raises:
        ValueError: The text is not a message.
    """
    if line.startswith(_ID):
        found = line[7 : line.index('"', 7)]
        if "\\" not in found:
            return found
    data = json.loads(line)
    if not isinstance(data, dict) or not isinstance(data.get("id"), str):
        raise ValueError("not a message: it has no id")
    return str(data["id"])


def decode(line: str, seq: int) -> Message:
    """Return the message of a journal entry; fields that this version does not know are ignored.

    Raises:
        JournalError: The text is not a message.
    """
    try:
        return Message.model_validate_json(line)
    except ValidationError as error:
        return _decode_again(line, seq, error)


def _decode_again(line: str, seq: int, error: ValidationError) -> Message:
    """Decode a message without the fields that are unknown; it may also be nested deeply."""
    try:
        data = json.loads(line)
        for *path, name in (e["loc"] for e in error.errors() if e["type"] == "extra_forbidden"):
            inner = data
            for key in path:
                inner = inner[key]
            del inner[name]
        return Message.model_validate(data)
    except (ValueError, RecursionError) as again:
        raise unreadable(seq, again) from error


def unreadable(seq: int, why: object) -> JournalError:
    """Return the error of an entry that this version cannot read."""
    return JournalError(
        f"Entry {seq} of the session cannot be read ({why}): it was written by something else, or "
        "by a newer version of this library"
    )
