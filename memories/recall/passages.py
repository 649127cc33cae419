"""Cuts long texts into passages, each of which has a vector of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from agent_brain.common.text import shorten

LONGEST = 600  # characters of a passage; a text that has no more is one
MOST_TOKENS = 8_000  # of a text; of a longer one the beginning and the end are used
_SENTENCE = re.compile(r".+?(?:[.!?…](?=\s)|[。！？]|\n|$)\s*", re.S)


def shortened(text: str) -> str:
    """Return what is embedded of a text."""
    return shorten(text, MOST_TOKENS)


def passages(text: str) -> list[str]:
    """Return ``text``, or the passages of a long one: whole sentences or lines, if possible."""
    if len(text) <= LONGEST:
        return [text]
    found = [""]
    for sentence in _SENTENCE.findall(shortened(text)):
        for start in range(0, len(sentence), LONGEST):
            piece = sentence[start : start + LONGEST]
            if len(found[-1]) + len(piece.rstrip()) > LONGEST:
                found.append("")
            found[-1] += piece
    return [passage for passage in found if passage.strip()]


def fitting(query: str, text: str, cosines: Sequence[float]) -> str:
    """Return the passage of a text that fits a question best; the first one if none does.

    Args:
        query: The question. Words of it that few passages have count more.
        text: The text.
        cosines: How near each passage is to the question, if that is known.
    """
    from agent_brain.memories.recall.tokenizer import ASKING, runs, terms

    parts, asked = passages(text), {*terms(runs(query))} - ASKING
    having = [asked.intersection(terms(runs(part))) for part in parts]
    among = Counter(chain.from_iterable(having))
    fits = [sum(1 / among[term] for term in each) / len(among) for each in having if among]
    if len(cosines) == len(parts):
        fits = [sum(pair) for pair in zip(fits or [0.0] * len(parts), cosines, strict=True)]
    return parts[fits.index(max(fits))] if fits else parts[0]
