"""What a question and a message say beyond their words: who, when, and whether it is an answer."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from agent_brain.memories.recall.dates import MONTHS, Named, named_dates
from agent_brain.memories.recall.names import Participants, replace
from agent_brain.memories.recall.words import count_words, terms

_ASKS_WHEN = re.compile(r"\s*(?:when|how long|what (?:date|day|month|year))\b", re.I)
_TIME_WORD = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|recently|since|weekend"
    r"|this (?:week|month|year|weekend|morning)"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    rf"|{'|'.join(MONTHS)}|\d{{4}}|years?|months?|weeks?|days?)\b",
    re.I,
)
_QUESTION_MARKS = ("?", "？", "؟", "՞", "፧")
LONG_ENOUGH = 3.5  # ln(1 + words): past some thirty words a message gains nothing by being longer


@dataclass(frozen=True)
class Question:
    """A question, read.

    Attributes:
        dense: What to embed: as the people it names would say it of themselves.
        terms: What to look up: its terms without the names.
        speaker: The one participant it names; None if it names none or several.
        asks_when: It asks for a time.
        dates: Days, or else months, that it names.
    """

    dense: str
    terms: tuple[str, ...]
    speaker: str | None
    asks_when: bool
    dates: tuple[Named, ...]


def read(question: str, participants: Participants) -> Question:
    """Read ``question``, asked of a conversation between ``participants``.

    A question that names nobody, asks for no time and names no date, or is in a language whose
    cues are not known, is searched as it stands.
    """
    mentions = participants.mentions(question)
    people = {person for mention in mentions for person in mention.people}
    return Question(
        dense=replace(question, mentions, "my", "I") if mentions else question,
        terms=tuple(terms(replace(question, mentions, "", "") if mentions else question)),
        speaker=people.pop() if len(people) == 1 else None,
        asks_when=_ASKS_WHEN.match(question) is not None,
        dates=tuple(named_dates(question)),
    )


def tells_time(text: str) -> bool:
    """Whether ``text`` has a word of time, as an answer to "when" would."""
    return _TIME_WORD.search(text) is not None


def is_question(text: str) -> bool:
    """Whether ``text`` ends as a question: what asks rarely answers."""
    return text.rstrip().endswith(_QUESTION_MARKS)


def fullness(text: str) -> float:
    """How much ``text`` can tell, by its length: from 0 for nothing up to :data:`LONG_ENOUGH`."""
    return min(math.log1p(count_words(text)), LONG_ENOUGH)
