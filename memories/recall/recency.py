"""Facts change: of messages that say nearly the same and fit about as well, the newer comes first.

Only messages of one speaker that share much of their wording are compared, so that the order of all
others stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.columns import Columns
from agent_brain.memories.recall.ranking import Scores
from agent_brain.memories.recall.selection import best_first

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
    left = best_first(np.round(scores, DECIMALS), COMPARED)
    while left:
        first, *others = left
        group = [first, *(row for row in others if _alike(first, row, scores, columns, terms))]
        if len(group) > 1:
            _exchange(group, scores, columns.times, added)
        left = [row for row in others if row not in group]
    return added


def _alike(first: int, row: int, scores: Scores, columns: Columns, terms: Terms) -> bool:
    if scores[first] - scores[row] > MARGIN or columns.speakers[first] != columns.speakers[row]:
        return False
    one, other = terms(first), terms(row)
    return bool(one) and len(one & other) >= ALIKE * len(one | other)


def _exchange(
    group: list[int], scores: Scores, times: NDArray[np.float64], added: Scores
) -> None:
    """Give the scores of ``group`` to its rows, each newer one a better one, if only by a hair."""
    least = np.float32(-np.inf)
    by_age = sorted(group, key=lambda row: (np.nan_to_num(times[row], nan=-np.inf), row))
    for row, score in zip(by_age, sorted(scores[row] for row in group), strict=True):
        least = max(score, np.nextafter(least, np.float32(np.inf)))
        added[row] = least - scores[row]
