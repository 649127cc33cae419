"""Facts about a user, and which of them hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, TypeAlias
from unicodedata import normalize

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field

from agent_brain.common.ids import new_id
from agent_brain.memories.store.expiry import utc_now

USER = "user"  # whom most facts are about
MOST_LETTERS = 500  # of a fact
LONGEST_NAME = 64  # of a slot, or of whom a fact is about

Kind: TypeAlias = Literal["identity", "preference", "event", "instruction"]
Status: TypeAlias = Literal["current", "replaced", "claim", "ended"]


class Origin(StrEnum):
    """Whose words a fact rests on, the most trusted first.

    A fact never replaces one of a more trusted origin (cf. arXiv 2606.24322: the origin is bound
    when a memory is written).
    """

    USER = "user"
    PROGRAM = "program"
    ASSISTANT = "assistant"
    OTHER = "other"
    DOCUMENT = "document"
    TOOL = "tool"

    @property
    def rank(self) -> int:
        """How little it is trusted: 0 for the user and the program, 4 for tools."""
        return _RANKS[self]


_RANKS = {origin: max(number - 1, 0) for number, origin in enumerate(Origin)}
OWN = frozenset((Origin.USER, Origin.PROGRAM))
"""Origins of facts that the user, or the program for the user, has stated."""


_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def as_text(value: str) -> str:
    """Return a text without characters that nobody sees."""
    return _UNSEEN.sub("", value).strip()


def as_name(value: str) -> str:
    """Return a name in one form, so that no other spelling is another person or slot."""
    name = " ".join(normalize("NFKC", as_text(value)).split())
    return USER if name.casefold() == USER else name


_Name = Annotated[str, AfterValidator(as_name), Field(min_length=1, max_length=LONGEST_NAME)]
_Text = Annotated[str, AfterValidator(as_text), Field(min_length=1, max_length=MOST_LETTERS)]


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
        sources: The messages that it rests on.
        origin: The least trusted of those who said it.
        unsure: Whether it may contradict others of its slot, without replacing them.
        replaces: The IDs of facts that it replaces, besides those of its slot.
        said_at: When it was said; of two facts the one that was said later holds.
        valid_from: Since when it has been true.
        valid_to: Until when it was true; None if it still is, as far as is known.
        expires_at: When it ceases to hold by itself.
        recorded_at: When it was stored.
        status: ``"current"``; ``"replaced"`` by another fact; a ``"claim"``, which contradicts a
            fact of a more trusted origin; or ``"ended"``.
        replaced_by: The ID of the fact that has replaced it, or, for a claim, stands against it.
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
    valid_from: AwareDatetime = Field(default_factory=lambda made: made["said_at"])
    valid_to: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    recorded_at: AwareDatetime = Field(default_factory=utc_now)
    status: Status = "current"
    replaced_by: str | None = None
    replaced_at: AwareDatetime | None = None
    disputed_by: tuple[str, ...] = ()

    @cached_property
    def said(self) -> tuple[str, str, str]:
        """What it says of whom, however it is written; the same for facts that say the same."""
        parts = (self.about, self.slot or "", self.text)
        about, slot, text = (" ".join(part.casefold().split()) for part in parts)
        return about, slot, text

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
    """

    fact: str
    at: AwareDatetime


class _Fates:
    """What has become of facts, by ID."""

    def __init__(self) -> None:
        self.replaced: dict[str, Fact] = {}
        self.claims: dict[str, Fact] = {}
        self.disputes: dict[str, list[str]] = {}

    def dispute(self, one: Fact, other: Fact) -> None:
        self.disputes.setdefault(one.id, []).append(other.id)
        self.disputes.setdefault(other.id, []).append(one.id)

    def meet(self, older: Fact, newer: Fact) -> bool:
        """Let a fact contradict one that was said before; return whether it replaces that."""
        if newer.origin.rank > older.origin.rank:
            self.claims.setdefault(newer.id, older)
        elif newer.unsure:
            self.dispute(older, newer)
        else:
            self.replaced.setdefault(older.id, newer)
            return True
        return False

    def renew(self, fact: Fact) -> None:
        """Let a fact that was said again take the place of what has replaced it meanwhile."""
        by = self.replaced.get(fact.id)
        if by is None or by.said_at > fact.said_at:
            return
        del self.replaced[fact.id]
        while (after := self.replaced.get(by.id)) is not None and after.said_at <= fact.said_at:
            by = after
        self.meet(by, fact)
        if after is not None:
            self.meet(fact, after)


def resolve(
    facts: Iterable[Fact],
    now: datetime,
    ended: Mapping[str, datetime] | None = None,
    again: Iterable[Again] = (),
) -> dict[str, Fact]:
    """Return the facts by ID, with what has become of each.

    It depends on what was said when and by whom, not on the order in which it was stored.

    Args:
        facts: All facts.
        now: The time.
        ended: When facts ended whose successors were forgotten, by ID.
        again: When facts were said again.
    """
    ordered = sorted(facts, key=_when)
    known = {fact.id: fact for fact in ordered}
    renewed = [
        known[each.fact].model_copy(update={"said_at": each.at, "valid_from": each.at})
        for each in again
        if each.fact in known
    ]
    fates = _Fates()
    slots: dict[tuple[str, ...], list[Fact]] = {}
    for fact in sorted([*ordered, *renewed], key=_when) if renewed else ordered:
        if fact is not known[fact.id]:
            fates.renew(fact)
        if not _was_over(fact, now):
            slots[fact.value_of] = _in_slot(fates, slots.get(fact.value_of, []), fact)
        for target in fact.replaces:
            if (other := known.get(target)) is not None and other.id != fact.id:
                fates.meet(*sorted((fact, other), key=_when))
    return {i: _fated(fact, fates, now, (ended or {}).get(i)) for i, fact in known.items()}


def _when(fact: Fact) -> tuple[datetime, datetime]:
    return fact.said_at, fact.recorded_at


def _in_slot(fates: _Fates, holders: list[Fact], fact: Fact) -> list[Fact]:
    """Return the current facts of a slot when another one was said."""
    if not holders:
        return [fact]
    holders = [holder for holder in holders if holder.id != fact.id]
    if any(fact.origin.rank > holder.origin.rank for holder in holders):
        for holder in holders[-1:]:
            fates.meet(holder, fact)
        return holders
    left = [holder for holder in holders if not fates.meet(holder, fact)]
    return [*left, fact]


def _was_over(fact: Fact, now: datetime) -> bool:
    """Return whether a fact was of the past when it was said."""
    return fact.valid_to is not None and fact.valid_to <= min(fact.said_at, now)


def _fated(fact: Fact, fates: _Fates, now: datetime, ended: datetime | None) -> Fact:
    by = fates.replaced.get(fact.id)
    claim = fates.claims.get(fact.id)
    disputed = tuple(i for i in fates.disputes.get(fact.id, ()) if i not in fates.replaced)
    changes: dict[str, object] = {}
    if claim is not None and by is None:
        changes = {"status": "claim", "replaced_by": claim.id}
    elif by is not None:
        end = by.valid_from if by.valid_from > fact.valid_from else by.said_at
        changes = {
            "status": "replaced",
            "replaced_by": by.id,
            "replaced_at": by.recorded_at,
            "valid_to": min(end, fact.valid_to or end),
        }
    elif ended is not None and ended <= now:
        changes = {"status": "ended", "valid_to": min(ended, fact.valid_to or ended)}
    elif any(end is not None and end <= now for end in (fact.valid_to, fact.expires_at)):
        changes = {"status": "ended"}
    elif disputed:
        changes = {"disputed_by": disputed}
    return fact.model_copy(update=changes) if changes else fact
