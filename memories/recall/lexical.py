"""BM25 over messages that are added and removed: the terms of all messages in one array.

Okapi BM25: Robertson, Walker et al. 1994 (TREC-3); Robertson and Zaragoza 2009, "The Probabilistic
Relevance Framework". The idf is Lucene's, which is never negative. It is raised to a power where a
question may be a whole message, in which the many common words outweigh the few rare ones, and
where vectors show the subject and words are there for names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.features import Column, Labels
from agent_brain.memories.recall.words import Words, places_of

K1 = 1.2  # saturation of the term frequency: the textbook value
RARITY = 1.5  # the power of the idf; 2 in the cosine of two texts, each weighted by tf-idf
B = 0.4  # length normalisation; less than for documents, as messages are short
FEEDBACK, EXPANSION = 10, 30  # best groups, and how many of their terms are looked for as well
NOTHING = 0  # the number of no term
TINY = 1e-9  # instead of a largest score of 0


class Scores(NamedTuple):
    """BM25 scores.

    Attributes:
        rows: Of every row.
        groups: Of every group of rows, as of one long text, from 0 to 1: half of it are the
            question's own terms, and half what is typical of the groups that match these best.
        most: Of an average row with each term once.
    """

    rows: NDArray[np.float32]
    groups: NDArray[np.float32]
    most: float


class Occurrences(NamedTuple):
    """Which texts have which terms.

    Attributes:
        texts: Rows, or groups of them.
        terms: The places of the terms in a list.
        times: How often.
    """

    texts: NDArray[np.intp]
    terms: NDArray[np.intp]
    times: NDArray[np.int64]


class LexicalIndex:
    """The terms of each row. Rows are numbered from 0 as they are added.

    A search looks at all terms of all rows, which takes about a millisecond for 500,000 of them.
    So there is no inverted index, and adding is cheap.
    """

    def __init__(self) -> None:
        self._numbers = Labels()  # of terms
        self._words = Words(self._numbers)
        self._terms: Column[np.int32] = Column(np.int32)  # row after row
        self._lengths: Column[np.int64] = Column(np.int64)
        self._uses: NDArray[np.intp] | None = None  # of each term, once they were counted

    def add(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """Add rows with these texts; return about how many words each has."""
        found = self._words.cut(texts)
        self._terms.extend(found.terms)
        self._lengths.extend(found.lengths)
        self._uses = None
        return found.counts

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false with every trace of them; renumber the others."""
        self._terms.keep(np.repeat(rows, self._lengths.rows))
        self._lengths.keep(rows)
        self._numbers.keep(self._terms.rows)
        self._words = Words(self._numbers)
        self._uses = None

    def scores(
        self,
        question: Sequence[str],
        groups: NDArray[np.int32],
        *,
        compare: bool = True,
        rarity: float = RARITY,
        without: int | None = None,
    ) -> Scores:
        """Return the BM25 scores of every row, and how well every group of rows matches.

        Args:
            question: Terms.
            groups: The number of the group of each row, from 0.
            compare: Score the groups too.
            rarity: The power of the idf.
            without: A row that does not count in its group.
        """
        counts = Counter(question)
        numbers = [self._numbers.get(term, NOTHING) for term in counts]
        lengths = self._lengths.rows
        worth = np.array([*counts.values()], np.float64)
        found = self._occurrences(numbers)
        of_rows, most = _bm25(worth, found, lengths, rarity)
        lengths = np.bincount(groups, lengths)
        if not compare or len(lengths) < 2:
            return Scores(of_rows, np.full(len(lengths), of_rows.any(), np.float32), most)
        if without is not None:
            others = found.texts != without
            found = Occurrences(*(column[others] for column in found))
        whole, _ = _bm25(worth, _together(found, groups), lengths, rarity)
        typical, weights = self._typical(whole, lengths, groups)
        found = _together(self._occurrences(typical), groups)
        alike, _ = _bm25(weights, found, lengths, rarity)
        best = [scores / max(scores.max(initial=0), TINY) for scores in (whole, alike)]
        return Scores(of_rows, (best[0] + best[1]) / 2, most)

    def _typical(
        self, scores: NDArray[np.float32], lengths: NDArray[np.int64], groups: NDArray[np.int32]
    ) -> tuple[list[int], NDArray[np.float64]]:
        """Return the numbers of the terms that are typical of the best groups, and their weights.

        It is pseudo relevance feedback with the divergence of Kullback and Leibler: Carpineto, de
        Mori, Romano and Bigi 2001, "An information-theoretic approach to automatic query
        expansion". Conversations about one thing share words that no single question has.
        """
        best = _largest(scores, FEEDBACK)
        share = np.zeros(len(scores))
        share[best] = scores[best] / lengths[best]
        rows = np.flatnonzero(share[groups] > 0)
        ends, sizes = np.cumsum(self._lengths.rows)[rows], self._lengths.rows[rows]
        terms = self._terms.rows[places_of(ends - sizes, sizes)]
        here = np.bincount(terms, np.repeat(share[groups[rows]], sizes), self._numbers.last + 1)
        numbers = np.flatnonzero(here)
        here = here[numbers] / here.sum()
        if self._uses is None:
            self._uses = np.bincount(self._terms.rows, minlength=self._numbers.last + 1)
        gain = here * np.log(here * lengths.sum() / self._uses[numbers])
        chosen = _largest(gain, EXPANSION)
        return numbers[chosen].tolist(), gain[chosen]

    def _occurrences(self, numbers: Sequence[int]) -> Occurrences:
        """Return in which rows terms are, by their numbers."""
        column = np.full(self._numbers.last + 1, -1, np.int32)
        column[numbers] = np.arange(len(numbers))
        column[NOTHING] = -1
        columns = column[self._terms.rows]
        places = np.flatnonzero(columns >= 0)
        rows = np.searchsorted(np.cumsum(self._lengths.rows), places, side="right")
        return _counted(rows, columns[places])

    def having(self, wanted: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Return whether each row has a term that ``wanted`` returns True for."""
        found = np.zeros(len(self._lengths.rows), np.bool_)
        numbers = [number for term, number in self._numbers.items() if wanted(term)]
        found[self._occurrences(numbers).texts] = True
        return found

    def numbers(self, terms: Iterable[str]) -> frozenset[int]:
        """Return the numbers of those of ``terms`` that rows have."""
        return frozenset(self._numbers[term] for term in terms if term in self._numbers)

    def terms(self, row: int) -> frozenset[int]:
        """Return the numbers of the terms of a row."""
        end = int(self._lengths.rows[: row + 1].sum())
        return frozenset(self._terms.rows[end - int(self._lengths.rows[row]) : end].tolist())


def _largest(values: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Return the places of the ``count`` largest values above 0, and of those equal to the last."""
    least = np.partition(values, -count)[-count] if len(values) > count else 0
    return np.flatnonzero((values > 0) & (values >= least))


def _counted(
    texts: NDArray[Any], terms: NDArray[Any], times: NDArray[np.int64] | None = None
) -> Occurrences:
    """Return how often each text has each term."""
    many = int(terms.max(initial=0)) + 1
    pairs, places = np.unique(texts * many + terms, return_inverse=True)
    return Occurrences(*np.divmod(pairs, many), np.bincount(places, times))


def _together(found: Occurrences, groups: NDArray[np.int32]) -> Occurrences:
    """Return the same of groups of texts."""
    return _counted(groups[found.texts], found.terms, found.times)


def _bm25(
    worth: NDArray[np.float64], found: Occurrences, lengths: NDArray[np.int64], rarity: float
) -> tuple[NDArray[np.float32], float]:
    """Return the score of every text, and that of an average one with each term once.

    Args:
        worth: The weight of each term.
        found: Which texts have which terms.
        lengths: Of all texts, in terms.
        rarity: The power of the idf.
    """
    (texts, terms, times), count = found, len(lengths)
    having = np.bincount(terms, minlength=len(worth))
    worth = worth * np.log1p((count - having + 0.5) / (having + 0.5)) ** rarity
    norms = K1 * (1 - B + B * lengths[texts] * count / max(lengths.sum(), 1))
    values = worth[terms] * times * (K1 + 1) / (times + norms)
    return np.bincount(texts, values, len(lengths)).astype(np.float32), float(worth.sum())
