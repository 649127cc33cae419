"""What a question mentions that a parameter of some tool may want."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent_brain.demo.calendar import Day, mark_dates
from agent_brain.demo.numbers import words_to_digits

_QUOTED = re.compile(r"(?<!\w)(?:\"([^\"]+)\"|'([^']+)'|“([^”]+)”|‘([^’]+)’|`([^`]+)`)(?!\w)")
_NAME = re.compile(r"\b[A-Z][\w'-]*(?:\s+(?:of\s+|de\s+|the\s+)?[A-Z][\w'-]*)*")
_OPENERS = frozenset(
    "what which who whom whose where when why how is are was were will would can could do does did "
    "should shall may please tell show give get find look search convert calculate translate send "
    "book set add list i i'm the a an in on at my and then also hello hi hey use call make write "
    "create play turn order buy open read check if let let's summarise summarize should".split()
)
_AFTER = r"(?:in|for|of|at|about|on|near|to|from|with|named|called|into)"
_PHRASE = re.compile(
    rf"\b{_AFTER}\s+(?:the\s+|a\s+)?([\w'-]+)(?=[\s?.!,]*$|\s+(?:and|today|now)\b)", re.I
)
_NUMBER = re.compile(r"(?<![\w.§-])-?\d+(?:\.\d+)?(?![\w.]*\w)|(?<=[$€£])\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Entities:
    """Mentioned values, each list in the order of the words.

    Attributes:
        words: The question.
        quoted: Texts in quotation marks.
        names: Capitalised names.
        numbers: Numbers that belong to no date.
        dates: Dates.
        objects: Last words after a preposition, for people who do not capitalise.
    """

    words: str
    quoted: list[str]
    names: list[str]
    numbers: list[int | float]
    dates: list[Day]
    objects: list[str]


def find_entities(text: str) -> Entities:
    """Everything of that sort in ``text``."""
    quoted = [next(part for part in groups if part) for groups in _QUOTED.findall(text)]
    rest = _QUOTED.sub(" ", text)
    marked, dates = mark_dates(words_to_digits(rest))
    numbers = [float(digits) for digits in _NUMBER.findall(re.sub(r"§\d+", " ", marked))]
    return Entities(
        words=text,
        quoted=quoted,
        names=_names(re.sub(r"§\d+", ",", mark_dates(rest)[0])),
        numbers=[int(number) if number == int(number) else number for number in numbers],
        dates=dates,
        objects=[word for word in _PHRASE.findall(rest) if word.lower() not in _OPENERS],
    )


def _names(text: str) -> list[str]:
    found = []
    for match in _NAME.finditer(text):
        words = match[0].split()
        while words and re.sub(r"['’]\w+$", "", words[0].lower()) in _OPENERS:
            words = words[1:]
        if words:
            found.append(re.sub(r"'s$", "", " ".join(words)))
    return found
