"""How well messages answer a question: a sum of cues, each worth a fixed weight.

The weights are round numbers on a flat plateau: each can move by half and what is found changes by
about a point. None is fitted to a data set; each says something about conversations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
REACH = 8  # messages to each side for which a conversation stays on its subject


@dataclass(frozen=True)
class Weights:
    """What each cue is worth, in cosines of usual spread.

    Attributes:
        words: The best match by words; finds names of things, numbers, ids, which vectors blur.
        speaker: Said by the person whom the question is about: people tell about themselves.
        when: Has a word of time, where a time is asked for.
        date: Of a day that the question names.
        window: The best match within :data:`REACH` messages: evidence lies where the subject is
            talked about, though the message itself may say only "yes, last week".
        neighbours: The match of each of the two messages next to it.
        answers: The match of the question right before it that someone else asked.
        fullness: Each unit of a message's fullness: "Wow, Ann!" resembles much and tells nothing.
        question: Lost by being a question: what asks rarely answers.
    """

    words: float = 0.2
    speaker: float = 0.2
    when: float = 0.05
    date: float = 0.2
    window: float = 0.4
    neighbours: float = 0.1
    answers: float = 0.1
    fullness: float = 0.05
    question: float = 0.05


WITH_VECTORS = Weights()
# words are then all that tells the subject, and one message has few of them
WORDS_ALONE = replace(WITH_VECTORS, words=0.5, neighbours=0.2)


def best_around(scores: Scores, groups: NDArray[np.int32], reach: int = REACH) -> Scores:
    """For each score the largest within ``reach`` places of it, itself included, in its group.

    Equal ``groups`` are adjacent. Takes about ``4 log2(reach)`` passes: the largest of the next 2n
    is the larger of the largest of the next n, here and n places on.
    """
    behind = _best_ahead(scores[::-1], groups[::-1], reach)[::-1]
    return np.maximum(_best_ahead(scores, groups, reach), behind)


def _best_ahead(scores: Scores, groups: NDArray[np.int32], reach: int) -> Scores:
    best, covered = scores.copy(), 1
    while covered <= min(reach, len(scores) - 1):
        step = min(covered, reach + 1 - covered)
        ahead = np.where(groups[step:] == groups[:-step], best[step:], np.float32(-np.inf))
        np.maximum(best[:-step], ahead, out=best[:-step])
        covered += step
    return best


def beside(scores: Scores, groups: NDArray[np.int32]) -> Scores:
    """For each score the sum of the one before and the one after it in its group."""
    together = groups[1:] == groups[:-1]
    total = np.zeros_like(scores)
    total[1:] += scores[:-1] * together
    total[:-1] += scores[1:] * together
    return total


def asked_before(
    scores: Scores, groups: NDArray[np.int32], ask: Scores, speakers: NDArray[np.int32]
) -> Scores:
    """For each score the one before it, if that is a question by someone else in its group."""
    answered = (groups[1:] == groups[:-1]) & (speakers[1:] != speakers[:-1]) & (ask[:-1] > 0)
    total = np.zeros_like(scores)
    total[1:] = scores[:-1] * answered
    return total
