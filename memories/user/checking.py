"""Checks what an extractor returns, in code: what it cites, whose words these are, what is new."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from agent_brain.common.text import cut_line
from agent_brain.common.values import error_lines
from agent_brain.memories.message import Message, Role
from agent_brain.memories.user.facts import OWN, USER, Again, Fact, Kind, Origin, Source
from agent_brain.memories.user.novelty import POLITE
from agent_brain.memories.user.origins import (
    data_in,
    has_quote,
    least_trusted,
    origin_of,
    own_words,
    words_of,
)
from agent_brain.memories.user.wording import Said, is_denied, lowered, said_by


class Cited(BaseModel, frozen=True, extra="ignore"):
    """A message that a draft rests on.

    Attributes:
        message: Its ID.
        quote: The words in it that say so.
    """

    message: str
    quote: str = ""


class Draft(BaseModel, frozen=True, extra="ignore"):
    """A fact as an extractor returns it, before it is checked.

    Whose words it is does not stand in it: that is computed from the messages that it cites.

    Attributes:
        text: The fact, as a short sentence.
        sources: The messages that say so, with a quote of each.
        about: Whom it is about.
        slot: What it is the one value of, such as ``"home"``.
        kind: ``"identity"``, ``"preference"``, ``"event"`` or ``"instruction"``.
        replaces: IDs of known facts that it replaces.
        unsure: Whether it may only seem to contradict others.
        valid_from: Since when it has been true; None for when it was said.
        valid_to: Until when it was true.
        expires_at: When it ceases to hold by itself.
    """

    text: str
    sources: tuple[Cited, ...] = Field(default=(), max_length=20)
    about: str = USER
    slot: str | None = None
    kind: Kind = "preference"
    replaces: tuple[str, ...] = ()
    unsure: bool = False
    valid_from: AwareDatetime | None = None
    valid_to: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A draft that was not stored.

    Attributes:
        text: Its text.
        reason: Why: ``"no source"``, ``"not quoted"``, ``"recalled"``, ``"instruction"``,
            ``"known"``, or ``"invalid"``.
        fact: The fact, if it is known.
        same: The known fact that says the same.
    """

    text: str
    reason: str
    fact: Fact | None = field(default=None, repr=False, compare=False)
    same: Fact | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Batch:
    """Messages of a conversation to extract facts from, and what is known.

    Attributes:
        messages: The messages in order, of all roles.
        facts: Current facts that are most like what the messages say.
        conversation: Its name; None if it has none.
        names: The user's names, where several people speak.
        seen: Other messages that whoever makes the drafts may have read; no source.
        strict: Whether a fact has to be in the user's words in every case.
    """

    messages: Sequence[Message]
    facts: Sequence[Fact] = ()
    conversation: str | None = None
    names: Collection[str] = ()
    seen: Sequence[Message] = field(default=(), repr=False)
    strict: bool = field(default=False, repr=False)

    @cached_property
    def by_id(self) -> Mapping[str, Message]:
        """The messages by ID."""
        return {message.id: message for message in self.messages}

    @cached_property
    def others(self) -> list[Said]:
        """What others than the user say in the messages and facts."""
        said = [
            said_by(fact.text, fact.origin, repeats=fact.origin is Origin.ASSISTANT)
            for fact in self.facts
            if fact.origin not in OWN
        ]
        for m in [*self.seen, *self.messages]:
            whose = origin_of(m, m.content, self.names)
            if whose in OWN or "recalled" in m.metadata:
                said += [said_by(data, Origin.DOCUMENT) for data in [data_in(m.content)] if data]
            else:  # a summary, or a system message, is no source but may say what a page says
                repeats = m.role is Role.ASSISTANT and m.sent_from is None
                said.append(said_by(m.content, whose or Origin.ASSISTANT, repeats=repeats))
        return [each for each in said if each.words]


def checked_fact(
    draft: Draft, batch: Batch, known: Mapping[str, Fact], now: datetime
) -> Fact | Refusal:
    """Return the fact of a draft, or why it is refused.

    Args:
        draft: The draft.
        batch: What was read.
        known: All facts by ID, with what has become of each.
        now: The time.
    """
    cited = [(batch.by_id.get(each.message), each.quote) for each in draft.sources]
    if not cited or any(message is None for message, _ in cited):
        return Refusal(draft.text, "no source")
    messages = [(message, quote) for message, quote in cited if message is not None]
    if any(not quote.strip() or not has_quote(m.content, quote) for m, quote in messages):
        return Refusal(draft.text, "not quoted")
    origins = [origin_of(message, quote, batch.names) for message, quote in messages]
    found = [origin for origin in origins if origin is not None]
    if len(found) < len(origins):
        return Refusal(draft.text, "recalled")
    origin = _origin(draft, least_trusted(found), messages, batch)
    if draft.kind == "instruction" and origin not in OWN:
        return Refusal(draft.text, "instruction")
    said_at = max(message.created_at for message, _ in messages)
    sources = [
        Source(
            message=m.id, quote=cut_line(quote, 300), session=batch.conversation, at=m.created_at
        )
        for m, quote in messages
    ]
    fields = draft.model_dump(exclude={"sources", "valid_from"})
    fields |= {
        "replaces": [i for i in draft.replaces if i in known],
        "slot": (draft.slot or "").strip() or None,
    }
    try:
        fact = Fact(
            **fields,
            sources=tuple(sources),
            origin=origin,
            said_at=said_at,
            valid_from=draft.valid_from or said_at,
            recorded_at=now,
        )
    except ValidationError as error:
        return Refusal(draft.text, f"invalid: {'; '.join(error_lines(error, 'the fact'))}")
    same = known_as(fact, known.values())
    return fact if same is None else Refusal(draft.text, "known", fact, same)


def _origin(
    draft: Draft, origin: Origin, messages: Sequence[tuple[Message, str]], batch: Batch
) -> Origin:
    if origin not in OWN:
        return origin
    own = [(own_words(message, batch.names), quote) for message, quote in messages]
    said = "\n".join(text for text, _ in own)
    if not any(set(words_of(quote)) - POLITE for _, quote in messages):
        said = ""  # "yes": the words are somebody else's
    if any(is_denied(text, quote, draft.text) for text, quote in own):
        said = ""
    titles = [draft.slot or "", "" if draft.about == USER else draft.about]
    return lowered(draft.text, titles, said, batch.others, strict=batch.strict)


def known_as(fact: Fact, known: Collection[Fact]) -> Fact | None:
    """Return the fact that says the same: from the same message, or one that holds since before."""
    cited = {source.message for source in fact.sources}
    same = [
        other
        for other in known
        if _same(fact, other)
        and (cited & {source.message for source in other.sources} or _covers(other, fact))
    ]
    return same[-1] if same else None


def _covers(other: Fact, fact: Fact) -> bool:
    """Return whether a fact adds nothing to one in the same words."""
    return (
        other.status == "current"
        and other.origin.rank <= fact.origin.rank
        and other.unsure <= fact.unsure
        and other.said_at <= fact.said_at
        and other.valid_from <= fact.valid_from
        and (other.valid_to, other.expires_at) == (fact.valid_to, fact.expires_at)
    )


def said_again(fact: Fact, same: Fact, noted: Collection[Again]) -> list[BaseModel]:
    """Return what is stored if a known fact was said later than it was said first."""
    again = Again(fact=same.id, at=fact.said_at)
    new = fact.said_at > same.said_at and fact.unsure == same.unsure and again not in noted
    return [again] if new and fact.origin.rank == same.origin.rank else []


def _same(one: Fact, other: Fact) -> bool:
    return one.said == other.said
