"""How well a message answers a question: a sum of cues, each worth a fixed weight.

The weights are round numbers on a flat plateau: each can move by half without changing what is
found by more than a point. None is fitted to a data set; each says something about conversations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
REACH = 8  # messages to each side that a conversation stays on its subject


@dataclass(frozen=True)
class Weights:
    """What each cue is worth, in units of cosine.

    Attributes:
        lexical: The best match by words; finds names of things, numbers and ids that vectors blur.
        speaker: The one person whom the question names said it: people tell about themselves.
        when: A time is asked for and the message has a word of time.
        date: The message is of a day that the question names.
        window: The best score within :data:`REACH` messages: evidence lies where the subject is
            talked about, though the message itself may say only "yes, last week".
        neighbours: Each of the two messages next to it: questions and answers stand side by side.
        fullness: Each unit of :func:`~agent_brain.memories.recall.cues.fullness`: "Wow, Ann!"
            resembles much and tells nothing.
        question: What a message loses by being a question itself.
    """

    lexical: float = 0.2
    speaker: float = 0.2
    when: float = 0.05
    date: float = 0.2
    window: float = 0.4
    neighbours: float = 0.1
    fullness: float = 0.05
    question: float = 0.05


WITH_VECTORS = Weights()
WORDS_ALONE = Weights(lexical=0.7, neighbours=0.2)  # words are then all that tells the subject


def best_around(scores: Scores, places: NDArray[np.int32], reach: int = REACH) -> Scores:
    """For each score the largest within ``reach`` places of it, itself included, in its group.

    Args:
        scores: In reading order.
        places: The group of each; equal numbers stand together.
        reach: How far to look to each side.

    Runs in about ``2 log2(reach)`` passes: the maximum of 2n places is that of two times n.
    """
    behind = _best_ahead(scores[::-1], places[::-1], reach)[::-1]
    return np.maximum(_best_ahead(scores, places, reach), behind)


def _best_ahead(scores: Scores, places: NDArray[np.int32], reach: int) -> Scores:
    best, span = scores.copy(), 1
    while span <= reach:
        step = min(span, reach + 1 - span)
        ahead = np.where(places[step:] == places[:-step], best[step:], -np.inf)
        best = np.concatenate([np.maximum(best[:-step], ahead), best[-step:]])
        span += step
    return best


def beside(scores: Scores, places: NDArray[np.int32]) -> Scores:
    """For each score the sum of the one before and the one after it in its group."""
    together = places[1:] == places[:-1]
    total = np.zeros_like(scores)
    total[1:] += scores[:-1] * together
    total[:-1] += scores[1:] * together
    return total


def best_first(scores: Scores, count: int) -> NDArray[np.intp]:
    """Where the ``count`` largest scores stand, best first, ties to the earlier; -inf is out."""
    if count < len(scores):
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        candidates = np.flatnonzero(scores >= least)
    else:
        candidates = np.arange(len(scores))
    candidates = candidates[scores[candidates] > -np.inf]
    order: NDArray[np.intp] = np.argsort(-scores[candidates], kind="stable")
    return candidates[order][:count]
