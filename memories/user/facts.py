"""Facts about a user, and which of them hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import AwareDatetime, BaseModel, Field

from agent_brain.common.ids import new_id
from agent_brain.memories.store.expiry import utc_now

USER = "user"  # whom most facts are about
MOST_LETTERS = 500  # of a fact

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
        return max(list(Origin).index(self) - 1, 0)


OWN = frozenset((Origin.USER, Origin.PROGRAM))
"""Origins of facts that the user, or the program for the user, has stated."""


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
    text: str = Field(min_length=1, max_length=MOST_LETTERS)
    about: str = Field(default=USER, min_length=1)
    slot: str | None = None
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

    def was_valid(self, moment: datetime) -> bool:
        """Return whether it held at a moment, by what is known now."""
        if self.status == "claim" or moment < self.valid_from:
            return False
        ends = [end for end in (self.valid_to, self.expires_at) if end is not None]
        return not ends or moment < min(ends)


DERIVED = frozenset(("status", "replaced_by", "replaced_at", "disputed_by"))
"""Fields that follow from the other facts, and are not stored."""


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


def resolve(
    facts: Iterable[Fact], now: datetime, ended: Mapping[str, datetime] | None = None
) -> dict[str, Fact]:
    """Return the facts by ID, with what has become of each.

    It depends on what was said when and by whom, not on the order in which it was stored.

    Args:
        facts: All facts.
        now: The time.
        ended: When facts ended whose successors were forgotten, by ID.
    """
    ordered = sorted(facts, key=lambda fact: (fact.said_at, fact.recorded_at))
    known = {fact.id: fact for fact in ordered}
    fates = _Fates()
    slots: dict[tuple[str, str], list[Fact]] = {}
    for fact in ordered:
        if fact.slot is not None and not _was_over(fact):
            key = fact.about.casefold(), fact.slot.casefold()
            slots[key] = _in_slot(fates, slots.get(key, []), fact)
        for target in fact.replaces:
            if (other := known.get(target)) is not None and other is not fact:
                pair = sorted((fact, other), key=lambda each: (each.said_at, each.recorded_at))
                fates.meet(*pair)
    return {i: _fated(fact, fates, now, (ended or {}).get(i)) for i, fact in known.items()}


def _in_slot(fates: _Fates, holders: list[Fact], fact: Fact) -> list[Fact]:
    """Return the current facts of a slot when another one was said."""
    if any(fact.origin.rank > holder.origin.rank for holder in holders):
        for holder in holders[-1:]:
            fates.meet(holder, fact)
        return holders
    left = [holder for holder in holders if not fates.meet(holder, fact)]
    return [*left, fact]


def _was_over(fact: Fact) -> bool:
    """Return whether a fact was of the past when it was said."""
    return fact.valid_to is not None and fact.valid_to <= fact.said_at


def _fated(fact: Fact, fates: _Fates, now: datetime, ended: datetime | None) -> Fact:
    by = fates.replaced.get(fact.id)
    claim = fates.claims.get(fact.id)
    disputed = tuple(i for i in fates.disputes.get(fact.id, ()) if i not in fates.replaced)
    changes: dict[str, object] = {}
    if claim is not None:
        changes = {"status": "claim", "replaced_by": claim.id}
    elif by is not None:
        end = by.valid_from if by.valid_from > fact.valid_from else by.said_at
        changes = {
            "status": "replaced",
            "replaced_by": by.id,
            "replaced_at": by.recorded_at,
            "valid_to": min(end, fact.valid_to or end),
        }
    elif ended is not None:
        changes = {"status": "ended", "valid_to": min(ended, fact.valid_to or ended)}
    elif any(end is not None and end <= now for end in (fact.valid_to, fact.expires_at)):
        changes = {"status": "ended"}
    elif disputed:
        changes = {"disputed_by": disputed}
    return fact.model_copy(update=changes) if changes else fact
