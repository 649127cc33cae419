"""Finds whom and when a question is about, and whether a message may be an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.dates import MONTHS, Span, closeness, relative_spans, spans_of
from agent_brain.memories.recall.features import Features, Labels
from agent_brain.memories.recall.tokenizer import ASKING, ENGLISH, UNSPACED, runs, terms

Words = tuple[str, ...]
_WORD = re.compile(r"\w+")
_UNSPACED_NAME = re.compile(f"[{UNSPACED}]{{2,}}")
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


class Mention(NamedTuple):
    """A name in a text: its place, and the people whose name it may be."""

    start: int
    end: int
    people: frozenset[str]


class Participants:
    """The senders of messages, found in a text by their names or parts of their names."""

    def __init__(self) -> None:
        self.numbers = Labels()
        self._people: dict[Words, set[str]] = {}

    def add(self, sender: str) -> int:
        """Add the sender of a message; return the number of the sender."""
        if sender not in self.numbers:
            for words in _names(sender):
                self._people.setdefault(words, set()).add(sender)
        return self.numbers[sender]

    def keep(self, numbers: NDArray[np.int32]) -> None:
        """Forget the senders with other numbers than these."""
        for sender in self.numbers.keep(numbers):
            for words in _names(sender):
                self._people[words].discard(sender)
                if not self._people[words]:
                    del self._people[words]

    def mentions(self, text: str) -> list[Mention]:
        """Return the names in ``text`` in order: whole words, any case, the longest that fits."""
        found = [*self._in_words(text)]
        for mention in self._in_runs(text):
            if all(mention.end <= other.start or other.end <= mention.start for other in found):
                found.append(mention)
        return sorted(found, key=attrgetter("start"))

    def _in_words(self, text: str) -> Iterator[Mention]:
        words = [*_WORD.finditer(text)]
        folded = [word[0].casefold() for word in words]
        at, longest = 0, max(map(len, self._people), default=0)
        while at < len(words):
            for end in range(min(at + longest, len(words)), at, -1):
                people = self._people.get(tuple(folded[at:end]))
                if people and (end - at > 1 or _is_name(words[at][0], at)):
                    yield Mention(words[at].start(), words[end - 1].end(), frozenset(people))
                    at = end
                    break
            else:
                at += 1

    def _in_runs(self, text: str) -> Iterator[Mention]:
        """Yield the names in scripts without spaces, which are inside runs of characters."""
        names = [name for name in self.numbers if name in text and _UNSPACED_NAME.fullmatch(name)]
        if names:
            names.sort(key=len, reverse=True)
            for found in re.finditer("|".join(map(re.escape, names)), text):
                yield Mention(found.start(), found.end(), frozenset([found[0]]))


def _names(sender: str) -> set[Words]:
    """Return the name of ``sender`` and its parts, without initials."""
    words = tuple(_WORD.findall(sender.casefold()))
    parts = {(word,) for word in words if len(word) > 1}
    return parts | ({words} if words else set())


def _is_name(word: str, at: int) -> bool:
    """Return whether a word is a name: "will" is not, "Will" inside a sentence is."""
    return word.casefold() not in ENGLISH or (at > 0 and word[:1].isupper())


class Question(NamedTuple):
    """A parsed question.

    Attributes:
        terms: What to look up: its terms without names and words of asking.
        speaker: The participant it is about, if it is about one.
        asks_when: Whether it asks for a time.
        spans: The days, or else months, that it names or counts from the day of asking.
        of_agent: Whether it asks for what the agent itself has said.
    """

    terms: tuple[str, ...]
    speaker: str | None
    asks_when: bool
    spans: list[Span]
    of_agent: bool


def read(
    question: str, participants: Participants, features: Features, now: datetime | None = None
) -> Question:
    """Parse a question.

    A question that names nobody, asks for no time and names no date, or is in a language whose
    cues are not known, is searched as it is.

    Args:
        question: What is asked.
        participants: Between whom the conversation is.
        features: The messages.
        now: When it is asked, to understand "yesterday".
    """
    mentions = participants.mentions(question)
    spans = [] if now is None else [*relative_spans(question, now)]
    if spans and not closeness(features.days(), spans).any():
        spans = []  # nobody said a word then
    found = terms(runs(_replace(question, mentions, "", "")))
    if spans:  # "yesterday" is a day then, and no word to look up
        found = [term for term in found if term not in TIME_TERMS]
    return Question(
        terms=tuple(term for term in found if term not in ASKING) or tuple(found),
        speaker=_speaker(question, mentions),
        asks_when=_ASKS_WHEN.match(question) is not None,
        spans=spans + spans_of(question, features.years()),
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
