"""The best rows by score, from several conversations, newer statements before older ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
COMPARED = 10  # of the best messages
ALIKE = 0.25  # the part of their terms that two messages share ("I live in Rome", "… in Paris")
MATCH = 0.3  # of that of the best, for messages that say something about what is asked
SPREAD, SPREAD_OVER = 0.15, 512  # weight of the logarithm of a group's better rows, best rows
STRETCHES = 4  # for each score that is looked for


def best_first(
    scores: Scores, count: int, accept: Callable[[int], bool] | None = None
) -> list[int]:
    """Return the places of the ``count`` largest scores, best first, ties to the later; no -inf.

    Args:
        scores: The scores.
        count: How many places at most.
        accept: Only places that it returns True for; it is called no more often than necessary.
    """
    if accept is not None:
        return [*islice(filter(accept, best_first(scores, len(scores))), count)]
    bound = _lower_bound(scores, count)
    places = np.flatnonzero(scores > bound)
    if len(places) < count:
        ties = np.flatnonzero(scores == bound) if bound > -np.inf else places[:0]
        places = np.sort(np.append(places, ties[-(count - len(places)) :]))
    elif len(places) > count:
        found = scores[places]
        places = places[found >= np.partition(found, -count)[-count]]
    places = places[::-1]
    best: list[int] = places[np.argsort(-scores[places], kind="stable")][:count].tolist()
    return best


def _lower_bound(scores: Scores, count: int) -> np.float32:
    """Return a score that at least ``count`` scores reach and few exceed.

    It is the ``count``-th largest of the best scores of short stretches, as selecting among all
    scores is slow where many are equal.
    """
    width = len(scores) // (STRETCHES * max(count, 1))
    if width < 2:
        return np.float32(-np.inf)
    best = scores[: len(scores) // width * width].reshape(-1, width).max(axis=1)
    bound: np.float32 = np.partition(best, -count)[-count]
    return bound


def spread(scores: Scores, groups: NDArray[np.int32]) -> Scores:
    """Return what to add to ``scores`` so that the best of other groups come before more of one.

    Args:
        scores: The score of each row.
        groups: The number of the group of each row.
    """
    best = np.array(best_first(scores, SPREAD_OVER), np.intp)
    order = np.argsort(groups[best], kind="stable")
    sizes = np.unique(groups[best], return_counts=True)[1]
    before = np.empty(len(best), np.float32)
    before[order] = np.arange(len(best)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    added = np.full(len(scores), -SPREAD * np.log1p(before.max(initial=0)), np.float32)
    added[best] = -SPREAD * np.log1p(before)
    return added


def newer_first(scores: Scores, own: Scores, precedence: Callable[[int, int], float]) -> Scores:
    """Return what to add to ``scores`` so that newer statements come before older ones.

    Facts change: "I live in Rome", and later "I moved to Porto". Of the best messages those that
    match the question by themselves, at least a third as well as the best, probably say something
    about the same thing if they are alike. Of those that come later, all that are alike and
    belong before one of them are moved there, or else the one that belongs there most, each once;
    the order of all others stays as it is.

    Args:
        scores: The score of each row.
        own: How well each row matches by itself.
        precedence: Returns how much a row belongs before another one; 0 if it does not.
    """
    added = np.zeros(len(scores), np.float32)
    best = best_first(scores, COMPARED)
    match = max(own[best].max(initial=0), 0) * MATCH
    about = [row for row in best if own[row] >= match]
    order, moved = [*best], set[int]()
    for other in about:
        place = order.index(other)
        later = [row for row in order[place + 1 :] if row in about and row not in moved]
        found = {row: precedence(row, other) for row in later}
        most = max(found.values(), default=0)
        for row in later:
            if found[row] > 0 and found[row] >= min(most, ALIKE):
                moved.add(row)
                order.remove(row)
                order.insert(place, row)
                place += 1
    if moved:
        least = np.float32(np.inf)
        for row, score in zip(order, scores[best].tolist(), strict=True):
            least = min(np.float32(score), np.nextafter(least, np.float32(-np.inf)))
            added[row] = least - scores[row]
    return added
