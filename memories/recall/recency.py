"""Facts change: of messages that say nearly the same and fit about as well, the newer comes first.

Only messages of one speaker that share much of their wording are compared, so that the order of all
others stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.features import Columns
from agent_brain.memories.recall.top_k import best_first
from agent_brain.memories.recall.weights import Scores

COMPARED = 64  # of the best messages
DECIMALS = 4  # of a score that are no accident of rounding
MARGIN = 0.15  # a lead in score that is too large to count as fitting equally
ALIKE = 0.25  # the part of their terms that two messages share ("I live in Rome", "… in Paris")

Terms = Callable[[int], frozenset[str]]


def newer_first(scores: Scores, columns: Columns, terms: Terms) -> Scores:
    """What to add to ``scores``: among messages that are alike, the newer ones get the better ones.

    Args:
        scores: Of each row.
        columns: What is known of each row.
        terms: Gives the terms of a row.
    """
    added = np.zeros(len(scores), np.float32)
    rows = best_first(np.round(scores, DECIMALS), COMPARED)
    facts = [
        _Fact(row, score, speaker, terms(row))
        for row, score, speaker in zip(
            rows, scores[rows].tolist(), columns.speakers[rows].tolist(), strict=True
        )
    ]
    while facts:
        first, *others = facts
        group = [first, *(fact for fact in others if _alike(first, fact))]
        if len(group) > 1:
            _exchange([fact.row for fact in group], scores, columns.times, added)
        facts = [fact for fact in others if fact not in group]
    return added


class _Fact(NamedTuple):
    row: int
    score: float
    speaker: int
    terms: frozenset[str]


def _alike(one: _Fact, other: _Fact) -> bool:
    if one.speaker != other.speaker or one.score - other.score > MARGIN:
        return False
    shared = len(one.terms & other.terms)
    return shared > 0 and shared >= ALIKE * (len(one.terms) + len(other.terms) - shared)


def _exchange(rows: list[int], scores: Scores, times: NDArray[np.float64], added: Scores) -> None:
    """Give the scores of ``rows`` to them by age, each newer one a better one, if by a hair."""
    least = np.float32(-np.inf)
    by_age = sorted(rows, key=lambda row: (np.nan_to_num(times[row], nan=-np.inf), row))
    for row, score in zip(by_age, sorted(scores[row] for row in rows), strict=True):
        least = max(score, np.nextafter(least, np.float32(np.inf)))
        added[row] = least - scores[row]
