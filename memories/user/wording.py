"""Whether the words of a fact are those of the user that it cites, or of somebody else.

A model may cite the user for what a web page says. Words are compared, and not meanings: what
somebody else has said in the same words is found, and half of the words of a fact have to be the
user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from unicodedata import name

from agent_brain.memories.user.facts import Origin
from agent_brain.memories.user.origins import is_negative, plain
from agent_brain.memories.user.stating import FRAME, stated, stems_of

_DATE = re.compile(r"\b\d{4}(?:-\d\d(?:-\d\d)?)?\b|\b\d{1,2}:\d\d\b|\b\d{1,3}\b")
_MARKED = re.compile(r"[^\s\w]*(\w+(?:[-_./:@+]\w+)*)")  # a word, with what is inside it
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_ENGLISH = frozenset("i im my the is have and to of with for that we our it".split())
ALIKE = 0.75  # of two words that are one in two forms or languages: Munich, München


@dataclass(frozen=True)
class Said:
    """What somebody else has said, as words.

    Attributes:
        words: The stems of its words.
        whose: Who said it.
        repeats: Whether it may only repeat what the user said, as an assistant does.
    """

    words: frozenset[str]
    whose: Origin
    repeats: bool


def said_by(text: str, whose: Origin, *, repeats: bool = False) -> Said:
    """Return what somebody else has said; what the assistant asks says nothing."""
    if repeats:
        text = " ".join(part for part in _SENTENCE.findall(text) if not part.endswith(("?", "？")))
    return Said(frozenset(stems_of(text)), whose, repeats)


def lowered(
    text: str, titles: Sequence[str], own: str, others: Sequence[Said], *, strict: bool = False
) -> Origin:
    """Return the origin of a fact that cites the user.

    Args:
        text: The fact.
        titles: What else a model reads of it: whom it is about, and its slot.
        own: What the user said in the cited messages.
        others: What others said.
        strict: Whether half of it has to be in the user's words in every case; else not where
            nobody else has spoken and the user does not write English, which a fact may translate.
    """
    said, stems = stems_of(own), stems_of(text)
    english = bool(_ENGLISH & set(plain(own).split()))
    content = stems - FRAME or stems
    turned = is_negative(own) and not is_negative(text)
    if not turned:
        stems = content
    marked = {stem for word in _marked(text, own) for stem in stems_of(word)}
    titled = [words for title in titles if (words := stems_of(title) - said)]
    claimed = stems_of(text) - stems_of(stated(own))
    asked = bool(claimed & content & said)
    found = Origin.USER
    for other in others:
        new = {stem for stem in stems - said if not (other.repeats and _is_alike(stem, said))}
        there = new & other.words
        enough = bool(there & marked) or 2 * len(there) > len(stems) if other.repeats else there
        named = any(2 * len(words & other.words) > max(len(words), 2) for words in titled)
        if enough or (asked and claimed <= other.words) or named:
            found = max(found, other.whose, key=lambda origin: origin.rank)
    missing = {stem for stem in stems - said if not _is_alike(stem, said)}
    computed = stems_of(" ".join(_DATE.findall(text))) - said
    told = [other.whose for other in others if not other.repeats]
    free = 2 * len(missing & content - computed) > len(content - computed)
    if found is Origin.USER and free and (strict or english or told):
        found = max([Origin.ASSISTANT, *told], key=lambda origin: origin.rank)
    if found is Origin.USER and (not said or (english and marked & missing)):
        return Origin.ASSISTANT
    return found


def _is_alike(stem: str, said: set[str]) -> bool:
    """Return whether a word was said in another form or another language."""
    return stem in said or any(
        stem[0] == other[0]
        and min(len(stem), len(other)) > 3
        and SequenceMatcher(None, stem, other).ratio() >= ALIKE
        for other in said
    )


def _marked(text: str, own: str) -> Iterator[str]:
    """Yield the words of a text that are names, numbers, addresses, or in another script.

    Dates and small numbers are not: they are computed.
    """
    scripts = _scripts(own)
    for n, match in enumerate(_MARKED.finditer(_DATE.sub(" ", text))):
        word = match[1]
        inner = any(mark in word for mark in "@./:_+") or any(c.isdigit() for c in word)
        capital = (n and word[:1].isupper()) or word[1:] != word[1:].lower()
        if inner or capital or _scripts(word) - scripts:
            yield word


def _scripts(text: str) -> set[str]:
    return {name(letter, "?").split()[0] for letter in text if letter.isalpha()}
