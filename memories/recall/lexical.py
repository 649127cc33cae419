"""BM25 over messages that are added and removed: an inverted index in RAM.

Okapi BM25: Robertson, Walker et al. 1994 (TREC-3); Robertson and Zaragoza 2009, "The Probabilistic
Relevance Framework". The idf is Lucene's, which is never negative.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.features import GrowableArray

K1 = 1.2  # saturation of the term frequency: the textbook value
B = 0.4  # length normalisation; less than for documents, as messages are short
_PAIR = struct.Struct("=ii")


class LexicalIndex:
    """The terms of each row. Rows are numbered from 0 as they are added."""

    def __init__(self) -> None:
        # row, count, row, count, …; rows ascend. Bytes, as garbage collection visits arrays.
        self._postings: dict[str, bytearray] = {}
        self._terms: list[tuple[str, ...]] = []
        self._lengths: GrowableArray[np.int32] = GrowableArray(np.int32)
        self._count = 0
        self._total = 0

    def add(self, terms: Sequence[str]) -> None:
        """Add a row with these terms."""
        row = len(self._terms)
        counts = Counter(terms)
        for term, count in counts.items():
            posting = self._postings.get(term)
            if posting is None:
                self._postings[term] = bytearray(_PAIR.pack(row, count))
            else:
                posting += _PAIR.pack(row, count)
        self._terms.append(tuple(counts))
        self._lengths.append(len(terms))
        self._count += 1
        self._total += len(terms)

    def clear(self, row: int) -> None:
        """Remove everything about a row; its number is not used again before :meth:`keep`."""
        for term in self._terms[row]:
            posting = self._postings[term]
            at = _PAIR.size * int(np.searchsorted(_pairs(bytes(posting))[:, 0], row))
            del posting[at : at + _PAIR.size]
            if not posting:
                del self._postings[term]
        self._terms[row] = ()
        self._total -= int(self._lengths.rows[row])
        self._lengths.rows[row] = 0
        self._count -= 1

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, which were cleared before; renumber the others."""
        numbers = np.cumsum(rows, dtype=np.int32) - 1
        for posting in self._postings.values():
            pairs = _pairs(posting)
            pairs[:, 0] = numbers[pairs[:, 0]]
        self._terms = [terms for terms, kept in zip(self._terms, rows, strict=True) if kept]
        self._lengths.keep(rows)

    def scores(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Return the BM25 score of every row for ``terms``; cleared rows score 0."""
        scores = np.zeros(len(self._terms), np.float32)
        for term, weight in Counter(terms).items():
            posting = self._postings.get(term)
            if posting is not None:
                rows, counts = _pairs(posting).T
                worth = np.float32(weight * self._idf(len(rows)))
                scores[rows] += worth * self._saturated(rows, counts.astype(np.float32))
        return scores

    def most(self, terms: Sequence[str]) -> float:
        """Return the score of a row of average length that has each of ``terms`` once."""
        rows = {term: len(self._postings.get(term, ())) // _PAIR.size for term in terms}
        return sum(weight * self._idf(rows[term]) for term, weight in Counter(terms).items())

    def terms(self, row: int) -> frozenset[str]:
        """Return the terms of a row."""
        return frozenset(self._terms[row])

    def _idf(self, found: int) -> float:
        return math.log(1 + (self._count - found + 0.5) / (found + 0.5))

    def _saturated(
        self, rows: NDArray[np.int32], counts: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        lengths = self._lengths.rows[rows].astype(np.float32)
        mean = self._total / self._count
        norms = np.float32(K1 * (1 - B)) + np.float32(K1 * B / mean) * lengths
        saturated = counts * np.float32(K1 + 1) / (counts + norms)
        return saturated.astype(np.float32, copy=False)


def _pairs(posting: bytes | bytearray) -> NDArray[np.int32]:
    return np.frombuffer(posting, np.int32).reshape(-1, 2)
