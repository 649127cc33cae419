"""BM25 over messages that are added and removed: the terms of all messages in one array.

Okapi BM25: Robertson, Walker et al. 1994 (TREC-3); Robertson and Zaragoza 2009, "The Probabilistic
Relevance Framework". The idf is Lucene's, which is never negative. It is raised to a power, as a
question may be a whole message, in which the many common words outweigh the few rare ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.arrays import GrowableArray
from agent_brain.memories.recall.tokenizer import LONGEST_TERM, runs, terms

K1 = 1.2  # saturation of the term frequency: the textbook value
RARITY = 1.5  # the power of the idf; 2 in the cosine of two texts, each weighted by tf-idf
B = 0.4  # length normalisation; less than for documents, as messages are short
NOTHING = 0  # the number of no term


class Scores(NamedTuple):
    """BM25 scores.

    Attributes:
        rows: Of every row.
        groups: Of every group of rows.
        most: Of an average row with each term once.
    """

    rows: NDArray[np.float32]
    groups: NDArray[np.float32]
    most: float


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
        used = np.zeros(self._last + 1, np.bool_)
        used[self._terms.rows] = True
        gone = {number for number in np.unique(removed).tolist() if not used[number]}
        self._numbers = {term: n for term, n in self._numbers.items() if n not in gone}
        self._words = {}

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, which were cleared before; renumber the others."""
        self._terms.keep(np.repeat(rows, self._lengths.rows))
        self._lengths.keep(rows)

    def scores(self, question: Sequence[str], groups: NDArray[np.int32]) -> Scores:
        """Return the BM25 scores of every row and of every group of rows, as of one long text.

        Args:
            question: Terms.
            groups: The number of the group of each row, from 0; -1 for cleared rows.
        """
        counts = Counter(question)
        rows, columns, times = self._occurrences([*counts])
        lengths = np.where(groups < 0, 0, self._lengths.rows)
        of_rows, most = _bm25(counts, (rows, columns, times), lengths, self._count)
        pairs, whole = np.unique(groups[rows] * len(counts) + columns, return_inverse=True)
        found = *np.divmod(pairs, max(len(counts), 1)), np.bincount(whole, times)
        lengths = np.bincount(groups + 1, lengths)[1:]
        of_groups, _ = _bm25(counts, found, lengths, len(lengths))
        return Scores(of_rows, of_groups, most)

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

    def numbers(self, terms: Iterable[str]) -> frozenset[int]:
        """Return the numbers of those of ``terms`` that rows have."""
        return frozenset(self._numbers[term] for term in terms if term in self._numbers)

    def terms(self, row: int) -> frozenset[int]:
        """Return the numbers of the terms of a row."""
        end = int(self._lengths.rows[: row + 1].sum())
        return frozenset(self._terms.rows[end - int(self._lengths.rows[row]) : end].tolist())


def _bm25(
    counts: Mapping[str, int],
    found: tuple[NDArray[np.intp], ...],
    lengths: NDArray[np.int64],
    count: int,
) -> tuple[NDArray[np.float32], float]:
    """Return the score of every text, and that of an average one with each term once.

    Args:
        counts: How often the question has each term.
        found: Texts, the places in ``counts`` of terms that they have, and how often.
        lengths: Of all texts, in terms.
        count: How many texts there are.
    """
    texts, columns, times = found
    having = np.bincount(columns, minlength=len(counts))
    rarity = np.log1p((count - having + 0.5) / (having + 0.5)) ** RARITY
    worth = np.array([*counts.values()]) * rarity
    norms = K1 * (1 - B + B * lengths[texts] * count / max(lengths.sum(), 1))
    values = worth[columns] * times * (K1 + 1) / (times + norms)
    return np.bincount(texts, values, len(lengths)).astype(np.float32), float(worth.sum())
