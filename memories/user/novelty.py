"""Whether a text says something new."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_brain.memories.recall.tokenizer import ENGLISH, runs
from agent_brain.memories.user.origins import is_negative, words_of

_TIMED = frozenset(("until", "till", "since"))  # "I live here until May"
POLITE = frozenset(
    words_of(
        "thanks thank great good nice cool perfect awesome ok okay yes yeah yep no nope please "
        "sure hello hi hey bye goodbye morning evening night welcome sorry wow lol right fine done"
    )
)
_FIRST_PERSON = frozenset("i im ive id ill my me mine myself we our us ours".split())


def says_something(text: str) -> bool:
    """Return whether a text may say something about who wrote it: not thanks, not a mere question.

    A question in English without "I" or "my" says nothing; in other languages it may.
    """
    if not set(words_of(text)) - POLITE:
        return False
    words = set(runs(text))
    asks = all(part.endswith("?") for part in re.findall(r"[^.!?]+[.!?]*", text.strip()))
    return not asks or not words & ENGLISH or bool(words & _FIRST_PERSON)


def is_said(text: str, known: Iterable[str]) -> bool:
    """Return whether one of the known texts says the same: it has all words of ``text``."""
    words, denies = set(words_of(text)), is_negative(text)
    return not _TIMED & set(runs(text)) and any(
        words <= set(words_of(other)) and denies is is_negative(other) for other in known
    )
