"""BM25 over messages that are added and removed: the terms of all messages in one array.

Okapi BM25: Robertson, Walker et al. 1994 (TREC-3); Robertson and Zaragoza 2009, "The Probabilistic
Relevance Framework". The idf is Lucene's, which is never negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.arrays import GrowableArray
from agent_brain.memories.recall.tokenizer import LONGEST_TERM, runs, terms

K1 = 1.2  # saturation of the term frequency: the textbook value
B = 0.4  # length normalisation; less than for documents, as messages are short
NOTHING = 0  # the number of no term


class LexicalIndex:
    """The terms of each row. Rows are numbered from 0 as they are added.

    A search looks at all terms of all rows, which takes about a millisecond for 500,000 of them.
    So there is no inverted index, and adding is cheap.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # of the terms
        self._last = NOTHING
        self._words: dict[str, tuple[int, ...]] = {}  # the numbers of the terms of known words
        self._terms: GrowableArray[np.int32] = GrowableArray(np.int32)  # row after row
        self._lengths: GrowableArray[np.int64] = GrowableArray(np.int64)
        self._count = 0
        self._total = 0

    def add(self, texts: Iterable[str]) -> None:
        """Add rows with these texts.

        A text is only cut at spaces, as cutting it into runs takes several times as long; that is
        done once for each word as it is written.
        """
        found: list[int] = []
        lengths = []
        for text in texts:
            before = len(found)
            for word in text.split():
                numbers = self._words.get(word)
                found += self._numbered(word) if numbers is None else numbers
            lengths.append(len(found) - before)
        self._terms.extend(found)
        self._lengths.extend(lengths)
        self._count += len(lengths)
        self._total += len(found)

    def _numbered(self, word: str) -> tuple[int, ...]:
        numbers = []
        for term in terms(runs(word)):
            if term not in self._numbers:
                self._last += 1
                self._numbers[term] = self._last
            numbers.append(self._numbers[term])
        if len(word) <= LONGEST_TERM:  # the others are data, or a script without spaces
            self._words[word] = tuple(numbers)
        return tuple(numbers)

    def clear(self, rows: Sequence[int]) -> None:
        """Remove everything about rows; their numbers are not used again before :meth:`keep`."""
        cleared = np.zeros(len(self._lengths), np.bool_)
        cleared[rows] = True
        places = np.repeat(cleared, self._lengths.rows)
        removed = self._terms.rows[places]
        self._terms.rows[places] = NOTHING
        self._count -= len(rows)
        self._total -= len(removed)
        used = np.zeros(self._last + 1, np.bool_)
        used[self._terms.rows] = True
        gone = {number for number in np.unique(removed).tolist() if not used[number]}
        self._numbers = {term: n for term, n in self._numbers.items() if n not in gone}
        self._words = {}

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, which were cleared before; renumber the others."""
        self._terms.keep(np.repeat(rows, self._lengths.rows))
        self._lengths.keep(rows)

    def scores(self, question: Sequence[str]) -> tuple[NDArray[np.float32], float]:
        """Return the BM25 score of every row, and that of an average row with each term once.

        Args:
            question: Terms.
        """
        counts = Counter(question)
        rows, columns, times = self._occurrences([*counts])
        having = np.bincount(columns, minlength=len(counts))
        worth = np.array([*counts.values()]) * np.log1p(
            (self._count - having + 0.5) / (having + 0.5)
        )
        mean = self._total / self._count if self._total else 1
        norms = K1 * (1 - B + B * self._lengths.rows[rows] / mean)
        values = worth[columns] * times * (K1 + 1) / (times + norms)
        scores = np.bincount(rows, values, len(self._lengths))
        return scores.astype(np.float32), float(worth.sum())

    def _occurrences(self, terms: Sequence[str]) -> tuple[NDArray[np.intp], ...]:
        """Return rows, the places in ``terms`` of those that they have, and how often."""
        column = np.full(self._last + 1, -1, np.int32)
        for place, term in enumerate(terms):
            column[self._numbers.get(term, NOTHING)] = place
        column[NOTHING] = -1
        columns = column[self._terms.rows]
        places = np.flatnonzero(columns >= 0)
        rows = np.searchsorted(np.cumsum(self._lengths.rows), places, side="right")
        pairs, times = np.unique(rows * len(terms) + columns[places], return_counts=True)
        return *np.divmod(pairs, max(len(terms), 1)), times

    def having(self, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Return whether each row has a term that ``wanted`` returns True for."""
        found = np.zeros(len(self._lengths), np.bool_)
        found[self._occurrences([term for term in self._numbers if wanted(term)])[0]] = True
        return found

    def terms(self, row: int) -> frozenset[int]:
        """Return the numbers of the terms of a row."""
        end = int(self._lengths.rows[: row + 1].sum())
        return frozenset(self._terms.rows[end - int(self._lengths.rows[row]) : end].tolist())
