"""Cuts many texts into words at once, and knows the terms of each word that it has seen.

Most words of a conversation have occurred before. So the words of all texts are found in one pass
over their bytes, and looked up by a hash of 64 bits of their letters, which two of a million words
share once in ten million such conversations.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.features import Column, Labels
from agent_brain.memories.recall.tokenizer import count_words, runs, terms

Hashes = NDArray[np.uint64]
SPACE, JOINER, LETTER = b" -a"  # kinds of characters in ASCII; the others are letters
KINDS = bytes(
    SPACE if chr(byte).isspace() else JOINER if byte in b"-_./:" else LETTER * chr(byte).isalnum()
    for byte in range(128)
) + bytes([LETTER] * 128)
FACTOR = 8 * int.from_bytes(os.urandom(7), "big") + 5  # unknown to who writes the words
USUAL = 1 << 17  # bytes of texts that are cut at once
SMALLEST = 1 << 10  # places of the table
MOST = 1 << 20  # known terms: more are data, or a script without spaces
WORD = np.dtype(
    [
        ("start", np.int64),  # the place of its first term in the list of all
        ("terms", np.int32),  # how many it has
        ("words", np.int32),  # how many words it is
    ]
)


def _powers(factor: int, count: int) -> Hashes:
    """Return the first powers of a number, modulo 2**64."""
    powers = np.full(count, factor % 2**64, np.uint64)
    powers[:1] = 1
    return np.multiply.accumulate(powers)


def _both(count: int) -> list[Hashes]:
    """Return the powers of :data:`FACTOR` and of its inverse."""
    return [_powers(factor, count) for factor in (FACTOR, pow(FACTOR, -1, 2**64))]


_USUAL = _both(USUAL)


class Cut(NamedTuple):
    """The words of some texts.

    Attributes:
        terms: The numbers of the terms of all texts, in order.
        lengths: How many terms each text has.
        counts: About how many words, with function words.
    """

    terms: NDArray[np.int32]
    lengths: NDArray[np.int64]
    counts: NDArray[np.int64]


class Words:
    """The words that were seen.

    Args:
        numbers: Of the terms.
    """

    def __init__(self, numbers: Labels) -> None:
        self._numbers = numbers
        self._start()

    def _start(self) -> None:
        self._known: Column[Any] = Column(WORD)
        self._known.extend(np.zeros(1, WORD))  # no word
        self._terms: Column[np.int32] = Column(np.int32)
        self._make_table(SMALLEST)

    def _make_table(self, size: int) -> None:
        """Make a table with open addressing and linear probing."""
        self._hashes: Hashes = np.zeros(size, np.uint64)
        self._places: NDArray[np.int32] = np.zeros(size, np.int32)  # in _known

    def cut(self, texts: Iterable[str]) -> Cut:
        """Return the terms of texts."""
        texts = [*texts]
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        text = b" ".join([b"", *parts, b""]).lower()
        kinds = np.frombuffer(text.translate(KINDS), np.uint8)
        inside = kinds == LETTER
        inside[1:-1] |= inside[:-2] & inside[2:] & (kinds[1:-1] == JOINER)
        edges = np.flatnonzero(inside[1:] != inside[:-1])
        before, last = edges[::2], edges[1::2]  # of the letters of each word
        known = self._look_up(text, before, last)
        ends = [*accumulate((len(part) + 1 for part in parts), initial=0)]
        rows = np.searchsorted(before, ends)  # the words before each text
        sizes = known["terms"]
        lengths, counts = _sums(sizes, rows), _sums(known["words"], rows)
        spaces = kinds == SPACE
        spaced = np.searchsorted(np.flatnonzero(spaces[:-1] > spaces[1:]), ends)
        plain = np.array([*map(str.isascii, texts)], np.bool_) & (counts > 0)
        return Cut(
            self._terms.rows[places_of(known["start"], sizes)],
            lengths,
            np.where(plain, spaced[1:] - spaced[:-1], counts),
        )

    def _look_up(
        self, text: bytes, before: NDArray[np.intp], last: NDArray[np.intp]
    ) -> NDArray[Any]:
        """Return what is known of each word.

        Args:
            text: Has the words.
            before: What comes before each of them.
            last: The last byte of each.
        """
        powers, inverses = _USUAL if len(text) <= USUAL else _both(len(text))
        sums = np.cumsum(np.frombuffer(text, np.uint8) * powers[: len(text)])
        hashes = (sums[last] - sums[before]) * inverses[before]
        places = self._places[self._find(hashes)]
        if not places.all():
            if len(self._terms.rows) > MOST:
                self._start()
                places[:] = 0
            unknown = np.flatnonzero(places == 0)
            first = dict(zip(hashes[unknown[::-1]].tolist(), unknown[::-1].tolist(), strict=True))
            at = sorted(first.values())
            words = zip((before[at] + 1).tolist(), (last[at] + 1).tolist(), strict=True)
            self._learn(text[start:end].decode("utf-8", "surrogatepass") for start, end in words)
            self._insert(hashes[at])
            places[unknown] = self._places[self._find(hashes[unknown])]
        return self._known.rows[places]

    def _learn(self, words: Iterable[str]) -> None:
        """Append words to those that are known."""
        found: list[int] = []
        ends, counts = [len(self._terms.rows)], []
        for word in words:
            known = terms([word] if word.isascii() else runs(word))
            found += map(self._numbers.__getitem__, known)
            ends.append(ends[0] + len(found))
            counts.append(count_words(word, 1))
        rows = np.empty(len(counts), WORD)
        rows["start"], rows["terms"], rows["words"] = ends[:-1], np.diff(ends), counts
        self._known.extend(rows)
        self._terms.extend(found)

    def _find(self, hashes: Hashes) -> NDArray[np.intp]:
        """Return where each hash is in the table, or where it would be."""
        at = (hashes >> np.uint64(65 - len(self._hashes).bit_length())).astype(np.intp)
        left = np.flatnonzero(self._hashes[at] != hashes)
        while len(left):
            left = left[self._hashes[at[left]] != 0]
            at[left] = (at[left] + 1) % len(self._hashes)
            left = left[self._hashes[at[left]] != hashes[left]]
        return at

    def _insert(self, hashes: Hashes) -> None:
        """Put the hashes of the words that were learned last into the table."""
        count = len(self._known.rows)
        places = np.arange(count - len(hashes), count)
        if 2 * count > len(self._hashes):
            known = np.flatnonzero(self._hashes)
            hashes = np.append(self._hashes[known], hashes)
            places = np.append(self._places[known], places)
            self._make_table(4 << count.bit_length())
        while len(hashes):
            at = self._find(hashes)
            self._hashes[at] = hashes
            here = self._hashes[at] == hashes  # and no other one
            self._places[at[here]] = places[here]
            hashes, places = hashes[~here], places[~here]


def _sums(values: NDArray[np.int32], bounds: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the sums of the values between bounds."""
    upto = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=upto[1:])
    sums: NDArray[np.int64] = upto[bounds[1:]] - upto[bounds[:-1]]
    return sums


def places_of(starts: NDArray[np.int64], sizes: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the places in a list of pieces of it, one piece after another."""
    upto = np.cumsum(sizes)
    return np.repeat(starts + sizes - upto, sizes) + np.arange(upto[-1] if len(upto) else 0)
