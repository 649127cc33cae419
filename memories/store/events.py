"""What can happen to a record, as values that a journal can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pydantic import JsonValue, ValidationError

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message


@dataclass(frozen=True, slots=True)
class Added:
    """Messages came, all in one update."""

    messages: Sequence[Message]

    def entries(self) -> list[Entry]:
        """One entry a message, so that each can be removed physically; the last ends the update."""
        data = [m.model_dump(mode="json", exclude_defaults=True) for m in self.messages]
        kinds = ["part"] * (len(data) - 1) + ["message"]
        return [Entry(kind, item) for kind, item in zip(kinds, data, strict=True)]


@dataclass(frozen=True, slots=True)
class GoalSet:
    """This message is the goal from now on; None: there is none."""

    message_id: str | None

    def entries(self) -> list[Entry]:
        """The change as a journal holds it."""
        return [Entry("goal", self.message_id)]


@dataclass(frozen=True, slots=True)
class Removed:
    """Messages went; ``forgotten`` ones from the journal too."""

    ids: Sequence[str]
    forgotten: bool = False

    def entries(self) -> list[Entry]:
        """The change as a journal holds it."""
        return [Entry("forget" if self.forgotten else "delete", list(self.ids))]


@dataclass(frozen=True, slots=True)
class Tagged:
    """Tags were added to messages or taken from them, or messages were pinned or unpinned."""

    ids: Sequence[str]
    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    pinned: bool | None = None

    def applied_to(self, message: Message) -> Message:
        """``message`` with its new tags, pinned or not."""
        tags = (message.tags | {*self.add}) - {*self.remove}
        pinned = message.pinned if self.pinned is None else self.pinned
        return message.model_copy(update={"tags": tags, "pinned": pinned})

    def entries(self) -> list[Entry]:
        """The change as a journal holds it."""
        data: dict[str, JsonValue] = {
            "ids": [*self.ids],
            "add": [*self.add],
            "remove": [*self.remove],
        }
        if self.pinned is not None:
            data["pinned"] = self.pinned
        return [Entry("tag", data)]


@dataclass(frozen=True, slots=True)
class Kept:
    """A value to keep under a name, such as a summary; None: no more."""

    name: str
    value: JsonValue

    def entries(self) -> list[Entry]:
        """The change as a journal holds it."""
        return [Entry("view", {"name": self.name, "value": self.value})]


@dataclass(frozen=True, slots=True)
class Cleared:
    """Nothing of what was before counts any more."""

    def entries(self) -> list[Entry]:
        """The change as a journal holds it."""
        return [Entry("clear", None)]


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """Where the run stood.

    Attributes:
        control: The registers.
        since: The place that a rollback returns to, if that is not this one: the last step had not
            ended when something was taken out of the registers.
    """

    control: JsonValue
    since: int | None = None

    def entries(self) -> list[Entry]:
        """The change as a journal holds it."""
        if self.since is None:
            return [Entry("control", self.control)]
        return [Entry("amend", {"control": self.control, "since": self.since})]


LASTING = ("delete", "forget", "amend")  # what is gone does not come back with a rollback
Change: TypeAlias = Added | GoalSet | Removed | Tagged | Kept | Cleared | Checkpointed


def live(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that count: not rolled back, and not before the last clearing."""
    counting: list[Entry] = []
    for entry in entries:
        if entry.kind == "rollback":
            after, lasting = cast(int, entry.data), []
            while counting and counting[-1].seq > after:
                undone = counting.pop()
                if undone.kind in LASTING:
                    lasting.append(undone)
            counting += reversed(lasting)
        elif entry.kind == "clear":
            counting = [entry]
        else:
            counting.append(entry)
    return counting


def read_changes(entries: Iterable[Entry]) -> Iterator[tuple[int, Change]]:
    """The changes that ``entries`` tell, each with the sequence number of its first entry.

    Raises:
        JournalError: An entry cannot be read.
    """
    update: list[Message] = []
    first = 0
    for entry in entries:
        if entry.kind in ("part", "message"):
            first = first if update else entry.seq
            if update and entry.seq != first + len(update):  # what stood between was forgotten
                yield first, Added(update)
                first, update = entry.seq, []
            update.append(read_message(entry))
            if entry.kind == "message":
                yield first, Added(update)
                update = []
        else:
            if update:
                yield first, Added(update)
                update = []
            yield entry.seq, read_change(entry)
    if update:
        yield first, Added(update)


def told(entries: Iterable[Entry], *, removed: bool = False) -> dict[str, Message]:
    """The messages that ``entries`` tell of, by their ids, in order, with their tags.

    Args:
        entries: What a journal holds, or the :func:`live` part of it.
        removed: With those that were removed later and are still in there.
    """
    found: dict[str, Message] = {}
    for entry in entries:
        if entry.kind in ("part", "message"):
            message = read_message(entry)
            found[message.id] = message
        elif entry.kind in ("tag", "delete", "forget"):
            change = read_change(entry)
            if isinstance(change, Tagged):
                known = [found[message_id] for message_id in change.ids if message_id in found]
                found.update({message.id: change.applied_to(message) for message in known})
            elif isinstance(change, Removed) and not removed:
                for message_id in change.ids:
                    found.pop(message_id, None)
    return found


def read_message(entry: Entry) -> Message:
    """The message of a ``"part"`` or ``"message"`` entry.

    Raises:
        JournalError: It is none.
    """
    try:
        return Message.model_validate(entry.data)
    except ValidationError as error:
        raise _unreadable(entry, error) from error


def read_change(entry: Entry) -> Change:
    """The change of an entry that is no message.

    Raises:
        JournalError: It is none.
    """
    data = entry.data
    try:
        match entry.kind:
            case "goal":
                return GoalSet(cast("str | None", data))
            case "delete" | "forget":
                return Removed(cast("list[str]", data), forgotten=entry.kind == "forget")
            case "tag":
                return Tagged(**cast("dict[str, Any]", data))
            case "view":
                return Kept(**cast("dict[str, JsonValue]", data))  # type: ignore[arg-type]
            case "clear":
                return Cleared()
            case "control":
                return Checkpointed(data)
            case "amend":
                return Checkpointed(**cast("dict[str, Any]", data))
    except TypeError as error:
        raise _unreadable(entry, error) from error
    raise _unreadable(entry, f"entries of kind {entry.kind!r} are unknown to this version")


def _unreadable(entry: Entry, why: object) -> JournalError:
    return JournalError(
        f"Entry {entry.seq} of the session cannot be read ({why}): it was written by something "
        "else, or by a newer version of this library"
    )
