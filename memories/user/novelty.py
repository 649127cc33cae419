"""Whether a text says something new."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_brain.memories.recall.tokenizer import ENGLISH, runs
from agent_brain.memories.user.facts import Fact
from agent_brain.memories.user.origins import is_negative, words_of
from agent_brain.memories.user.stating import POLITE, stated

_TIMED = frozenset(("until", "till", "since"))  # "I live here until May"
_FIRST_PERSON = frozenset("i im ive id ill my me mine myself we our us ours".split())


def says_something(text: str) -> bool:
    """Return whether a text may say something about who wrote it: not thanks, not a mere question.

    A question in English says nothing, nor does a request without "I" or "my"; in other languages
    they may.
    """
    if not set(words_of(text)) - POLITE:
        return False
    words = set(runs(text))
    if not words & ENGLISH:
        return True
    asks = all(part.endswith("?") for part in re.findall(r"[^.!?]+[.!?]*", text.strip()))
    return bool(words_of(stated(text))) and (not asks or bool(words & _FIRST_PERSON))


def said_in(text: str, facts: Iterable[Fact]) -> Fact | None:
    """Return the first fact that says the same, as it has all words of a text; None if none."""
    if _TIMED & set(runs(text)):
        return None
    words, denies = set(words_of(text)), is_negative(text)
    for fact in facts:
        if words <= set(words_of(fact.text)) and denies is is_negative(fact.text):
            return fact
    return None
