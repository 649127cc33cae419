"""A confidence interval, and the quantiles that intervals are made with."""

from __future__ import annotations

from functools import lru_cache
from math import cos, inf, pi, sin, sqrt, tan
from statistics import NormalDist
from typing import NamedTuple

from agent_brain.errors import ExperimentError

_NORMAL = NormalDist()
_MANY = 2_000  # degrees of freedom from which Student's t is the normal distribution


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


@lru_cache(maxsize=1_000)
def student_quantile(confidence: float, freedom: int) -> float:
    """Return what :func:`normal_quantile` is when the variance is estimated from few values.

    The distribution function is the finite series of Abramowitz and Stegun, Handbook of
    Mathematical Functions (1964), 26.7.3 and 26.7.4; its inverse is found by halving.

    Args:
        confidence: The share of intervals that shall contain the true value.
        freedom: Degrees of freedom: one less than the number of values. With 0 the quantile is
            infinite.

    Raises:
        ExperimentError: ``confidence`` is not between 0 and 1.
    """
    if freedom < 1:
        return inf
    if freedom > _MANY:
        return normal_quantile(confidence)
    normal_quantile(confidence)  # refuses what is not between 0 and 1
    low, high = 0.0, pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if _student_within(middle, freedom) < confidence else (low, middle)
        )
    return sqrt(freedom) * tan(low)


def _student_within(angle: float, freedom: int) -> float:
    """Return the probability of a t between ±sqrt(freedom) tan(angle)."""
    square = cos(angle) ** 2
    if freedom % 2:
        term, total = cos(angle), 0.0
        for k in range(1, freedom - 1, 2):
            total += term
            term *= square * (k + 1) / (k + 2)
        return 2 / pi * (angle + sin(angle) * total)
    term, total = 1.0, 0.0
    for k in range(1, freedom, 2):
        total += term
        term *= square * k / (k + 1)
    return sin(angle) * total
