"""The changes of a message store, and the journal entries that tell of them.

An entry of another version is refused. Whoever changes the form of a kind, or a default that its
entries leave out, raises its version here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

from pydantic import JsonValue

from agent_brain.common.models import set_slots_directly
from agent_brain.memories.journal.checks import to_lines
from agent_brain.memories.journal.entry import Entry, Line, Lines, Row, Rows
from agent_brain.memories.message import Message
from agent_brain.memories.store.log import Held, decode, id_of, unreadable

VERSIONS: Mapping[str, int] = MappingProxyType(
    {
        "part": 1,  # a message that is not the last of its update
        "message": 1,
        "goal": 1,  # which message is the goal
        "delete": 1,
        "forget": 1,
        "forgetting": 1,  # what is still to be forgotten: here, in branches, in the history
        "tag": 1,
        "view": 1,  # a value by name, such as a summary
        "evicted": 1,
        "clear": 1,
        "step": 1,  # where the run stands: when it begins, after a step, when it waits or ends
        "amend": 1,  # what the current step begins with, if it is repeated
        "call_begun": 1,
        "call_finished": 1,
        "part_finished": 1,  # the result of a part of a state, such as a branch
        "rollback": 1,
        "beside": 1,  # how many entries behind it were written by another program, beside the run
        "forked": 1,  # the first entry of a branch: how much of the session it begins with
        "recorded_call": 1,  # a call of a model or a tool in a traced run
    }
)

MESSAGES = ("part", "message")
"""Kinds that hold a message."""

NOTED = ("call_begun", "call_finished", "part_finished")
"""Kinds that tell of calls and parts inside a step."""

LASTING = frozenset(("delete", "forget", "forgetting", "amend", "evicted", "beside", *NOTED))
"""Kinds that a rollback does not undo."""

RUN = frozenset(("step", "amend", *NOTED))
"""Kinds that hold the state of a run."""

RECORDED_CALL = "recorded_call"
"""The kind that only records what happened: it is left out when a session is read."""


def entry(kind: str, data: JsonValue) -> Entry:
    """Return a new entry of the current version."""
    return Entry(kind, data, version=VERSIONS[kind])


def checked(rows: Rows) -> Rows:
    """Return rows whose entries this library can all read.

    Raises:
        JournalError: An entry has a kind or a version that is unknown.
    """
    if unknown := {*rows.kinds} - VERSIONS.keys():
        at = next(at for at, kind in enumerate(rows.kinds) if kind in unknown)
        raise unreadable(rows.seqs[at], f"its kind {rows.kinds[at]!r} is unknown to this version")
    if not rows.versions:  # which are all 1
        return rows
    for seq, kind in zip(rows.seqs, rows.kinds, strict=True):
        version = rows.versions.get(seq, 1)
        if version != VERSIONS[kind]:
            raise unreadable(
                seq, f"it is {kind!r} in version {version}, and this library reads {VERSIONS[kind]}"
            )
    return rows


@dataclass(frozen=True, slots=True)
class Added:
    """Messages were added in one update."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class GoalSet:
    """The message with this ID became the goal; None: there is no goal."""

    message_id: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """Messages were removed; ``forgotten`` ones also from the journal."""

    ids: Sequence[str]
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Something is being forgotten; the entry is removed when nothing of it is left.

    Attributes:
        ids: The IDs of messages in branches.
        texts: Texts, folded, wherever they are.
    """

    ids: Sequence[str]
    texts: Sequence[str] = ()


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


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A value, such as a summary, was stored under a name; None removes it."""

    name: str
    value: JsonValue


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


@dataclass(frozen=True, slots=True)
class Cleared:
    """Everything was removed."""


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """The state of the run was stored.

    Attributes:
        control: The control, as :meth:`RunRecord.reduced` returns it.
        since: The sequence number that a rollback returns to, where the control was changed inside
            a step; None at a step.
    """

    control: dict[str, Any]
    since: int | None = None


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call has begun.

    Attributes:
        action: The call.
        counts: What the run has counted until then; as :meth:`RunRecord.counts_of` returns it.
        continues: Whether it runs on a memory that is kept, and continues there.
    """

    action: dict[str, Any]
    counts: dict[str, Any]
    continues: bool = False


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call has finished.

    Attributes:
        call: The call, with its result; as :func:`call_data` returns it.
        counts: As for :class:`CallBegun`.
        wrote: The sequence numbers of the entries that the call has written.
    """

    call: dict[str, Any]
    counts: dict[str, Any]
    wrote: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class PartNoted:
    """A part of a state, such as a branch, has finished with a result."""

    key: str
    value: str
    counts: dict[str, Any]


RunChange: TypeAlias = Checkpointed | CallBegun | CallFinished | PartNoted
"""What changes the state of a run."""

Change: TypeAlias = (
    Added | GoalSet | Removed | Forgetting | Tagged | ValueSet | Evicted | Cleared | RunChange
)

_KINDS: dict[type[Any], str] = {  # of changes whose fields are the data of an entry
    Forgetting: "forgetting",
    Tagged: "tag",
    ValueSet: "view",
    Evicted: "evicted",
    Checkpointed: "amend",
    CallBegun: "call_begun",
    CallFinished: "call_finished",
    PartNoted: "part_finished",
}
_FIELDS = {cls: [(each.name, each.default) for each in fields(cls)] for cls in _KINDS}

for _change in get_args(Change):
    set_slots_directly(_change)


def entries_of(changes: Iterable[Change]) -> list[Entry]:
    """Return changes as journal entries: one for each message, so that it can be removed.

    The last message ends its update.
    """
    entries: list[Entry] = []
    for change in changes:
        if isinstance(change, Added):
            left = len(change.messages)
            for message in change.messages:
                left -= 1
                kind = MESSAGES[not left]
                data = message.model_dump(mode="json", exclude_defaults=True)
                entries.append(Entry(kind, data, 0, VERSIONS[kind]))
        else:
            kind, told = _told(change)
            entries.append(Entry(kind, told, 0, VERSIONS[kind]))
    return entries


def _told(change: Change) -> tuple[str, Any]:
    """Return the kind and the data of the entry of a change: its fields, without defaults."""
    match change:
        case Checkpointed(control, None):
            return "step", control
        case GoalSet(message_id):
            return "goal", message_id
        case Removed(ids, forgotten):
            return "forget" if forgotten else "delete", [*ids]
        case Cleared():
            return "clear", None
    told: dict[str, Any] = {}
    for name, default in _FIELDS[type(change)]:
        if (value := getattr(change, name)) != default:
            told[name] = [*value] if isinstance(value, list | tuple) else value
    return _KINDS[type(change)], told


def lines_of(changes: Iterable[Change]) -> Lines:
    """Return changes as journal entries, as :func:`entries_of`, without an object for each."""
    lines: list[Line] = []
    for change in changes:
        if not isinstance(change, Added):
            lines += to_lines(entries_of([change]))
            continue
        messages, last = change.messages, len(change.messages) - 1
        for at in range(len(messages)):
            kind = MESSAGES[at == last]
            found = messages.found[at] if isinstance(messages, Held) else messages[at]
            if isinstance(found, str):
                lines.append((0, kind, VERSIONS[kind], None, False, found))
            else:
                data = found.model_dump(mode="json", exclude_defaults=True)
                lines += to_lines([Entry(kind, data, 0, VERSIONS[kind])])
    return Lines(lines)


def size_of(change: Change) -> int:
    """Return how many messages a change adds or removes; 1 for any other change."""
    if isinstance(change, Added):
        return len(change.messages)
    return len(change.ids) if isinstance(change, Removed) else 1


def part_of(change: Change, start: int, size: int) -> Change:
    """Return the part of a change from a message on."""
    if isinstance(change, Added):
        return Added(change.messages[start : start + size])
    if isinstance(change, Removed):
        return Removed(change.ids[start : start + size], change.forgotten)
    return change


def _from_fields(cls: type[Any], data: dict[str, Any]) -> Any:
    """Return a change of data; fields that are unknown are ignored."""
    return cls(**{name: data[name] for name, _ in _FIELDS[cls] if name in data})


_READERS: dict[str, Callable[[Any], Any]] = {
    "goal": GoalSet,
    "delete": Removed,
    "forget": partial(Removed, forgotten=True),
    "clear": lambda _: Cleared(),
    "step": Checkpointed,
    **{kind: partial(_from_fields, cls) for cls, kind in _KINDS.items()},
}


def effective(rows: Sequence[Row]) -> Rows:
    """Return the entries that count: not rolled back, and not before the last clearing."""
    rows = rows if isinstance(rows, Rows) else Rows(rows)
    if {*rows.kinds}.isdisjoint(("rollback", "clear")):
        return rows
    counting: list[Row] = []
    for row in rows:
        if row[1] == "rollback":
            data, lasting = json.loads(row[2]), list[Row]()
            kept = {*data["kept"]}
            while counting and counting[-1][0] > data["to"]:
                undone = counting.pop()
                if undone[1] in LASTING or undone[0] in kept:
                    lasting.append(undone)
            counting += reversed(lasting)
        elif row[1] == "clear":
            counting = [row]
        else:
            counting.append(row)
    return Rows(counting)


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


class Replayed(Mapping[str, Message]):
    """The messages of ``rows`` by ID, in order, with their tags; they are decoded when asked for.

    All of them as objects would make Python's garbage collector stop the event loop.

    Args:
        rows: What a journal has, or the :func:`effective` part of it.
        removed: Include those that were removed later and are still in ``rows``.
    """

    def __init__(self, rows: Iterable[Row], *, removed: bool = False) -> None:
        self._found: dict[str, str | Message] = {}
        self._seqs: dict[str, int] = {}
        self._tagged: dict[str, list[Tagged]] = {}
        for seq, kind, line in rows:
            if kind in MESSAGES:
                try:
                    message_id = id_of(line)
                except ValueError as error:
                    raise unreadable(seq, error) from error
                self._found[message_id], self._seqs[message_id] = line, seq
                self._tagged.pop(message_id, None)
            elif kind in ("tag", "delete", "forget"):
                change = read_change(seq, kind, line)
                if isinstance(change, Tagged):
                    for message_id in change.ids:
                        self._tagged.setdefault(message_id, []).append(change)
                elif isinstance(change, Removed) and not removed:
                    for message_id in change.ids:
                        self._found.pop(message_id, None)

    def add(self, message: Message) -> None:
        """Add a message, or replace the one with its ID."""
        self._found[message.id] = message

    def __or__(self, other: Replayed) -> Replayed:
        """Return the messages of both; where both have an ID, that of ``other`` counts."""
        both = Replayed(())
        both._found, both._seqs = self._found | other._found, self._seqs | other._seqs
        own = {i: changes for i, changes in self._tagged.items() if i not in other._found}
        both._tagged = own | other._tagged
        return both

    def __getitem__(self, message_id: str) -> Message:
        found = self._found[message_id]
        if not isinstance(found, str):
            return found
        message = decode(found, self._seqs[message_id])
        for change in self._tagged.get(message_id, ()):
            message = change.applied_to(message)
        return message

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


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
