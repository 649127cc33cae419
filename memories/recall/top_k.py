"""The best rows by score, and the newer ones first among those that say nearly the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.features import Features

Scores = NDArray[np.float32]
COMPARED = 64  # of the best messages
SPREAD, SPREAD_OVER = 0.15, 512  # weight of the logarithm of a group's better rows, best rows
STRETCHES = 4  # for each score that is looked for
DECIMALS = 4  # to which scores are compared
MARGIN = 0.15  # messages whose scores differ by more do not fit equally
ALIKE = 0.25  # the part of their terms that two messages share ("I live in Rome", "… in Paris")


def best_first(scores: Scores, count: int) -> list[int]:
    """Return the places of the ``count`` largest scores, best first, ties to the later; no -inf."""
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


def best_accepted(scores: Scores, count: int, accept: Callable[[int], bool]) -> list[int]:
    """Return :func:`best_first` of those that ``accept`` returns True for.

    It is called no more often than necessary.
    """
    return [*islice(filter(accept, best_first(scores, len(scores))), count)]


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


class _Fact(NamedTuple):
    row: int
    score: float
    speaker: int
    terms: frozenset[int]


def newer_first(
    scores: Scores, features: Features, terms: Callable[[int], frozenset[int]]
) -> Scores:
    """Return what to add to ``scores`` so that newer facts come before older ones.

    Facts change. Among messages of one speaker that share much of their wording and fit about as
    well, the newer ones get the better scores; the order of all others stays as it is.

    Args:
        scores: The score of each row.
        features: What is known of each row.
        terms: Returns the terms of a row.
    """
    added = np.zeros(len(scores), np.float32)
    near = np.flatnonzero(scores >= _lower_bound(scores, COMPARED) - 0.1**DECIMALS)
    rows = near[best_first(np.round(scores[near], DECIMALS), COMPARED)].tolist()
    speakers = features["speaker"][rows].tolist()
    facts = [
        _Fact(row, score, speaker, terms(row))
        for row, score, speaker in zip(rows, scores[rows].tolist(), speakers, strict=True)
    ]
    while facts:
        first, *others = facts
        group = [first, *(fact for fact in others if _alike(first, fact))]
        if len(group) > 1:
            _exchange([fact.row for fact in group], scores, features["time"], added)
        facts = [fact for fact in others if fact not in group]
    return added


def _alike(one: _Fact, other: _Fact) -> bool:
    if one.speaker != other.speaker or one.score - other.score > MARGIN:
        return False
    shared = len(one.terms & other.terms)
    return shared > 0 and shared >= ALIKE * (len(one.terms) + len(other.terms) - shared)


def _exchange(rows: list[int], scores: Scores, times: NDArray[np.float64], added: Scores) -> None:
    """Give the scores of ``rows`` to them by age, each newer one a better one, if only just."""
    least = np.float32(-np.inf)
    by_age = sorted(rows, key=lambda row: (np.nan_to_num(times[row], nan=-np.inf), row))
    for row, score in zip(by_age, sorted(scores[row] for row in rows), strict=True):
        least = max(score, np.nextafter(least, np.float32(np.inf)))
        added[row] = least - scores[row]
