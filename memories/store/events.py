"""The changes of a message store, as data that a journal stores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import JsonValue

from agent_brain.memories.journal.entry import Entry, Row, Rows
from agent_brain.memories.message import Message
from agent_brain.memories.store.log import decode, unreadable

MESSAGES = ("part", "message")


@dataclass(frozen=True, slots=True)
class Added:
    """Messages were added in one update."""

    messages: Sequence[Message]

    def entries(self) -> list[Entry]:
        """Return an entry per message, so that each can be removed; the last ends the update."""
        data = [m.model_dump(mode="json", exclude_defaults=True) for m in self.messages]
        kinds = ["part"] * (len(data) - 1) + ["message"]
        return [Entry(kind, item) for kind, item in zip(kinds, data, strict=True)]


@dataclass(frozen=True, slots=True)
class GoalSet:
    """The message with this ID became the goal; None: there is no goal."""

    message_id: str | None

    def entries(self) -> list[Entry]:
        """Return the change as journal entries."""
        return [Entry("goal", self.message_id)]


@dataclass(frozen=True, slots=True)
class Removed:
    """Messages were removed; ``forgotten`` ones also from the journal."""

    ids: Sequence[str]
    forgotten: bool = False

    def entries(self) -> list[Entry]:
        """Return the change as journal entries."""
        return [Entry("forget" if self.forgotten else "delete", list(self.ids))]


@dataclass(frozen=True, slots=True)
class Tagged:
    """Messages were tagged, untagged, pinned or unpinned."""

    ids: Sequence[str]
    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    pinned: bool | None = None

    def applied_to(self, message: Message) -> Message:
        """Return ``message`` with the change."""
        tags = (message.tags | {*self.add}) - {*self.remove}
        pinned = message.pinned if self.pinned is None else self.pinned
        return message.model_copy(update={"tags": tags, "pinned": pinned})

    def entries(self) -> list[Entry]:
        """Return the change as journal entries."""
        data: dict[str, JsonValue] = {
            "ids": [*self.ids],
            "add": [*self.add],
            "remove": [*self.remove],
        }
        if self.pinned is not None:
            data["pinned"] = self.pinned
        return [Entry("tag", data)]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A value, such as a summary, was stored under a name; None removes it."""

    name: str
    value: JsonValue

    def entries(self) -> list[Entry]:
        """Return the change as journal entries."""
        return [Entry("view", {"name": self.name, "value": self.value})]


@dataclass(frozen=True, slots=True)
class Evicted:
    """Messages up to a place had left a view when earlier entries were removed.

    Attributes:
        upto: The place.
        staying: The places of messages up to there that had not left.
        spoke: The place of the last assistant message that had left.
    """

    upto: int
    staying: Sequence[int]
    spoke: int = 0

    def entries(self) -> list[Entry]:
        """Return the change as journal entries."""
        data: dict[str, JsonValue] = {"upto": self.upto, "staying": [*self.staying]}
        return [Entry("evicted", data | {"spoke": self.spoke})]


@dataclass(frozen=True, slots=True)
class Cleared:
    """Everything was removed."""

    def entries(self) -> list[Entry]:
        """Return the change as journal entries."""
        return [Entry("clear", None)]


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """The control of the run was stored.

    Attributes:
        control: The control.
        since: The sequence number that a rollback returns to, if it is not this entry's: the
            control was changed in the middle of a step.
    """

    control: JsonValue
    since: int | None = None

    def entries(self) -> list[Entry]:
        """Return the change as journal entries."""
        if self.since is None:
            return [Entry("control", self.control)]
        return [Entry("amend", {"control": self.control, "since": self.since})]


LASTING = ("delete", "forget", "amend", "evicted")  # a rollback does not undo these
Change: TypeAlias = Added | GoalSet | Removed | Tagged | ValueSet | Evicted | Cleared | Checkpointed

_READERS: dict[str, Any] = {
    "goal": GoalSet,
    "delete": Removed,
    "forget": lambda ids: Removed(ids, forgotten=True),
    "tag": lambda data: Tagged(**data),
    "view": lambda data: ValueSet(**data),
    "evicted": lambda data: Evicted(**data),
    "clear": lambda _: Cleared(),
    "control": Checkpointed,
    "amend": lambda data: Checkpointed(**data),
}


def effective(rows: Sequence[Row]) -> Rows:
    """Return the entries that count: not rolled back, and not before the last clearing."""
    rows = rows if isinstance(rows, Rows) else Rows(rows)
    if {*rows.kinds}.isdisjoint(("rollback", "clear")):
        return rows
    counting: list[Row] = []
    for row in rows:
        if row[1] == "rollback":
            after, lasting = json.loads(row[2]), []
            while counting and counting[-1][0] > after:
                undone = counting.pop()
                if undone[1] in LASTING:
                    lasting.append(undone)
            counting += reversed(lasting)
        elif row[1] == "clear":
            counting = [row]
        else:
            counting.append(row)
    return Rows(counting, as_written=rows.as_written)


def read_changes(rows: Iterable[Row]) -> Iterator[tuple[int, Change]]:
    """Yield the changes of ``rows``, each with the sequence number of its first entry.

    Raises:
        JournalError: An entry cannot be read.
    """
    update: list[Message] = []
    first = 0
    for seq, kind, line in rows:
        is_message = kind in MESSAGES
        if update and (not is_message or seq != first + len(update)):  # some were forgotten
            yield first, Added(update)
            update = []
        if not is_message:
            yield seq, read_change(seq, kind, line)
            continue
        first = first if update else seq
        update.append(decode(line, seq))
        if kind == "message":
            yield first, Added(update)
            update = []
    if update:
        yield first, Added(update)


def replay(rows: Iterable[Row], *, removed: bool = False) -> dict[str, Message]:
    """Return the messages of ``rows`` by ID, in order, with their tags.

    Args:
        rows: What a journal has, or the :func:`effective` part of it.
        removed: Include those that were removed later and are still in ``rows``.
    """
    found: dict[str, Message] = {}
    for seq, kind, line in rows:
        if kind in MESSAGES:
            message = decode(line, seq)
            found[message.id] = message
        elif kind in ("tag", "delete", "forget"):
            change = read_change(seq, kind, line)
            if isinstance(change, Tagged):
                known = [found[message_id] for message_id in change.ids if message_id in found]
                found.update({message.id: change.applied_to(message) for message in known})
            elif isinstance(change, Removed) and not removed:
                for message_id in change.ids:
                    found.pop(message_id, None)
    return found


def read_change(seq: int, kind: str, line: str) -> Change:
    """Return the change of an entry that is not a message.

    Raises:
        JournalError: It cannot be read.
    """
    if kind not in _READERS:
        raise unreadable(seq, f"entries of kind {kind!r} are unknown to this version")
    try:
        change: Change = _READERS[kind](json.loads(line))
    except (TypeError, ValueError) as error:
        raise unreadable(seq, error) from error
    return change
