"""How recorded calls are stored: each part of a request once, in the entry that first has it.

Requests of one run are alike: each has most messages of the one before. So a call is stored with
the parts of its request that are new (messages, and what else was sent), and refers to the others
by their places among the parts of its *chunk*: the calls from one with a whole request to the next
such call. Messages that the call before it at the same place has sent first are only counted. A
chunk ends when its entries have become longer than a whole request, so that old chunks can be
removed.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, TypeAlias

from pydantic import JsonValue

from agent_brain.common.ids import new_id
from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.message import Message
from agent_brain.memories.store.events import RECORDED_CALL, entry
from agent_brain.memories.trace.recorded_call import RecordedCall

Series: TypeAlias = tuple[tuple[str, ...], str | None, bool]

RAM_STEPS = 100  # whose calls are kept in RAM
SMALL = 64_000  # characters; a shorter chunk is not ended
_SENT = {"params", "tools", "output_schema"}  # beside the messages: one part
_STORED = {"chunk", "at", "new", "like", "messages", "sent"}  # fields of an entry, not of a call
_SHOWN = {
    *("id", "role", "content", "name", "tool_calls", "tool_call_id", "is_error", "attachments"),
    *("created_at", "cause_by", "metadata"),
}
_UNIQUE = ("id", "created_at", "cause_by")  # fields that do not make another message of it


class ChunkWriter:
    """Writes the entries of calls, chunk after chunk."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin a chunk: earlier entries may not be there."""
        self._chunk = new_id("chunk")
        self._places: dict[str, int] = {}  # of the parts, by what they are
        self._sizes: list[int] = []
        self._by_message: dict[Message, int] = {}
        self._before: dict[Series, list[int]] = {}  # the messages of the last call

    def entry(self, call: RecordedCall) -> Entry:
        """Return the entry of a call; :meth:`restart` if it cannot be stored."""
        data = self._data(call)
        if data["at"] and call.action is None:
            whole = sum(self._sizes[at] for at in self._before[_series(call)])
            if sum(self._sizes) > max(2 * whole, SMALL):
                self.restart()
                data = self._data(call)
        return entry(RECORDED_CALL, data)

    def _data(self, call: RecordedCall) -> dict[str, Any]:
        at, new = len(self._sizes), list[JsonValue]()
        plain = call.model_dump(
            mode="json", exclude={*_SENT, "number", "messages"}, exclude_defaults=True
        )
        sent = call.model_dump(mode="json", include=_SENT)
        places = [self._message(message, new) for message in call.messages]
        like = _common(self._before.get(_series(call), []), places)
        self._before[_series(call)] = places
        return plain | {
            "chunk": self._chunk,
            "at": at,
            "like": like,
            "messages": places[like:],
            "sent": self._part(sent, new) if any(sent.values()) else None,
            "new": new,
        }

    def _message(self, message: Message, new: list[JsonValue]) -> int:
        known = self._by_message.get(message)
        if known is None:
            data = message.model_dump(mode="json", include=_SHOWN, exclude_defaults=True)
            key = {name: value for name, value in data.items() if name not in _UNIQUE}
            known = self._by_message[message] = self._part(data, new, key)
        return known

    def _part(self, data: Any, new: list[JsonValue], key: Any = None) -> int:
        text = json.dumps(data if key is None else key, ensure_ascii=False, sort_keys=True)
        if text not in self._places:
            self._places[text] = len(self._sizes)
            self._sizes.append(len(text))
            new.append(data)
        return self._places[text]


class ChunkReader:
    """Reads the entries of calls in order, without those whose chunk has lost its beginning."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Any]] = {}
        self._before: dict[tuple[str, Series], tuple[Message, ...]] = {}

    def read(self, entries: Iterable[Entry]) -> Iterator[RecordedCall]:
        """Yield the calls that the entries hold."""
        for item in entries:
            if item.kind == RECORDED_CALL and (call := self._call(item)) is not None:
                yield call

    def _call(self, item: Entry) -> RecordedCall | None:
        data: Any = item.data
        parts = self._chunks.setdefault(data["chunk"], [])
        if len(parts) != data["at"]:
            return None
        parts += data["new"]
        fields = {name: value for name, value in data.items() if name not in _STORED}
        sent = {} if data["sent"] is None else parts[data["sent"]]
        call = RecordedCall(number=item.seq, **sent, **fields)
        series = data["chunk"], _series(call)
        like = self._before.get(series, ())[: data["like"]]
        for at in data["messages"]:  # each is read once
            if not isinstance(parts[at], Message):
                parts[at] = Message.model_validate(parts[at])
        messages = (*like, *(parts[at] for at in data["messages"]))
        self._before[series] = messages
        return call.model_copy(update={"messages": messages})


def _series(call: RecordedCall) -> Series:
    """Return what the calls have in common of which each sends what the last one did, and more."""
    return call.path, call.purpose, call.action is None


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many numbers two lists have in common from their beginnings."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class TraceLog:
    """What a memory knows of the calls that it has recorded.

    Attributes:
        live: The sequence numbers of their entries that a journal has and that are not history yet.
        in_ram: The calls of a memory without a journal.
    """

    __slots__ = ("_starts", "_writer", "in_ram", "live")

    def __init__(self) -> None:
        self.live: set[int] = set()
        self.in_ram: list[RecordedCall] = []
        self._starts: list[int] = []  # where chunks begin
        self._writer: ChunkWriter | None = None

    @property
    def writer(self) -> ChunkWriter:
        """Writes the entries."""
        if self._writer is None:
            self._writer = ChunkWriter()
        return self._writer

    def lose(self) -> None:
        """Write the next call as a whole, as earlier entries are missing, or will be."""
        self._writer = None

    def clear(self) -> None:
        """Note that all entries are removed."""
        self.lose()
        self.live.clear()
        self.in_ram.clear()
        self._starts.clear()

    def take_out(self, rows: Rows) -> Rows:
        """Return ``rows`` without the entries of calls, which are noted."""
        if RECORDED_CALL not in rows.kinds:
            return rows
        pairs = zip(rows.seqs, rows.kinds, strict=True)
        self.live.update(seq for seq, kind in pairs if kind == RECORDED_CALL)
        return rows.without([RECORDED_CALL])

    def note(self, made: Entry, seq: int) -> None:
        """Note that an entry was written."""
        self.live.add(seq)
        data: Any = made.data
        if not data["at"]:  # it refers to no earlier call
            self._starts.append(seq)

    def whole_from(self, seq: int) -> int | None:
        """Return the place from which entries must be kept so that those from ``seq`` are whole.

        None if it is not known.
        """
        if not self._starts:
            return seq
        at = bisect_right(self._starts, seq)
        if not at:
            return None
        del self._starts[: at - 1]
        return self._starts[0]

    def keep(self, call: RecordedCall) -> None:
        """Keep a call in RAM, and drop those of old steps."""
        number = self.in_ram[-1].number + 1 if self.in_ram else 1
        self.in_ram.append(call.model_copy(update={"number": number}))
        steps = dict.fromkeys((kept.run_id, kept.step) for kept in self.in_ram)
        if len(steps) > RAM_STEPS:
            oldest = next(iter(steps))
            self.in_ram = [k for k in self.in_ram if (k.run_id, k.step) != oldest]
