"""Intervals of a rate, also when tasks are repeated."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

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
    means = [sum(group) / len(group) for group in groups if group]
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
    spread = sum((sum(group) / len(group) - mean) ** 2 for group in groups)
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
