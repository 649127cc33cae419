"""Facts about a user, and which of them hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, Literal, Self, TypeAlias
from unicodedata import normalize

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field, model_validator

from agent_brain.common.ids import new_id
from agent_brain.common.text import folded
from agent_brain.memories.store.expiry import utc_now

USER = "user"  # whom most facts are about
MOST_LETTERS = 500  # of a fact
LONGEST_NAME = 64  # of a slot, or of whom a fact is about

Kind: TypeAlias = Literal["identity", "preference", "event", "instruction"]
Status: TypeAlias = Literal["current", "planned", "replaced", "claim", "ended"]
CURRENT: tuple[Status, ...] = ("current",)
LIVE: tuple[Status, ...] = ("current", "planned", "claim")  # that are shown when they fit


class Origin(StrEnum):
    """Whose words a fact rests on, the most trusted first.

    A fact never replaces one of a more trusted origin (cf. arXiv 2606.24322: the origin is bound
    when a memory is written).

    Attributes:
        rank: How little it is trusted: 0 for the user and the program, 4 for tools.
    """

    rank: int

    def __new__(cls, value: str, rank: int) -> Self:
        """Return a member; ``rank`` says how little it is trusted."""
        member = str.__new__(cls, value)
        member._value_, member.rank = value, rank
        return member

    USER = "user", 0
    PROGRAM = "program", 0
    ASSISTANT = "assistant", 1
    OTHER = "other", 2
    DOCUMENT = "document", 3
    TOOL = "tool", 4


OWN = frozenset((Origin.USER, Origin.PROGRAM))
"""Origins of facts that the user, or the program for the user, has stated."""


_UNSEEN = re.compile("[\x00\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def as_text(value: Any) -> Any:
    """Return a text without characters that nobody sees; pydantic refuses what is no text."""
    if not isinstance(value, str):
        return value
    return (value if value.isprintable() else _UNSEEN.sub("", value)).strip()


def as_name(value: Any) -> Any:
    """Return a name in one form, so that no other spelling is another person or slot."""
    if not isinstance(value, str):
        return value
    name = " ".join(normalize("NFKC", as_text(value)).split())
    return USER if name.casefold() == USER else name


_Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), BeforeValidator(as_name)]
_Text = Annotated[str, Field(min_length=1, max_length=MOST_LETTERS), BeforeValidator(as_text)]


class Source(BaseModel, frozen=True, extra="forbid"):
    """Where a fact was said.

    Attributes:
        message: The ID of the message.
        quote: Its words that say so.
        session: The conversation; None if it has no name.
        at: When it was said.
    """

    message: str
    quote: str = ""
    session: str | None = None
    at: AwareDatetime | None = None


class Fact(BaseModel, frozen=True, extra="forbid"):
    """Something that is known about a user. Never changed: a new fact replaces it.

    Attributes:
        id: A unique ID.
        text: The fact, as a short sentence.
        about: Whom it is about: ``"user"``, or the name of another person.
        slot: What it is the one value of, such as ``"home"``: a newer fact of the same slot about
            the same person replaces it. None if there may be many.
        kind: ``"identity"``, ``"preference"``, ``"event"`` or ``"instruction"``.
        sources: The messages that it rests on, also those that have said it again.
        origin: The least trusted of those who said it.
        unsure: Whether it may contradict others of its slot, without replacing them.
        replaces: The IDs of facts that it replaces, besides those of its slot.
        said_at: When it was said; of two facts the one that was said later holds. Of a message with
            a time that is still to come, it is when that was learned.
        valid_from: Since when it has been true.
        valid_to: Until when it was true; None if it still is, as far as is known.
        expires_at: When it ceases to hold by itself.
        recorded_at: When it was stored.
        status: ``"current"``; ``"planned"``, as ``valid_from`` is still to come; ``"replaced"`` by
            another fact; a ``"claim"``, which neither the user nor the program has made, or
            which contradicts a fact of a more trusted origin; or ``"ended"``.
        replaced_by: The ID of the fact that has replaced it, or, for a claim, stands against it, if
            there is one.
        replaced_at: When that one was stored.
        disputed_by: The IDs of current facts that contradict it.
    """

    id: str = Field(default_factory=lambda: new_id("fact"))
    text: _Text
    about: _Name = USER
    slot: _Name | None = None
    kind: Kind = "preference"
    sources: tuple[Source, ...] = ()
    origin: Origin
    unsure: bool = False
    replaces: tuple[str, ...] = ()
    said_at: AwareDatetime = Field(default_factory=utc_now)
    valid_to: AwareDatetime | None = None
    valid_from: AwareDatetime = Field(
        default_factory=lambda made: min(made["said_at"], made.get("valid_to") or made["said_at"])
    )
    expires_at: AwareDatetime | None = None
    recorded_at: AwareDatetime = Field(default_factory=utc_now)
    status: Status = "current"
    replaced_by: str | None = None
    replaced_at: AwareDatetime | None = None
    disputed_by: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, end in (("valid_to", self.valid_to), ("expires_at", self.expires_at)):
            if end is not None and end < self.valid_from:
                raise ValueError(f"{name} is before valid_from")
        if self.kind == "instruction" and self.origin not in OWN:
            raise ValueError(
                "instructions are kept only if the user gives them, and this one is from: "
                f"{self.origin}"
            )
        return self

    @cached_property
    def said(self) -> tuple[str, str, str]:
        """What it says of whom, however it is written; the same for facts that say the same."""
        text = folded(self.text)
        return folded(self.about), folded(self.slot or ""), text.rstrip(" .!…。！") or text

    @property
    def value_of(self) -> tuple[str, ...]:
        """What it is the one value of: its slot; without one, it is so of its own words."""
        return self.said[:2] if self.slot else self.said


DERIVED = frozenset(("status", "replaced_by", "replaced_at", "disputed_by"))
"""Fields that follow from the other facts, and are not stored."""


class Again(BaseModel, frozen=True, extra="forbid"):
    """A fact that was said again, by those who had said it.

    Attributes:
        fact: Its ID.
        at: When it was said again.
        sources: The messages that have said so.
    """

    fact: str
    at: AwareDatetime
    sources: tuple[Source, ...] = ()


class Ended(BaseModel, frozen=True, extra="forbid"):
    """Facts that ended, and whose successor was forgotten.

    Attributes:
        ids: Their IDs.
        at: When they ended.
    """

    ids: tuple[str, ...]
    at: AwareDatetime


_when = attrgetter("said_at", "recorded_at")


class _Outcomes:
    """What has become of facts among themselves, by ID.

    Args:
        facts: The facts, in the order in which they were said.
        renewed: Facts that were said again, with the time of that.
        now: The time.
    """

    def __init__(self, facts: Iterable[Fact], renewed: Iterable[Fact], now: datetime) -> None:
        self.replaced: dict[str, Fact] = {}
        self.claims: dict[str, Fact] = {}
        self.disputes: dict[str, list[str]] = {}
        self.waiting: dict[str, list[Fact]] = {}  # what a plan replaces when its time has come
        slots: dict[tuple[str, ...], list[Fact]] = {}
        said = {fact.id: fact for fact in facts}
        again = [fact for fact in renewed if fact.id in said]
        for fact in sorted([*said.values(), *again], key=_when) if again else said.values():
            if fact is not said[fact.id]:
                self.renew(fact)
            if fact.valid_to is None or fact.valid_to > min(fact.said_at, now):  # not of the past
                value_of = fact.value_of
                slots[value_of] = self.take(slots.get(value_of, []), fact)
            for target in fact.replaces:
                if (other := said.get(target)) is not None and other.id != fact.id:
                    self.meet(*sorted((fact, other), key=_when))

    def take(self, holders: list[Fact], fact: Fact) -> list[Fact]:
        """Return the current facts of a slot when another one was said."""
        if not holders:
            return [fact]
        holders = [holder for holder in holders if holder.id != fact.id]
        if any(fact.origin.rank > holder.origin.rank for holder in holders):
            self.meet(holders[-1], fact)
            return holders
        plans = [holder for holder in holders if holder.valid_from > fact.said_at]
        if plans and any(self.repeats(fact, plan) for plan in plans):
            return holders
        return [*(holder for holder in holders if not self.meet(holder, fact)), fact]

    def meet(self, older: Fact, newer: Fact) -> bool:
        """Let a fact contradict one that was said before; return whether it replaces that."""
        if newer.origin.rank > older.origin.rank:
            self.claims.setdefault(newer.id, older)
        elif newer.unsure:
            self.disputes.setdefault(older.id, []).append(newer.id)
            self.disputes.setdefault(newer.id, []).append(older.id)
        else:
            replaces = self.replaced.setdefault(older.id, newer) is newer
            if replaces and (newer.valid_from > newer.said_at or older.id in self.waiting):
                self._plan(older, newer)
            return True
        return False

    def _plan(self, older: Fact, newer: Fact) -> None:
        """Note what a plan is to replace; one that is given up has replaced nothing."""
        left = self.waiting.pop(older.id, []) if older.valid_from > newer.said_at else []
        for fact in left:
            self.replaced[fact.id] = newer
        if newer.valid_from > newer.said_at:
            self.waiting[newer.id] = [*self.waiting.get(newer.id, ()), *left, older]

    def repeats(self, fact: Fact, plan: Fact) -> bool:
        """Return whether a fact only repeats what a plan is to replace; then it is replaced too."""
        if plan.id in fact.replaces or fact.unsure:
            return False
        waiting = self.waiting.get(plan.id, [])
        said = next((n for n, each in enumerate(waiting) if each.said == fact.said), None)
        if said is None or fact.origin.rank != plan.origin.rank:
            return False
        if waiting[said].id != fact.id:
            self.replaced |= {waiting[said].id: fact, fact.id: plan}
            waiting[said] = fact
        return True

    def renew(self, fact: Fact) -> None:
        """Let a fact that was said again take the place of what has replaced it meanwhile."""
        by = self.replaced.get(fact.id)
        if by is None or max(by.said_at, by.valid_from) > fact.said_at:
            return
        del self.replaced[fact.id]
        while (after := self.replaced.get(by.id)) is not None and (
            max(after.said_at, after.valid_from) <= fact.said_at
        ):
            by = after
        self.meet(by, fact)
        if after is not None:
            self.meet(fact, after)

    def of(self, fact: Fact, now: datetime, ended: datetime | None, *, planned: bool) -> Fact:
        """Return a fact with what has become of it.

        Args:
            fact: The fact.
            now: The time.
            ended: When it ended, if what has replaced it was forgotten.
            planned: Whether its time is still to come.
        """
        by, claim = self.replaced.get(fact.id), self.claims.get(fact.id)
        changes: dict[str, object] = {}
        if by is not None:
            later = by.valid_from > fact.valid_from
            end = by.valid_from if later else max(by.said_at, fact.valid_from)
            changes = {
                "status": "replaced",
                "replaced_by": by.id,
                "replaced_at": by.recorded_at,
                "valid_to": min(end, fact.valid_to or end),
            }
        elif claim is not None:
            changes = {"status": "claim", "replaced_by": claim.id}
        elif ended is not None and ended <= now:
            changes = {"status": "ended", "valid_to": min(ended, fact.valid_to or ended)}
        elif (fact.valid_to is not None and fact.valid_to <= now) or (
            fact.expires_at is not None and fact.expires_at <= now
        ):
            changes = {"status": "ended"}
        else:
            if fact.id in self.disputes:
                disputed = [i for i in self.disputes[fact.id] if i not in self.replaced]
                changes |= {"disputed_by": tuple(disputed)} if disputed else {}
            if fact.origin.rank > 0 or planned:
                changes["status"] = "claim" if fact.origin.rank > 0 else "planned"
        return fact.model_copy(update=changes) if changes else fact


def resolve(
    facts: Iterable[Fact],
    now: datetime,
    ended: Mapping[str, datetime] | None = None,
    again: Iterable[Again] = (),
) -> dict[str, Fact]:
    """Return the facts by ID, with what has become of each, in the order in which they were said.

    It depends on what was said when and by whom, not on the order in which it was stored. What is
    planned replaces nothing before its time.

    Args:
        facts: All facts.
        now: The time.
        ended: When facts ended whose successors were forgotten, by ID.
        again: When facts were said again.
    """
    known = {fact.id: fact for fact in sorted(facts, key=_when)}
    renewed = [
        known[each.fact].model_copy(
            update={"said_at": each.at, "valid_from": max(each.at, known[each.fact].valid_from)}
        )
        for each in again
        if each.fact in known and each.at > known[each.fact].said_at
    ]
    planned = {i for i, f in known.items() if f.valid_from > max(now, f.said_at)}
    begun = _Outcomes((fact for i, fact in known.items() if i not in planned), renewed, now)
    coming = _Outcomes(known.values(), renewed, now) if planned else begun
    over = ended or {}
    return {
        i: (coming if i in planned else begun).of(fact, now, over.get(i), planned=i in planned)
        for i, fact in known.items()
    }
