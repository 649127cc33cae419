"""Checks what an extractor returns, in code: what it cites, whose words these are, what is new."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Literal

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from agent_brain.common.text import cut_line
from agent_brain.common.values import error_lines
from agent_brain.memories.message import Message, Role
from agent_brain.memories.user.facts import OWN, USER, Again, Fact, Kind, Origin, Source, as_name
from agent_brain.memories.user.origins import (
    LEAST_WORDS,
    data_in,
    has_quote,
    origin_of,
    own_words,
    speaker_of,
    words_of,
)
from agent_brain.memories.user.stating import said_in, states
from agent_brain.memories.user.wording import Said, lowered, said_by

QUOTED = 300  # letters of a message that a fact keeps


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
    """

    text: str
    reason: str


@dataclass(frozen=True)
class Batch:
    """Messages of a conversation to extract facts from, and what is known.

    Attributes:
        messages: The messages in order, of all roles.
        facts: Current facts that are most like what the messages say.
        conversation: Its name; None if it has none.
        names: The user's names, where several people speak.
        seen: Other messages that whoever makes the drafts may have read; no source.
        by: Who makes the drafts. A program may use words of its own; a model that acts in a turn
            has to use the user's in every case.
    """

    messages: Sequence[Message]
    facts: Sequence[Fact] = ()
    conversation: str | None = None
    names: Collection[str] = ()
    seen: Sequence[Message] = field(default=(), repr=False)
    by: Literal["program", "extractor", "model"] = field(default="extractor", repr=False)

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
                others = max(Origin.ASSISTANT, speaker_of(m, self.names), key=attrgetter("rank"))
                said.append(said_by(m.content, whose or others, repeats=repeats))
        return [each for each in said if each.words]


def checked_fact(
    draft: Draft, batch: Batch, known: Container[str], now: datetime
) -> Fact | Refusal:
    """Return the fact of a draft, or why it is refused; whether it is known is not looked at.

    Args:
        draft: The draft.
        batch: What was read.
        known: The IDs of all facts.
        now: The time.
    """
    cited = [(batch.by_id.get(each.message), each.quote) for each in draft.sources]
    messages = [(message, quote) for message, quote in cited if message is not None]
    if len(messages) < len(cited) or not (cited or batch.by == "program"):
        return Refusal(draft.text, "no source")
    if any(not quote.strip() or not has_quote(m.content, quote) for m, quote in messages):
        return Refusal(draft.text, "not quoted")
    origins = [origin_of(message, quote, batch.names) for message, quote in messages]
    found = [origin for origin in origins if origin is not None]
    if len(found) < len(origins):
        return Refusal(draft.text, "recalled")
    # who is trusted least
    origin = max(found, key=lambda each: (each.rank, each), default=Origin.PROGRAM)
    if origin is Origin.USER:
        origin = _own_origin(draft, messages, batch)
    if draft.kind == "instruction" and origin not in OWN:
        return Refusal(draft.text, "instruction")
    stated = draft.model_dump(exclude={"sources"}, exclude_none=True)
    stated["replaces"] = tuple(i for i in draft.replaces if i in known)
    if cited:
        stated["slot"] = (draft.slot or "").strip() or None
    sources = tuple(_source(message, quote, batch) for message, quote in messages)
    said_at = min(max((m.created_at for m, _ in messages), default=now), now)
    try:
        return Fact(**stated, sources=sources, origin=origin, said_at=said_at, recorded_at=now)
    except ValidationError as error:
        return Refusal(draft.text, f"invalid: {'; '.join(error_lines(error, 'the fact'))}")


def _own_origin(draft: Draft, messages: Sequence[tuple[Message, str]], batch: Batch) -> Origin:
    """Return the origin of a draft that cites the user."""
    own = [(own_words(message, batch.names), quote) for message, quote in messages]
    said = "\n".join(text for text, _ in own)
    said_at = messages[-1][0].created_at
    if not any(is_stated(draft, text, quote, said_at) for text, quote in own):
        said = ""  # "yes": the words are somebody else's
    if batch.by == "program":
        return Origin.USER if said else Origin.ASSISTANT
    titles = [draft.slot or "", "" if draft.about == USER else draft.about]
    return lowered(draft.text, titles, said, batch.others, strict=batch.by == "model")


def is_stated(fact: Draft | Fact, own: str, quote: str, said_at: datetime) -> bool:
    """Return whether the user states a fact, whom it is about and as of when it is to hold.

    Args:
        fact: The fact.
        own: What the user says in a message.
        quote: The words of it that the fact rests on.
        said_at: When that was said.
    """
    begun = fact.valid_from is None or fact.valid_from <= said_at
    now = begun and fact.valid_to is None and fact.kind != "event"
    return states(own, quote, fact.text, of_user=as_name(fact.about) == USER, now=now)


def heard_again(message: Message, fact: Fact, batch: Batch, now: datetime | None) -> Again | None:
    """Return that the user says by a message that a fact of the user's own still holds.

    Args:
        message: The message.
        fact: The fact.
        batch: What was read.
        now: The time; None if something new was read too: the extractor says what holds since when,
            and the message is only a source.
    """
    own = own_words(message, batch.names)
    if fact.origin not in OWN or message.id in {source.message for source in fact.sources}:
        return None
    told = (fact.text, *(each.quote for each in fact.sources))
    quotes = (q for q in told if len(words_of(q)) >= LEAST_WORDS and has_quote(own, q))
    quote = own if said_in(message.content, [fact]) else next(quotes, "")
    if not quote or not is_stated(fact, own, quote, message.created_at):
        return None
    source = _source(message, quote, batch)
    since = fact.said_at if now is None else max(min(message.created_at, now), fact.said_at)
    return Again(fact=fact.id, at=since, sources=(source,))


def _source(message: Message, quote: str, batch: Batch) -> Source:
    quote = cut_line(quote, QUOTED)
    return Source(
        message=message.id, quote=quote, session=batch.conversation, at=message.created_at
    )
