"""Which messages queries, deleting and forgetting are about."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Literal, TypeAlias, TypedDict

from pydantic import JsonValue

from agent_brain.common.aio import not_async
from agent_brain.common.text import folded
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.erasure import LEAST_LETTERS, contains
from agent_brain.memories.store.events import Forgetting
from agent_brain.memories.store.expiry import as_duration
from agent_brain.memories.views.groups import with_partners

Names: TypeAlias = str | type | Iterable[str | type]  # a class gives its name
Keep: TypeAlias = Literal["pinned"] | Iterable[str] | Callable[[Message], bool]
Where: TypeAlias = Callable[[Message], bool] | Mapping[str, JsonValue]


class Filters(TypedDict, total=False):
    """The options of :class:`Query`, as keyword arguments of a method."""

    role: Names | None
    cause_by: Names | None
    name: Names | None
    sent_from: Names | None
    tags: Names | None
    without_tags: Names | None
    text: str | None
    where: Where | None
    since: datetime | None
    until: datetime | None


class ForgetOptions(TypedDict, total=False):
    """The options of ``forget()`` besides IDs."""

    where: Where | None
    older_than: datetime | timedelta | None
    role: Names | None
    name: Names | None
    tags: Names | None
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The conditions that a message must meet; None is not a condition.

    Attributes:
        role: With one of these roles.
        cause_by: Caused by one of these.
        name: Said by one of these speakers.
        sent_from: Sent by one of these.
        tags: With at least one of these tags.
        without_tags: With none of these tags.
        text: Containing this text, whatever the case and the spaces, anywhere but in IDs, times,
            and the names of tools and states.
        where: A function of the message, not async, or values that its metadata must have.
        since: Of this moment or later: when it happened (``occurred_at``), else was created.
        until: Of before this moment, likewise.
    """

    role: Names | None = None
    cause_by: Names | None = None
    name: Names | None = None
    sent_from: Names | None = None
    tags: Names | None = None
    without_tags: Names | None = None
    text: str | None = None
    where: Where | None = None
    since: datetime | None = None
    until: datetime | None = None

    def predicate(self) -> Callable[[Message], bool]:
        """Return the query as a function of a message.

        Raises:
            MemoryUseError: No message can meet a condition.
        """
        tests = [*self._tests()]
        if len(tests) == 1:
            return tests[0]
        return lambda message: all(test(message) for test in tests)

    def _tests(self) -> Iterable[Callable[[Message], bool]]:
        for field in ("role", "cause_by", "name", "sent_from"):
            value: Names | None = getattr(self, field)
            if value is not None:
                yield _among(field, _roles(value) if field == "role" else names(field, value))
        if self.tags is not None:
            wanted = names("tags", self.tags)
            yield lambda m: not wanted.isdisjoint(m.tags)
        if self.without_tags is not None:
            unwanted = names("without_tags", self.without_tags)
            yield lambda m: unwanted.isdisjoint(m.tags)
        if self.text is not None:
            text = folded(checked_text("text=", self.text))
            yield lambda m: contains(m, text)
        if self.where is not None:
            yield _where(self.where)
        if self.since is not None:
            since = moment("since", self.since)
            yield lambda m: (m.occurred_at or m.created_at) >= since
        if self.until is not None:
            until = moment("until", self.until)
            yield lambda m: (m.occurred_at or m.created_at) < until


def _among(field: str, wanted: frozenset[str]) -> Callable[[Message], bool]:
    value_of = attrgetter(field)
    return lambda message: value_of(message) in wanted


def names(what: str, value: Names) -> frozenset[str]:
    """Return one name or several as a set."""
    if not isinstance(value, str | type | Iterable):
        raise MemoryUseError(f"{what}= takes a name or several, not {value!r}")
    several = [value] if isinstance(value, str | type) else [*value]
    for name in several:
        if not isinstance(name, str | type):
            raise MemoryUseError(f"{what}= takes a name or several, not {name!r}")
    return frozenset(name if isinstance(name, str) else name.__name__ for name in several)


def refuse_unknown(ids: Iterable[str], known: Container[str]) -> None:
    """Refuse IDs that are not known.

    Raises:
        MemoryUseError: There are some.
    """
    if unknown := sorted(message_id for message_id in ids if message_id not in known):
        raise MemoryUseError(
            f"delete(strict=True): there is no message {', '.join(map(repr, unknown))} here, and "
            "nothing was deleted"
        )


def kept_by(keep: Keep | None, messages: Sequence[Message]) -> list[str]:
    """Return the IDs of the messages that ``clear(keep=…)`` keeps, in whole groups.

    Raises:
        MemoryUseError: ``keep`` cannot be used.
    """
    if keep is None:
        return []
    if keep == "pinned":
        keep = attrgetter("pinned")
    if callable(keep):
        chosen = [*map(attrgetter("id"), filter(_condition(keep), messages))]
    elif isinstance(keep, Iterable) and not isinstance(keep, str):
        chosen = [*names("keep", keep)]
    else:
        raise MemoryUseError(
            f'clear(keep={keep!r}): use "pinned", IDs in a list, or a function of a message'
        )
    return with_partners(chosen, messages)


def checked_text(what: str, value: str) -> str:
    """Return ``value`` if it is a text.

    Raises:
        MemoryUseError: It is something else.
    """
    if not isinstance(value, str):
        raise MemoryUseError(f"{what} takes a text, not {value!r:.100}")
    return value


def checked_cursor(after: int) -> int:
    """Return ``after`` if it is a cursor of ``find_news()``.

    Raises:
        MemoryUseError: It is something else.
    """
    if isinstance(after, bool) or not isinstance(after, int):
        raise MemoryUseError(
            f"find_news() takes the cursor that it returned before, or 0, not {after!r:.100}"
        )
    return after


def moment(what: str, value: datetime) -> datetime:
    """Return ``value`` if it can be compared with the time of a message.

    Raises:
        MemoryUseError: It has no time zone, or is not a datetime.
    """
    if not isinstance(value, datetime):
        raise MemoryUseError(f"{what}= takes a datetime, not {value!r}")
    if value.tzinfo is None:
        raise MemoryUseError(
            f"{what}={value!r} has no time zone, and messages have one: use "
            "datetime.now(timezone.utc), or value.astimezone()"
        )
    return value


def _roles(value: Names) -> frozenset[str]:
    roles = names("role", value)
    for role in roles:
        if role not in tuple(Role):
            raise MemoryUseError(f"There is no role {role!r}: roles are {', '.join(Role)}")
    return roles


def _where(where: Where) -> Callable[[Message], bool]:
    if isinstance(where, Mapping):
        wanted = dict(where).items()
        return lambda m: all(k in m.metadata and m.metadata[k] == v for k, v in wanted)
    if not callable(where):
        raise MemoryUseError(
            f"where= takes a function of a message, or a dict of metadata values, not {where!r}"
        )
    return _condition(where)


def _condition(function: Callable[[Message], bool]) -> Callable[[Message], bool]:
    """Return a function of a message, which must not be async.

    Raises:
        MemoryUseError: It is async.
    """
    return not_async(
        function, lambda why: MemoryUseError(f"A function that chooses messages {why}")
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be forgotten.

    Attributes:
        fits: Whether a message is.
        ids: The IDs that the choice is limited to, if it is.
        text: The text that messages are chosen by, if they are.
        parts: Texts, folded, that are to be forgotten wherever they are, not only in messages.
    """

    fits: Callable[[Message], bool]
    ids: frozenset[str] | None = None
    text: str | None = None
    parts: frozenset[str] = frozenset()

    def with_rest(self, left: Forgetting | None) -> Choice:
        """Return the choice with what an earlier one has left to do."""
        if left is None:
            return self
        ids, fits = frozenset(left.ids), self.fits
        parts = frozenset(left.texts)
        return Choice(
            lambda m: fits(m) or m.id in ids or any(contains(m, part) for part in parts),
            None if self.ids is None else self.ids | ids,
            self.text,
            self.parts | parts,
        )


def rest_of(left: Forgetting) -> Choice:
    """Return the choice of what an earlier one has left to do."""
    return Choice(lambda _: False, frozenset()).with_rest(left)


def forgettable(ids: Names | None, which: ForgetOptions, now: datetime) -> Choice:
    """Return what the arguments of ``forget()`` choose.

    Raises:
        MemoryUseError: No option is given, or one makes no sense.
    """
    if ids is None and all(given is None for given in which.values()):
        raise MemoryUseError("Say which messages to forget; clear() removes all of them")
    text = which.get("text")
    part = "" if text is None else folded(checked_text("text=", text))
    given = {"text": None if text is None else part, "where": which.get("where")}
    for option, value in given.items():
        if value in ("", {}):
            raise MemoryUseError(
                f"{option}= is empty, which fits every message. Say which messages to forget; "
                "clear() removes all of them"
            )
    older_than = which.get("older_than")
    until = now - older_than if isinstance(older_than, timedelta) else older_than
    if isinstance(older_than, timedelta):
        as_duration("older_than", older_than)
    elif until is not None:
        moment("older_than", until)
    fits = Query(
        where=which.get("where"),
        role=which.get("role"),
        name=which.get("name"),
        tags=which.get("tags"),
    ).predicate()
    wanted = None if ids is None else names("ids", ids)
    alone = wanted is None and [name for name in which if which[name] is not None] == ["text"]  # type: ignore[literal-required]
    return Choice(
        lambda message: (
            (wanted is None or message.id in wanted)
            and (until is None or message.created_at < until)
            and fits(message)
            and contains(message, part)
        ),
        wanted,
        text,
        frozenset([part] if alone and len(part) >= LEAST_LETTERS else ()),
    )
