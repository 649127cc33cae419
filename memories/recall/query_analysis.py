"""Finds whom and when a question is about, and whether a message may be an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_brain.memories.recall.dates import MONTHS, Named, Span, named_dates, relative_spans
from agent_brain.memories.recall.participants import Mention, Participants
from agent_brain.memories.recall.tokenizer import ASKING, runs, terms

_ASKS_WHEN = re.compile(r"\s*(?:when|how long|what (?:date|day|month|year))\b", re.I)
_SAY = (
    "say|tell|give|write|mention|suggest|recommend|provide|list|explain|propose|describe|advise|"
    "offer|share|show|name|answer|call|warn"
)
_SAID = (
    "said|told|gave|given|wrote|written|mentioned|suggested|recommended|provided|listed|explained|"
    "proposed|described|advised|offered|shared|showed|shown|named|answered|called|warned"
)
_ASKS_AGENT = (  # "can you recommend" asks for something new
    rf"\bdid(?:n['’]?t)? you (?:\w+ )?(?:{_SAY})\b"
    r"|\bremind me (?:of|what|which|who|how|where|when|about)\b(?![^.?!]*\b(?:I|my|we)\b)"
)
_OF_AGENT = re.compile(
    rf"{_ASKS_AGENT}|\byou(?:['’](?:ve|d)| have| had)? (?:\w+ )?(?:{_SAID})\b"
    r"|\byour (?:\w+ )?(?:answer|advice|suggestion|recommendation|explanation|list|reply|response)",
    re.I,
)
_OF_AGENT_UNASKED = re.compile(_ASKS_AGENT, re.I)  # and not "I rested, as you said"
_TIME_WORDS = frozenset(
    """
    yesterday today tonight tomorrow last next ago recently since weekend monday tuesday wednesday
    thursday friday saturday sunday year years month months week weeks day days
    """.split()
) | frozenset(MONTHS)
TIME_TERMS = frozenset(terms(_TIME_WORDS))
_TOGETHER = re.compile(r"\b(?:and|both|or)\b|&|,", re.I)
_MORE = re.compile(r"[.!,;:\n]\s|[。！，]")  # the end of a part of a text
_QUESTION_MARKS = frozenset("?？؟՞፧")

_POSSESSIVE = re.compile(r"['’]s\b", re.I)
_SPACES = re.compile(r"\s+")
_PRONOUNS = (
    (re.compile(r"\b(?:his|her|their)\b(?=\s+\w)"), "my"),
    (re.compile(r"\b(?:he|she|they)\b"), "I"),
    (re.compile(r"\b(?:himself|herself|themselves)\b"), "myself"),
)
_VERBS = {"does": "do", "has": "have", "is": "am"}
_THIRD = "|".join(_VERBS)
_AGREEMENT = re.compile(rf"\b(?:({_THIRD}) I\b|I ({_THIRD})\b)", re.I)


@dataclass(frozen=True)
class Question:
    """A parsed question.

    Attributes:
        terms: What to look up: its terms without names and words of asking.
        speaker: The participant it is about, if it is about one.
        asks_when: Whether it asks for a time.
        dates: The days, or else months, that it names.
        spans: The days that it counts from the day of asking.
        of_agent: Whether it asks for what the agent itself has said.
    """

    terms: tuple[str, ...]
    speaker: str | None
    asks_when: bool
    dates: tuple[Named, ...]
    spans: tuple[Span, ...]
    of_agent: bool


def read(question: str, participants: Participants, now: datetime | None = None) -> Question:
    """Parse ``question``, asked at ``now`` of a conversation between ``participants``.

    A question that names nobody, asks for no time and names no date, or is in a language whose
    cues are not known, is searched as it is.
    """
    mentions = participants.mentions(question)
    spans = () if now is None else tuple(relative_spans(question, now))
    found = terms(runs(without_names(question, mentions)))
    if spans:  # "yesterday" is a day then, and no word to look up
        found = [term for term in found if term not in TIME_TERMS]
    return Question(
        terms=tuple(term for term in found if term not in ASKING) or tuple(found),
        speaker=_speaker(question, mentions),
        asks_when=_ASKS_WHEN.match(question) is not None,
        dates=tuple(named_dates(question)),
        spans=spans,
        of_agent=bool((_OF_AGENT if asks(question) else _OF_AGENT_UNASKED).search(question)),
    )


def _speaker(question: str, mentions: Sequence[Mention]) -> str | None:
    """Return the one person named; of two, the first, whom "What did Ann give Bob?" is about.

    None if they are named together ("Ann and Bob") or a name may be that of several people.
    """
    people = list(dict.fromkeys(mention.people for mention in mentions))
    if not people or any(len(who) > 1 for who in people) or len(people) > 2:
        return None
    if len(people) == 2:
        second = next(mention for mention in mentions if mention.people == people[1])
        if _TOGETHER.search(question[mentions[0].end : second.start]) or "both" in question:
            return None
    return next(iter(people[0]))


def without_names(question: str, mentions: Sequence[Mention]) -> str:
    """Return ``question`` without the names."""
    return _replace(question, mentions, "", "") if mentions else question


def in_first_person(question: str, mentions: Sequence[Mention]) -> str:
    """Return ``question`` with the people it names speaking for themselves.

    The vector of "When did Ann join her group?" is closest to messages that *address* Ann, written
    by everybody else; that of "When did I join my group?" is closest to what Ann said. Third-person
    pronouns are taken for the named person if there is only one. A question that names nobody stays
    as it is.
    """
    if not mentions:
        return question
    text = _replace(question, mentions, "my", "I")
    if len({mention.people for mention in mentions}) == 1:
        for pronoun, own in _PRONOUNS:
            text = pronoun.sub(own, text)
    return _AGREEMENT.sub(_agree, text)


def _agree(found: re.Match[str]) -> str:
    verb = found[1] or found[2]
    own = _VERBS[verb.lower()]
    own = own.capitalize() if verb[0].isupper() else own
    return f"{own} I" if found[1] else f"I {own}"


def _replace(text: str, mentions: Sequence[Mention], whose: str, who: str) -> str:
    out, done = [], 0
    for mention in mentions:
        possessive = _POSSESSIVE.match(text, mention.end)
        out += [text[done : mention.start], whose if possessive else who]
        done = possessive.end() if possessive else mention.end
    return _SPACES.sub(" ", "".join([*out, text[done:]])).strip()


def tells_time(term: str) -> bool:
    """Return whether a term is a word of time or a year, as in an answer to "when"."""
    return term in TIME_TERMS or (len(term) == 4 and term.isdecimal())


def asks(text: str) -> float:
    """Return 1 if a text is a question, 0.5 if it says something before it asks, 0 otherwise."""
    if text.rstrip()[-1:] not in _QUESTION_MARKS:
        return 0
    return 0.5 if _MORE.search(text) else 1
