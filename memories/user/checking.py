"""Checks what an extractor returns, in code: what it cites, whose words these are, what is new."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from agent_brain.common.text import cut_line
from agent_brain.common.values import error_lines
from agent_brain.memories.message import Message
from agent_brain.memories.user.facts import OWN, USER, Fact, Kind, Origin, Source
from agent_brain.memories.user.origins import (
    has_quote,
    least_trusted,
    lowered,
    origin_of,
    own_words,
    words_of,
)


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
    """

    messages: Sequence[Message]
    facts: Sequence[Fact] = ()
    conversation: str | None = None
    names: Collection[str] = ()
    by_id: Mapping[str, Message] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {message.id: message for message in self.messages})

    def others(self) -> list[tuple[str, Origin]]:
        """Return what others than the user say in the messages and facts, and who."""
        said = [(m.content, origin_of(m, m.content, self.names)) for m in self.messages]
        said += [
            (m.content, Origin.DOCUMENT)
            for m in self.messages
            if own_words(m, self.names).strip() != m.content.strip()
        ]
        known = [(fact.text, fact.origin) for fact in self.facts]
        return [(text, whose) for text, whose in [*said, *known] if whose and whose not in OWN]


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
    origin = _origin(draft.text, least_trusted(found), messages, batch)
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
    fields |= {"replaces": [i for i in draft.replaces if i in known], "slot": draft.slot or None}
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
    return Refusal(draft.text, "known") if is_known(fact, known.values()) else fact


def _origin(
    text: str, origin: Origin, messages: Sequence[tuple[Message, str]], batch: Batch
) -> Origin:
    if origin not in OWN:
        return origin
    if not any(words_of(quote) for _, quote in messages):
        return Origin.ASSISTANT  # "yes": the words are somebody else's
    own = "\n".join(own_words(message, batch.names) for message, _ in messages)
    return lowered(text, origin, own, batch.others())


def is_known(fact: Fact, known: Collection[Fact]) -> bool:
    """Return whether the same is stored: as a current fact, or from the same message."""
    cited = {source.message for source in fact.sources}
    return any(
        _same(fact, other)
        and (
            (other.status == "current" and other.origin.rank <= fact.origin.rank)
            or cited & {source.message for source in other.sources}
        )
        for other in known
    )


def _same(one: Fact, other: Fact) -> bool:
    mine, its = (
        [" ".join((part or "").casefold().split()) for part in (fact.about, fact.slot, fact.text)]
        for fact in (one, other)
    )
    return mine == its
