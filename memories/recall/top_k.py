"""The best of what is looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


def best_first(scores: Scores, count: int) -> list[int]:
    """Where the ``count`` largest scores stand, best first, ties to the later; -inf is out."""
    candidates = np.arange(len(scores))
    if 0 < count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        candidates = np.flatnonzero(scores >= least)
    candidates = candidates[scores[candidates] > -np.inf][::-1]
    order = np.argsort(-scores[candidates], kind="stable")
    best: list[int] = candidates[order][:count].tolist()
    return best


def best_accepted(scores: Scores, count: int, accept: Callable[[int], bool]) -> list[int]:
    """:func:`best_first` of those that ``accept`` says yes to; it is asked no more than needed."""
    accepted: list[int] = []
    for place in _all_best_first(scores, 4 * count):
        if accept(place):
            accepted.append(place)
        if len(accepted) == count:
            break
    return accepted


def _all_best_first(scores: Scores, first: int) -> Iterator[int]:
    """Every place, best first, sorted in growing pieces."""
    done, count = 0, first
    while done < len(scores):
        places = best_first(scores, count)
        yield from places[done:]
        if len(places) < count:
            return
        done, count = count, 8 * count
