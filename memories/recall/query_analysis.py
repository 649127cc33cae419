"""What a question and a message say beyond their words: who, when, and whether it is an answer."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_brain.memories.recall.dates import MONTHS, Named, Span, named_dates, relative_spans
from agent_brain.memories.recall.participants import Mention, Participants
from agent_brain.memories.recall.rewriting import in_first_person, without_names
from agent_brain.memories.recall.stopwords import ASKING
from agent_brain.memories.recall.tokenizer import count_words, runs, terms

_ASKS_WHEN = re.compile(r"\s*(?:when|how long|what (?:date|day|month|year))\b", re.I)
_TIME_WORDS = frozenset(
    """
    yesterday today tonight tomorrow last next ago recently since weekend monday tuesday wednesday
    thursday friday saturday sunday year years month months week weeks day days
    """.split()
) | frozenset(MONTHS)
_TOGETHER = re.compile(r"\b(?:and|both|or)\b|&|,", re.I)
_QUESTION_MARKS = ("?", "？", "؟", "՞", "፧")
LONG_ENOUGH = 3.5  # ln(1 + words): past some thirty words a message gains nothing by being longer


@dataclass(frozen=True)
class Question:
    """A question, read.

    Attributes:
        dense: What to embed: as the people it names would say it of themselves.
        terms: What to look up: its terms without names and words of asking.
        speaker: The participant it is about, if that is one.
        asks_when: It asks for a time.
        dates: Days, or else months, that it names.
        spans: Days that it counts from the day of asking.
    """

    dense: str
    terms: tuple[str, ...]
    speaker: str | None
    asks_when: bool
    dates: tuple[Named, ...]
    spans: tuple[Span, ...]


def read(question: str, participants: Participants, now: datetime | None = None) -> Question:
    """Read ``question``, asked at ``now`` of a conversation between ``participants``.

    A question that names nobody, asks for no time and names no date, or is in a language whose
    cues are not known, is searched as it stands.
    """
    mentions = participants.mentions(question)
    spans = () if now is None else tuple(relative_spans(question, now))
    found = terms(runs(without_names(question, mentions)))
    if spans:  # "yesterday" is a day then, and no word to look up
        found = [term for term in found if term not in _TIME_WORDS]
    return Question(
        dense=in_first_person(question, mentions),
        terms=tuple(term for term in found if term not in ASKING) or tuple(found),
        speaker=_speaker(question, mentions),
        asks_when=_ASKS_WHEN.match(question) is not None,
        dates=tuple(named_dates(question)),
        spans=spans,
    )


def _speaker(question: str, mentions: Sequence[Mention]) -> str | None:
    """The one person named; of two, the first, whom "What did Ann give Bob?" is about.

    Nobody where they are named together ("Ann and Bob") or a name may be that of several people.
    """
    people = list(dict.fromkeys(mention.people for mention in mentions))
    if not people or any(len(who) > 1 for who in people) or len(people) > 2:
        return None
    if len(people) == 2:
        second = next(mention for mention in mentions if mention.people == people[1])
        if _TOGETHER.search(question[mentions[0].end : second.start]) or "both" in question:
            return None
    return next(iter(people[0]))


@dataclass(frozen=True)
class Traits:
    """What a message is like, whatever is asked.

    Attributes:
        tells_time: It has a word of time or a year, as an answer to "when" would.
        asks: It ends as a question; what asks rarely answers.
        fullness: How much it can tell, by its length: from 0 for nothing to :data:`LONG_ENOUGH`.
    """

    tells_time: bool
    asks: bool
    fullness: float


def traits(text: str, text_runs: Sequence[str]) -> Traits:
    """The traits of a message, from its text and the runs of it."""
    return Traits(
        tells_time=any(map(_is_time, text_runs)),
        asks=text.rstrip().endswith(_QUESTION_MARKS),
        fullness=min(math.log1p(count_words(text_runs)), LONG_ENOUGH),
    )


def _is_time(run: str) -> bool:
    return run in _TIME_WORDS or (len(run) == 4 and run.isdecimal())
