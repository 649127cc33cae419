"""What is stored about a user besides facts, and everything that is known, by kind.

Each item is in a message. What has become of each fact is found as items come and go.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, ValidationError
from pydantic_core import PydanticCustomError

from agent_brain.memories.errors import JournalError
from agent_brain.memories.message import Message
from agent_brain.memories.user.facts import DERIVED, USER, Again, Ended, Fact, Source, resolve
from agent_brain.memories.views.base import View

FACT, RECORD = "fact", "record"  # keys in the metadata of a message
_ELSEWHERE = {"id", "text", "said_at", *DERIVED}  # fields of a fact that are not in the metadata
T = TypeVar("T", bound=BaseModel)


def _in_one_line(name: str) -> str:
    if not name.isprintable() or not name.strip():
        raise PydanticCustomError("name", "It must be a text in one line")
    return name


class Block(BaseModel, frozen=True, extra="forbid"):
    """A short text about the user that the model edits.

    Attributes:
        name: Its name, such as ``"persona"``.
        text: The text.
        version: How often it was written.
        at: When it was written.
    """

    name: Annotated[str, Field(max_length=64), AfterValidator(_in_one_line)]
    text: Annotated[str, Field(max_length=2_000)]
    version: int
    at: AwareDatetime


class ReadUpTo(BaseModel, frozen=True, extra="forbid"):
    """How far a conversation was read.

    Attributes:
        conversation: Its name.
        after: A cursor of ``find_news()``: what that does not return was read.
        last: The ID of the last message behind the cursor that was read.
        entries: The number of the session's last entry when all of it was read.
        refused: How many facts were refused, by reason.
    """

    conversation: str
    after: int = 0
    last: str | None = None
    entries: int | None = None
    refused: dict[str, int] = {}


class Exported(BaseModel, frozen=True):
    """What is known about a user, as JSON data: see :meth:`UserMemory.export`.

    It has facts or blocks.

    Attributes:
        version: The version of the format.
        facts: The facts.
        blocks: All versions of the blocks.
        again: When facts were said again.
    """

    version: Literal[1]
    facts: list[Fact] = []
    blocks: list[Block] = []
    again: list[Again] = []


_RECORDS: dict[str, type[BaseModel]] = {
    "block": Block,
    "read": ReadUpTo,
    "ended": Ended,
    "again": Again,
}


def _title(slot: str | None) -> str:
    """Return what stands before a fact, so that it is found by the name of its slot."""
    return "" if slot is None else f"{slot}: "


def as_message(item: BaseModel) -> Message:
    """Return what stores a fact or a record.

    A fact is a user message, which recall finds; a record is a system message, which it does not.
    """
    if isinstance(item, Fact):
        data = item.model_dump(mode="json", exclude=_ELSEWHERE, exclude_defaults=True)
        return Message.user(
            _title(item.slot) + item.text,
            id=item.id,
            name=None if item.about == USER else item.about,
            created_at=item.said_at,
            metadata={FACT: data},
        )
    kind = next(name for name, known in _RECORDS.items() if type(item) is known)
    return Message.system("", metadata={RECORD: {kind: item.model_dump(mode="json")}})


def as_item(message: Message) -> BaseModel | None:
    """Return the fact or the record that a message stores; None if it stores none.

    Raises:
        JournalError: It is not what was written.
    """
    try:
        if FACT in message.metadata:
            data: Any = message.metadata[FACT]
            text = message.content.removeprefix(_title(data.get("slot")))
            own = {"id": message.id, "text": text, "said_at": message.created_at}
            return Fact.model_validate(data | own)
        if RECORD in message.metadata:
            ((kind, value),) = message.metadata[RECORD].items()  # type: ignore[union-attr]
            return _RECORDS[kind].model_validate(value)
    except (ValidationError, TypeError, ValueError, KeyError) as error:
        raise JournalError(f"Message {message.id} does not store a fact: {error}") from error
    return None


class Known(View):
    """Items by kind, and the facts among them with what has become of each.

    When something is added or removed, or time passes, only those facts are looked at again that it
    may concern: facts of the same slot, those that they replace by name, and so on from these.

    Attributes:
        version: Grows when something changes.
    """

    tail = 0

    def __init__(self) -> None:
        self.version = 0
        self.reset()

    def reset(self) -> None:
        """As :meth:`View.reset`."""
        self._unread = True  # the log may have any number of other messages than these:
        self._changes: list[tuple[Message, bool]] = []  # whether they are there, in order

    def add(self, messages: Sequence[Message]) -> None:
        """As :meth:`View.add`."""
        self._changes += ((message, True) for message in messages)

    def remove(self, messages: Sequence[Message]) -> None:
        """As :meth:`View.remove`."""
        self._changes += ((message, False) for message in messages)

    def look(self) -> None:
        """Take up what has changed."""
        changes: Iterable[tuple[Message, bool]] = self._changes
        if self._unread:
            self._clear()
            changes = ((message, True) for message in self.log)
        for message, there in changes:
            if not there:
                self._remove(message.id)
            elif (item := as_item(message)) is not None:
                self._add(message.id, item)
        self._unread, self._changes = False, []

    def _clear(self) -> None:
        self.version += 1
        self._items: dict[type[BaseModel], dict[str, BaseModel]] = {}  # by the IDs of messages
        self._facts: dict[str, Fact] = {}  # resolved, in the order in which they were said
        self._places: dict[str, tuple[datetime, datetime, int]] = {}  # in that order
        self._added = 0
        # IDs of facts, by what they are the one value of, and by the IDs of those that they replace
        self._related: dict[Hashable, dict[str, None]] = {}
        self._cited: dict[str, dict[str, str]] = {}  # facts by items, by the messages these cite
        self._changed: set[str] = set()
        self._waiting: dict[str, datetime] = {}  # when a fact may change by itself

    def items(self, kind: type[T]) -> Mapping[str, T]:
        """Return all items of a kind, as they were stored, by the IDs of their messages."""
        return cast("Mapping[str, T]", self._items.get(kind, {}))

    def all(self, kind: type[T]) -> Collection[T]:
        """Return all items of a kind, as they were stored."""
        return self.items(kind).values()

    def item(self, message_id: str) -> BaseModel | None:
        """Return what a message stores; None if it stores nothing."""
        return next((of[message_id] for of in self._items.values() if message_id in of), None)

    @property
    def ended(self) -> dict[str, datetime]:
        """When facts ended whose successors were forgotten, by ID."""
        return {i: each.at for each in self.all(Ended) for i in each.ids}

    # Changing

    def _add(self, message_id: str, item: BaseModel) -> None:
        self._items.setdefault(type(item), {})[message_id] = item
        self._added += 1
        self.version += 1
        if isinstance(item, Fact | Again):  # most are
            fact_id = item.id if isinstance(item, Fact) else item.fact
            self._changed.add(fact_id)
            for source in item.sources:
                self._cited.setdefault(source.message, {})[message_id] = fact_id
        if isinstance(item, Fact):
            self._places[item.id] = item.said_at, item.recorded_at, self._added
            for shared in (item.value_of, *item.replaces):
                self._related.setdefault(shared, {})[item.id] = None
        elif isinstance(item, Ended):
            self._changed.update(item.ids)

    def _remove(self, message_id: str) -> None:
        item = self.item(message_id)
        if item is None:
            return
        del self._items[type(item)][message_id]
        self.version += 1
        if isinstance(item, Fact | Again):
            for source in item.sources:
                _drop(self._cited, source.message, message_id)
        if isinstance(item, Again):
            self._changed.add(item.fact)
        elif isinstance(item, Ended):
            self._changed.update(item.ids)
        elif isinstance(item, Fact):
            self._changed.update(item.replaces)
            for shared in (item.id, item.value_of, *item.replaces):
                self._changed.update(self._related.get(shared, ()))
            for shared in (item.value_of, *item.replaces):
                _drop(self._related, shared, item.id)
            for found in (self._facts, self._places, self._waiting):
                found.pop(item.id, None)
            self._changed.discard(item.id)

    # Reading

    def facts(self, now: datetime) -> dict[str, Fact]:
        """Return all facts by ID, with what has become of each, in the order of being said."""
        self._changed.update(i for i, at in self._waiting.items() if at <= now)
        if self._changed:
            self._resolve(now)
        return self._facts

    def _resolve(self, now: datetime) -> None:
        ids, stored, ended = self._concerned(), self.items(Fact), self.ended
        again = [each for each in self.all(Again) if each.fact in ids]
        found = resolve([stored[i] for i in ids], now, ended, again)
        sources: dict[str, dict[Source, None]] = {}
        for each in again:
            known = sources.setdefault(each.fact, dict.fromkeys(stored[each.fact].sources))
            known.update(dict.fromkeys(each.sources))
        for i, told in sources.items():
            found[i] = found[i].model_copy(update={"sources": (*told,)})
        self._put(found)
        moments = [(each.fact, each.at) for each in again]
        for i in ids:
            fact = stored[i]
            self._waiting.pop(i, None)
            times = fact.valid_from, fact.valid_to, fact.expires_at, ended.get(i)
            moments += [(i, at) for at in times if at is not None]
        for i, at in moments:
            if at > now:
                self._waiting[i] = min(at, self._waiting.get(i, at))
        self._changed.clear()
        self.version += 1

    def _put(self, found: dict[str, Fact]) -> None:
        """Take up what has become of facts; the new ones come in the order of being said."""
        new = [i for i in found if i not in self._facts]
        last = next(reversed(self._facts), None)
        self._facts.update(found)
        if new and last is not None and self._places[new[0]] < self._places[last]:
            order = sorted(self._facts, key=self._places.__getitem__)
            self._facts = {i: self._facts[i] for i in order}

    def _concerned(self) -> Collection[str]:
        """Return the IDs of the facts that changes concern, in order."""
        waiting, found = [i for i in self._changed if i in self._places], set[str]()
        stored = self.items(Fact)
        if len(waiting) == len(stored):  # it was just opened
            return stored.keys()
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                named = [i for i in stored[at].replaces if i in stored]
                waiting += named
                for shared in (at, stored[at].value_of, *named):
                    waiting += self._related.get(shared, {}).keys() - found
        return dict.fromkeys(sorted(found, key=self._places.__getitem__))

    def said_as(self, fact: Fact) -> list[Fact]:
        """Return the facts in the same words about the same, in order; after :meth:`facts`."""
        found = [self._facts[i] for i in self._related.get(fact.value_of, ()) if i in self._facts]
        found.sort(key=lambda other: self._places[other.id])
        return [other for other in found if other.said == fact.said]

    def again(self, fact_id: str) -> list[Again]:
        """Return when a fact was said again."""
        return [each for each in self.all(Again) if each.fact == fact_id]

    def statements(self) -> dict[str, list[Fact | Again]]:
        """Return each fact by ID as it was stored, and when it was said again."""
        told: dict[str, list[Fact | Again]] = {i: [fact] for i, fact in self.items(Fact).items()}
        for each in self.all(Again):
            if each.fact in told:
                told[each.fact].append(each)
        return told

    def is_outdated(self, message_id: str) -> bool:
        """Return whether a message says what does not hold any more; after :meth:`facts`."""
        cited = map(self._facts.get, self._cited.get(message_id, {}).values())
        return any(fact is not None and fact.status in ("replaced", "ended") for fact in cited)


def _drop(index: dict[Any, dict[str, Any]], key: Hashable, name: str) -> None:
    """Remove a name; it may be gone, as an item may cite a message for two quotes."""
    if key in index:
        index[key].pop(name, None)
        if not index[key]:
            del index[key]
