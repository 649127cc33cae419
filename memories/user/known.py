"""Everything that is known, by kind, and what has become of each fact, as items come and go."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.memories.user.facts import Again, Ended, Fact, resolve
from agent_brain.memories.user.items import as_item
from agent_brain.memories.views.base import View

T = TypeVar("T", bound=BaseModel)
NEVER = datetime.max.replace(tzinfo=UTC)


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
        self._again: dict[str, dict[int, Again]] = {}  # by fact, with numbers in order
        self._ended: dict[str, datetime] = {}
        self._changed: set[str] = set()
        self._waiting: dict[str, datetime] = {}  # when a fact may change by itself
        self._next = NEVER

    def all(self, kind: type[T]) -> Collection[T]:
        """Return all items of a kind, as they were stored."""
        return cast("Collection[T]", self._items.get(kind, {}).values())

    def items(self, kind: type[T]) -> Collection[tuple[str, T]]:
        """Return all items of a kind, with the IDs of the messages that store them."""
        return cast("Collection[tuple[str, T]]", self._items.get(kind, {}).items())

    def item(self, message_id: str) -> BaseModel | None:
        """Return what a message stores; None if it stores nothing."""
        return next((of[message_id] for of in self._items.values() if message_id in of), None)

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
        elif isinstance(item, Again):
            self._again.setdefault(item.fact, {})[self._added] = item
        elif isinstance(item, Ended):
            self._ended |= dict.fromkeys(item.ids, item.at)
            self._changed.update(item.ids)

    def _remove(self, message_id: str) -> None:
        kind = next((kind for kind, of in self._items.items() if message_id in of), None)
        if kind is None:
            return
        item = self._items[kind].pop(message_id)
        self.version += 1
        if isinstance(item, Fact | Again):
            for source in item.sources:
                _drop(self._cited, source.message, message_id)
        if isinstance(item, Again):
            noted = self._again[item.fact]
            del noted[next(number for number, each in noted.items() if each is item)]
            self._changed.add(item.fact)
        elif isinstance(item, Ended):
            self._ended = {i: each.at for each in self.all(Ended) for i in each.ids}
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
        if now >= self._next:
            self._changed |= {i for i, at in self._waiting.items() if at <= now}
        if self._changed:
            self._resolve(now)
        return self._facts

    def _resolve(self, now: datetime) -> None:
        ids = self._concerned()
        stored = cast("dict[str, Fact]", self._items.get(Fact, {}))
        again = dict(pair for i in ids for pair in self._again.get(i, {}).items())
        ordered = [again[number] for number in sorted(again)]
        found = resolve([stored[i] for i in ids], now, self._ended, ordered)
        for i in self._again.keys() & found.keys():
            told = dict.fromkeys(s for each in self.statements(i) for s in each.sources)
            found[i] = found[i].model_copy(update={"sources": (*told,)})
        self._put(found)
        for i in ids:
            fact = stored[i]
            moments = fact.valid_from, fact.valid_to, fact.expires_at, self._ended.get(i)
            said = [each.at for each in self._again[i].values()] if i in self._again else ()
            self._waiting.pop(i, None)
            if later := [at for at in (*moments, *said) if at is not None and at > now]:
                self._waiting[i] = min(later)
        self._next = min(self._waiting.values(), default=NEVER)
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

    def _concerned(self) -> list[str]:
        """Return the IDs of the facts that changes concern, in order."""
        waiting, found = [i for i in self._changed if i in self._places], set[str]()
        stored = cast("dict[str, Fact]", self._items.get(Fact, {}))
        if len(waiting) == len(stored):  # it was just opened
            return [*stored]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                named = [i for i in stored[at].replaces if i in stored]
                waiting += named
                for shared in (at, stored[at].value_of, *named):
                    waiting += self._related.get(shared, {}).keys() - found
        return sorted(found, key=self._places.__getitem__)

    def said_as(self, fact: Fact) -> list[Fact]:
        """Return the facts in the same words about the same, in order; after :meth:`facts`."""
        found = [self._facts[i] for i in self._related.get(fact.value_of, ()) if i in self._facts]
        found.sort(key=lambda other: self._places[other.id])
        return [other for other in found if other.said == fact.said]

    def again(self, fact_id: str) -> Collection[Again]:
        """Return when a fact was said again."""
        return self._again.get(fact_id, {}).values()

    def statements(self, fact_id: str) -> list[Fact | Again]:
        """Return a fact as it was stored, and when it was said again."""
        return [cast("Fact", self._items[Fact][fact_id]), *self.again(fact_id)]

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
