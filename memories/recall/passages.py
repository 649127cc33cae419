"""Cuts long texts into passages, each of which has a vector of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    for piece in _pieces(shortened(text)):
        if len(found[-1]) + len(piece.rstrip()) > LONGEST:
            found.append("")
        found[-1] += piece
    return [passage for passage in found if passage.strip()]


def _pieces(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.findall(text):
        for start in range(0, len(sentence), LONGEST):
            yield sentence[start : start + LONGEST]
