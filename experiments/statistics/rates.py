"""Intervals and tests of rates, of one agent and of two that did the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from agent_brain.errors import ExperimentError

_NORMAL = NormalDist()


class Interval(NamedTuple):
    """The lower and the upper end of a confidence interval."""

    low: float
    high: float


def normal_quantile(confidence: float) -> float:
    """Return how many standard errors a two-sided interval reaches to each side.

    Args:
        confidence: The share of intervals that shall contain the true value, such as 0.95.

    Raises:
        ExperimentError: ``confidence`` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ExperimentError(f"confidence={confidence!r} must be between 0 and 1, such as 0.95")
    return _NORMAL.inv_cdf((1 + confidence) / 2)


def wilson(passed: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Return the score interval of a rate.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22
    (1927). It holds what it claims on average over all rates, also for few tasks (L. D. Brown, T.
    T. Cai and A. DasGupta, "Interval estimation for a binomial proportion", Statistical Science
    16, 2001); for a single rate and number of tasks it covers a little more or less.

    Args:
        passed: How many passed.
        n: Of how many; both may be fractions, as effective sizes are. For 0 nothing is known, and
            the interval is all rates.
        confidence: The share of intervals that shall contain the true rate.

    Raises:
        ExperimentError: Less than 0 or more than ``n`` passed, or ``confidence`` is not between 0
            and 1.
    """
    z = normal_quantile(confidence)
    if not 0 <= passed <= n:
        raise ExperimentError(f"wilson(passed={passed!r}, n={n!r}): passed must be from 0 to n")
    if n == 0:
        return Interval(0.0, 1.0)
    rate = passed / n
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if passed == 0 else min(rate, max(0.0, middle - half))
    high = 1.0 if passed == n else max(rate, min(1.0, middle + half))
    return Interval(low, high)


def mean_of_tasks(groups: Sequence[Sequence[float]]) -> float:
    """Return the mean of the tasks' mean scores: each task counts once; 0 without tasks."""
    means = [_mean(group) for group in groups if group]
    return min(1.0, sum(means) / len(means)) if means else 0.0


def effective_size(groups: Sequence[Sequence[float]]) -> float:
    """Return how many independent cases the repeats of some tasks are worth.

    Repeats of a task resemble each other. The variance of the mean is estimated between tasks, each
    of which counts once (W. G. Cochran, "Sampling Techniques", 1977, the unweighted mean of
    clusters); the variance that as many independent cases would have, divided by it, is the
    effective size (L. Kish, "Survey Sampling", 1965). It is never below the number of tasks, nor
    above what the cases would be worth if repeats were independent: their number, or less if tasks
    were not repeated equally often.

    Args:
        groups: The scores of each task's repeats, each from 0 to 1.
    """
    groups = [group for group in groups if group]
    tasks = len(groups)
    if tasks < 2 or all(len(group) == 1 for group in groups):
        return float(tasks)
    mean = mean_of_tasks(groups)
    spread = sum((_mean(group) - mean) ** 2 for group in groups)
    if spread <= 0:
        return float(tasks)
    variance = spread / (tasks * (tasks - 1))
    most = tasks**2 / sum(Fraction(1, len(group)) for group in groups)
    return min(float(most), max(float(tasks), mean * (1 - mean) / variance))


def clustered_wilson(groups: Sequence[Sequence[float]], *, confidence: float = 0.95) -> Interval:
    """Return the interval of the mean of scores (``mean_of_tasks``), with repeats as one cluster.

    It is Wilson's interval with the effective size (``effective_size``); C. Dean and M. Pagano,
    "Evaluating confidence interval methods for binomial proportions in clustered surveys", Journal
    of Survey Statistics and Methodology 3 (2015), compare such intervals. With one case a task it
    is :func:`wilson`. Scores between 0 and 1 vary at most as passes and failures of the same mean
    do, so for them the interval is rather too wide than too narrow.

    Args:
        groups: The scores of each task's repeats: 1 and 0 for passes and failures, or anything
            between. Tasks may have different numbers of repeats.
        confidence: The share of intervals that shall contain the true mean.

    Raises:
        ExperimentError: A score is not from 0 to 1, or ``confidence`` is not between 0 and 1.
    """
    if not all(0 <= score <= 1 for group in groups for score in group):
        raise ExperimentError("the scores of an interval must be from 0 to 1")
    size = effective_size(groups)
    mean = mean_of_tasks(groups)
    return wilson(mean * size if mean < 1 else size, size, confidence=confidence)


def mcnemar_exact(gained: int, lost: int) -> float:
    """Return the two-sided p of McNemar's test: both agents pass equally often.

    Q. McNemar, "Note on the sampling error of the difference between correlated proportions or
    percentages", Psychometrika 12 (1947), with the exact binomial distribution. Tasks that both
    pass or both fail say nothing about which is better.

    Args:
        gained: Tasks that the first passed and the second did not.
        lost: Tasks that the second passed and the first did not.

    Raises:
        ExperimentError: A number is negative.
    """
    if gained < 0 or lost < 0:
        raise ExperimentError(f"mcnemar_exact({gained}, {lost}): numbers from 0")
    return sign_flip([1] * gained + [-1] * lost)


def sign_flip(differences: Sequence[int]) -> float:
    """Return the exact two-sided p of Fisher's randomisation test of paired differences.

    R. A. Fisher, "The Design of Experiments" (1935), section 21: if both agents are alike on each
    task, every difference might as well have had the other sign. The p is the share of all
    combinations of signs with a sum at least as far from 0 as the one that was seen. With one case
    a task it is :func:`mcnemar_exact`; with repeats each task counts once, by how many more repeats
    of it the first passed.

    Args:
        differences: A whole number for each task.

    Raises:
        ExperimentError: A difference is not a whole number.
    """
    if not all(float(value).is_integer() for value in differences):
        raise ExperimentError("sign_flip(): the differences must be whole numbers")
    sizes = [abs(int(value)) for value in differences if value]
    reach = sum(sizes)
    chances = np.zeros(2 * reach + 1)  # of each sum from -reach to reach
    chances[reach] = 1.0
    for size in sizes:
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2  # never leaves the ends
    seen = abs(int(sum(differences)))
    tails = chances[: reach - seen + 1].sum() + chances[reach + seen :].sum()
    return float(min(1.0, tails))


def holm(ps: Sequence[float]) -> list[float]:
    """Return each p adjusted for all of them being looked at.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6 (1979). If adjusted values below 0.05 are called findings, then in at most 5 % of
    experiments anything is found that is not there.

    Args:
        ps: The p of each comparison. The order is kept.

    Raises:
        ExperimentError: A p is not from 0 to 1.
    """
    if not all(0 <= p <= 1 for p in ps):
        raise ExperimentError("each p must be from 0 to 1")
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted


def paired_interval(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], *, confidence: float = 0.95
) -> Interval:
    """Return the interval of the difference of two rates on the same tasks, each counted once.

    R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions
    based on paired data", Statistics in Medicine 17 (1998), method 10: both rates' intervals and
    their correlation over tasks. With repeats the rates' intervals are those of
    :func:`clustered_wilson` (G. Y. Zou and A. Donner, "Construction of confidence limits about
    effect measures", Statistics in Medicine 27, 2008, show why they may be put together so).

    Args:
        first: The scores of each task's repeats, from 0 to 1. Tasks may have different numbers of
            repeats, also of one agent and the other.
        second: The same of the other agent, for the same tasks in the same order.
        confidence: The share of intervals that shall contain the true difference.

    Raises:
        ExperimentError: The two have different numbers of tasks, a task has no score, or a score
            is not from 0 to 1.
    """
    if len(first) != len(second):
        raise ExperimentError(
            f"{len(first)} tasks of one and {len(second)} of the other: give the same tasks"
        )
    if not all(map(len, [*first, *second])):
        raise ExperimentError("a task has no score: leave it out of both")
    if not first:
        return Interval(-1.0, 1.0)
    a, b = mean_of_tasks(first), mean_of_tasks(second)
    one = clustered_wilson(first, confidence=confidence)
    other = clustered_wilson(second, confidence=confidence)
    shared = _correlation([_mean(group) for group in first], [_mean(group) for group in second])
    below = _combine(a - one.low, other.high - b, shared)
    above = _combine(one.high - a, b - other.low, shared)
    return Interval(max(-1.0, a - b - below), min(1.0, a - b + above))


def mean_bootstrap(
    scores: Sequence[float],
    *,
    lowest: float = 0.0,
    highest: float = 1.0,
    confidence: float = 0.95,
    samples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Return the interval of a mean score, or of a mean difference of scores on the same tasks.

    It is the Bayesian bootstrap (D. B. Rubin, The Annals of Statistics 9, 1981): tasks get weights
    by chance, again and again. Half a task with the lowest and half a task with the highest
    possible score take part, because few tasks do not show what is rare, such as a failure. If
    each task is won or lost it is the interval of Jeffreys, which covers as it claims on average
    (L. D. Brown, T. T. Cai and A. DasGupta, "Interval estimation for a binomial proportion",
    Statistical Science 16, 2001). Where scores hardly vary it is too wide, the more so the fewer
    tasks there are; reports give none for fewer than 30.

    Args:
        scores: The mean score of each task, or the difference of two agents' mean scores.
        lowest: The lowest possible score: 0, or -1 of a difference.
        highest: The highest possible one.
        confidence: The share of intervals that shall contain the true mean.
        samples: How often to draw.
        seed: Of the drawing; the same seed gives the same interval.

    Raises:
        ExperimentError: A score is not from ``lowest`` to ``highest``.
    """
    if not all(lowest <= score <= highest for score in scores):
        raise ExperimentError(f"the scores of an interval must be from {lowest} to {highest}")
    ordered = sorted(scores)
    weights = np.random.default_rng(seed).dirichlet([*np.ones(len(ordered)), 0.5, 0.5], samples)
    tail = (1 - confidence) / 2
    means = weights @ np.array([*ordered, lowest, highest], float)
    low, high = np.quantile(means, [tail, 1 - tail])
    mean = _mean(ordered) if ordered else (lowest + highest) / 2
    return Interval(min(mean, float(low)), max(mean, float(high)))


def _mean(group: Sequence[float]) -> float:
    return sum(group) / len(group)


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Newcombe's phi: the correlation, lowered for continuity if it is positive."""
    n, a, b = len(first), _mean(first), _mean(second)
    spread = sqrt(sum((x - a) ** 2 for x in first) * sum((y - b) ** 2 for y in second)) / n
    if spread == 0:
        return 0.0
    together = sum((x - a) * (y - b) for x, y in zip(first, second, strict=True)) / n
    if together > 0:
        together = max(0.0, together - 1 / (2 * n))
    return together / spread


def _combine(one: float, other: float, shared: float) -> float:
    return sqrt(max(0.0, one * one - 2 * shared * one * other + other * other))
