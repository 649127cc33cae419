"""How well messages answer a question: a weighted sum of cues, and the fit of the best message.

The weights are round numbers that are not fitted to a data set: if one is changed by half, recall
changes by about one percent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.dates import closeness
from agent_brain.memories.recall.features import Features
from agent_brain.memories.recall.questions import Question

Scores = NDArray[np.float32]
Parts = dict[str, Scores]
LONG_ENOUGH, TOO_LONG, ENDLESS = 3.5, 4.0, 6.5  # logarithms of some 30, 55 and 660 words
REACH = 8  # messages to each side that are probably about the same subject
NEAREST = 300  # messages whose cosines are known; the others have lower ones
SPREAD = 0.1  # standard deviation of the cosines of a question to the messages of a conversation
FEW = 5  # messages that are assumed, as a few real ones are not a basis for statistics


@dataclass(frozen=True)
class Meaning:
    """How close each row is to the question.

    The range of cosines depends on the embedder: with some, any two texts have 0.7 to 0.9. So a
    cosine is standardised to a mean of 0 and a standard deviation of :data:`SPREAD`.

    Attributes:
        cosine: The standardised cosine; rows that are not among the nearest get the lowest known,
            and rows without a vector the mean, as far as is known which these are.
        alike: The cosine that two texts about one thing probably have at least: to a question, one
            message in 160 has it.
        likeness: The cosine on a scale from 0, for unrelated texts, to 1; it is comparable between
            questions. :data:`FEW` messages that are unlike the question are assumed.
    """

    cosine: Scores
    likeness: Scores
    alike: float


def meaning(cosines: Mapping[int, float], count: int) -> Meaning | None:
    """Return what the cosines say of each row; None if there are none.

    Args:
        cosines: Of all rows that have a vector, or of at least :data:`NEAREST` rows.
        count: How many rows there are.
    """
    if not cosines:
        return None
    rows, values = np.array([*cosines]), np.array([*cosines.values()])
    if len(values) < NEAREST or count == NEAREST:
        mean, rest, known = float(values.mean()), 0.0, len(values)
        # with FEW more cosines that have the usual deviation
        spread = float(((known * values.var() + FEW * SPREAD**2) / (known + FEW)) ** 0.5)
    else:
        mean, spread = _of_tail(np.sort(values)[-NEAREST:], count)
        rest = float(values.min() - mean) * SPREAD / spread
    standard = np.full(count, rest, np.float32)
    standard[rows] = (values - mean) * SPREAD / spread
    base = min(mean * count / (count + FEW), 0.99)
    likeness = np.zeros(count, np.float32)
    likeness[rows] = np.clip((values - base) / (1 - base), 0, 1)
    return Meaning(standard, likeness, mean + 2.5 * spread)


def _of_tail(highest: NDArray[np.float64], count: int) -> tuple[float, float]:
    """Return mean and standard deviation of ``count`` normal values with these highest ones.

    Of a normal distribution it is known by how much the mean of the highest values exceeds the
    lowest of them.
    """
    normal, share = NormalDist(), len(highest) / count
    least = normal.inv_cdf(1 - share)
    among = normal.pdf(least) / share
    spread = max(float(highest.mean() - highest.min()) / (among - least), SPREAD / 5)
    return float(highest.mean()) - among * spread, spread


@dataclass(frozen=True)
class Weights:
    """The weight of each cue; that of a standardised cosine is 1.

    Attributes:
        words: The best match by words: names, numbers and IDs, which vectors do not distinguish.
        speaker: Said by the person whom the question is about.
        when: Has a word of time, if the question asks for a time.
        date: Of a day that the question names.
        window: The best match within :data:`REACH` messages, as the message itself may be only
            "yes, last week".
        neighbours: The match of each of the two messages next to it.
        answers: The match of the question right before it that someone else asked.
        fullness: Each unit of the logarithm of a message's words, up to :data:`LONG_ENOUGH`: "Wow,
            Ann!" answers nothing.
        question: Subtracted from a message that only asks, and half of it from one that ends with a
            question, which are rarely answers; but what a user tells an assistant is often told
            with a request.
        sitting: The match of the whole conversation, up to a pause.
        recent: The newest conversation, if it matches best; others get less, and the oldest
            nothing. That what was used lately is needed again goes with the logarithm of
            its age: Anderson and Schooler 1991, "Reflections of the environment in memory".
        user: Each unit of the logarithm of how many times longer the messages of others are than
            those of the user: with the length of answers grows what they say in passing.
        length: Subtracted for each unit of the logarithm of a message's words from
            :data:`TOO_LONG` to :data:`ENDLESS`, as it takes the place of shorter ones.
        others: The part of it for messages of others, as only their best passage is compared: with
            1, 2/3, 1/3 and 0 of it, .17, .21, .32 and .36 of the answers that RealMem needs are
            among ten messages, and .39, .39, .38 and .37 of what the user said.
    """

    words: float = 0.2
    speaker: float = 0.2
    when: float = 0.05
    date: float = 0.2
    window: float = 0.4
    neighbours: float = 0.1
    answers: float = 0.1
    fullness: float = 0.02
    question: float = 0.1
    sitting: float = 0.4
    recent: float = 0.3
    user: float = 0.18
    length: float = 0.15
    others: float = 1 / 3


UNRELATED = 0.02  # of the weight of age, for conversations without a word of the question
ENOUGH = 2 / 3  # the share of a question's words that a message has if words show the subject
WITH_VECTORS = Weights()
# then only words show the subject, and one message has few of them, but a long answer many
WORDS_ALONE = replace(WITH_VECTORS, words=0.5, neighbours=0.2, sitting=0.5, user=0.24, others=1.0)

# that the newest is asked for, or short messages are wanted, holds for one user's own life only
AMONG_PEOPLE = {"fullness": 0.05, "sitting": 0.0, "recent": 0.0, "length": 0.0}

# The fit of a message with one cue only, where meaning is known too
FIT_OF_WORDS = 0.5  # it has all words of the question
FIT_OF_DATE = 0.5  # it is of the day that the question names
FIT_OF_SPEAKER = 0.2  # it is by the person whom the question is about


@dataclass(frozen=True)
class Evidence:
    """How a question fits every row, before the cues are weighted.

    Attributes:
        question: What is asked.
        meaning: What the vectors say; None without vectors.
        words: BM25.
        share: The share of the question's words, weighted by rarity, that the message has.
        speaker: The number of the person whom the question is about; None for nobody.
        tells_time: Whether the message has a word of time, if the question asks for one.
        sittings: How well each conversation, up to a pause, matches by words, from 0 to 1.
        terms: The numbers of the terms of the question.
        numerals: Those of them that have digits.
        goal: The row of the goal, which is not evidence for what is next to it.
        is_goal: Whether the goal is the question.
    """

    question: Question
    meaning: Meaning | None
    words: Scores
    share: Scores
    speaker: int | None
    tells_time: NDArray[np.bool_] | None
    sittings: Scores
    terms: frozenset[int]
    numerals: frozenset[int]
    goal: int | None
    is_goal: bool


def score(evidence: Evidence, features: Features) -> tuple[Scores, Parts]:
    """Return the score of each row, and what each cue added to it.

    Cues that do not apply to the question are left out, and a row without any scores -inf. The
    speaker of a message does not change the scores of those next to it.
    """
    weights = WORDS_ALONE if evidence.meaning is None else WITH_VECTORS
    if features.order().among_people:
        weights = replace(weights, **AMONG_PEOPLE)
    parts = _subject(evidence, features, weights)
    if parts:
        around = _total(parts.values())
        if evidence.goal is not None:
            around[evidence.goal] = 0
        parts |= _surroundings(around, features, weights)
    if evidence.speaker is not None:
        parts["speaker"] = (features["speaker"] == evidence.speaker) * np.float32(weights.speaker)
    if not parts:
        return np.full(len(features), -np.inf, np.float32), parts
    total = _total(parts.values())
    matched = (total != 0) | (evidence.meaning is not None)
    parts |= _circumstances(evidence, features, weights)
    return np.where(matched, _total(parts.values()), np.float32(-np.inf)), parts


def _circumstances(evidence: Evidence, features: Features, weights: Weights) -> Parts:
    """Return what speaks for messages besides that they match, and against them."""
    order, lengths, users = features.order(), features["length"], features["user"]
    asks, of_agent = features["asks"], evidence.question.of_agent
    if order.longer:
        asks = np.where(users, asks == 1, asks)
    parts = {"telling": np.minimum(lengths, LONG_ENOUGH) * np.float32(weights.fullness)}
    parts["telling"] -= asks * np.float32(weights.question)
    if not of_agent:
        excess = np.clip(lengths, TOO_LONG, ENDLESS) - np.float32(TOO_LONG)
        part = np.where(users, np.float32(1), np.float32(weights.others))
        parts["telling"] -= excess * part * np.float32(weights.length)
    if order.longer:
        parts["role"] = (users ^ of_agent) * np.float32(weights.user * order.longer)
    if weights.sitting:
        about = evidence.sittings[order.sitting] * np.float32(_sure(evidence, weights))
        parts["conversation"] = about * np.float32(weights.sitting)
        counts = np.maximum(np.sqrt(about), np.float32(UNRELATED))
        parts["recent"] = order.recency * counts * np.float32(weights.recent)
    return parts


def best_fit(evidence: Evidence, features: Features, counted: NDArray[np.bool_]) -> float:
    """Return how well the best message fits the question, on one scale for all questions.

    Scores rank the messages for one question: some message is always the first, even if none is
    about the question. The fit is from 0, without any evidence, to 1; its parts are combined like
    independent probabilities.

    Args:
        evidence: How the question fits every row.
        features: What is known of each row.
        counted: Which rows may be the best.
    """
    if evidence.meaning is None:
        missing = 1 - evidence.share
    else:
        missing = (1 - evidence.meaning.likeness) * (1 - np.float32(FIT_OF_WORDS) * evidence.share)
    if spans := evidence.question.spans:
        missing *= 1 - np.float32(FIT_OF_DATE) * closeness(features.days(), spans)
    if evidence.speaker is not None:
        missing *= 1 - np.float32(FIT_OF_SPEAKER) * (features["speaker"] == evidence.speaker)
    return float(1 - missing[counted].min(initial=1))


def _subject(evidence: Evidence, features: Features, weights: Weights) -> Parts:
    parts = {}
    if evidence.meaning is not None:
        parts["meaning"] = evidence.meaning.cosine
    best = evidence.words.max(initial=0)
    if best > 0:
        parts["words"] = evidence.words * np.float32(
            _sure(evidence, weights) * weights.words / best
        )
    if evidence.tells_time is not None:
        parts["when"] = evidence.tells_time * np.float32(weights.when)
    if evidence.question.spans:
        parts["date"] = closeness(features.days(), evidence.question.spans) * np.float32(
            weights.date
        )
    return parts


def _sure(evidence: Evidence, weights: Weights) -> float:
    """Return how much the words count beside the meaning: less if no message has many of them.

    Some message is always the best by words, even if it shares only "book" with the question.
    """
    if evidence.meaning is None or not weights.sitting:
        return 1.0
    return min(1.0, float(evidence.share.max(initial=0)) / ENOUGH)


def _surroundings(subject: Scores, features: Features, weights: Weights) -> Parts:
    rows, groups, *_ = features.order()
    scores, asks, speakers = subject[rows], features["asks"][rows], features["speaker"][rows]
    found = {
        "window": best_around(scores, groups) * np.float32(weights.window),
        "neighbours": beside(scores, groups) * np.float32(weights.neighbours),
        "answers": asked_before(scores, groups, asks, speakers) * np.float32(weights.answers),
    }
    parts = {name: np.zeros(len(subject), np.float32) for name in found}
    for name, values in found.items():
        parts[name][rows] = values
    return parts


def _total(parts: Iterable[Scores]) -> Scores:
    total: Scores = reduce(np.add, parts, np.zeros(1, np.float32))
    return total


def best_around(scores: Scores, groups: NDArray[np.int32], reach: int = REACH) -> Scores:
    """Return for each score the largest within ``reach`` places of it in its group.

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
    """Return for each score the sum of the one before and the one after it in its group."""
    together = groups[1:] == groups[:-1]
    total = np.zeros_like(scores)
    total[1:] += scores[:-1] * together
    total[:-1] += scores[1:] * together
    return total


def asked_before(
    scores: Scores,
    groups: NDArray[np.int32],
    asks: NDArray[np.float32],
    speakers: NDArray[np.int32],
) -> Scores:
    """Return for each score the one before it, if that is a question by someone else."""
    answered = (groups[1:] == groups[:-1]) & (speakers[1:] != speakers[:-1]) & (asks[:-1] > 0)
    total = np.zeros_like(scores)
    total[1:] = scores[:-1] * answered
    return total
