"""How many tasks a difference needs to be found."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log2, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from agent_brain.errors import ExperimentError
from agent_brain.experiments.statistics.rates import normal_quantile

if TYPE_CHECKING:
    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

_EXACT = 300  # more tasks than this are computed by the formula alone


def mcnemar_power(tasks: int, gained: float, lost: float, *, alpha: float = 0.05) -> float:
    """Return the probability that McNemar's exact test finds a difference.

    All possible outcomes are summed, as in S. W. Duffy, "Asymptotic and exact power for the McNemar
    test and its analogue with R controls per case", Biometrics 40 (1984).

    Args:
        tasks: The number of tasks, once each.
        gained: The share of tasks that the first passes and the second does not.
        lost: The share of tasks that the second passes and the first does not.
        alpha: The p up to which a difference counts as found.

    Raises:
        ExperimentError: A share is negative, both are more than 1 together, or ``alpha`` is not
            between 0 and 1.
    """
    _require_shares(gained, lost, alpha)
    if gained + lost == 0:
        return 0.0
    found = _found(tasks, gained / (gained + lost), alpha)
    return float(_binomial(tasks, gained + lost) @ found)


@lru_cache(maxsize=4_096)
def tasks_needed(
    gained: float, lost: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Return how many tasks are needed to find a difference with that power.

    The formula is that of R. J. Connor, "Sample size for testing differences in proportions for the
    paired-sample design", Biometrics 43 (1987). Where it asks for up to 300 tasks, the exact power
    (:func:`mcnemar_power`) decides.

    Args:
        gained: The share of tasks that the first passes and the second does not.
        lost: The share of tasks that the second passes and the first does not.
        alpha: The p up to which a difference counts as found; divided by the number of
            comparisons, if there are several.
        power: The probability to find it.

    Returns:
        The number of tasks; None if the shares are equal, as no number of tasks finds nothing.

    Raises:
        ExperimentError: A share is negative, both are more than 1 together, or ``alpha`` or
            ``power`` is not between 0 and 1.
    """
    _require_shares(gained, lost, alpha)
    about = tasks_needed_by_formula(gained - lost, gained + lost, alpha=alpha, power=power)
    if about is None:
        return None
    if about > _EXACT:
        return ceil(about + 1 / abs(gained - lost))  # exact tests need so many more
    found = _found(2 * about + 60, gained / (gained + lost), alpha)
    low, high = 0, 2 * about + 60
    while high - low > 1:
        middle = (low + high) // 2
        enough = _binomial(middle, gained + lost) @ found[: middle + 1] >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def tasks_needed_by_formula(
    mean: float, square: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Return how many tasks a mean difference needs, from the differences of a sample.

    Connor's formula, written for any paired differences: for passes and failures the mean square
    is the share of tasks that only one of both passed. With repeats the differences are those of
    the tasks' rates.

    Args:
        mean: The mean difference of a task.
        square: The mean of the squared differences.
        alpha: The p up to which a difference counts as found.
        power: The probability to find it.

    Returns:
        The number of tasks; None if the mean is 0.

    Raises:
        ExperimentError: ``alpha`` or ``power`` is not between 0 and 1.
    """
    if not 0 < power < 1:
        raise ExperimentError(f"power={power!r} must be between 0 and 1, such as 0.8")
    if mean == 0:
        return None
    wrong, missed = normal_quantile(1 - alpha), NormalDist().inv_cdf(power)
    spread = sqrt(max(0.0, square - mean * mean))
    fewest = ceil(1 - log2(alpha))  # if all of them differ the same way, p is 2 / 2**tasks
    return max(fewest, ceil(((wrong * sqrt(square) + missed * spread) / mean) ** 2))


def _require_shares(gained: float, lost: float, alpha: float) -> None:
    if not (gained >= 0 and lost >= 0 and gained + lost <= 1 + 1e-9):
        raise ExperimentError(f"gained={gained!r}, lost={lost!r} must be shares of all tasks")
    if not 0 < alpha < 1:
        raise ExperimentError(f"alpha={alpha!r} must be between 0 and 1, such as 0.05")


def _found(most: int, share: float, alpha: float) -> Floats:
    """Return for 0 to ``most`` discordant tasks how likely the test finds a difference."""
    found = np.zeros(most + 1)
    for discordant in range(most + 1):
        tails = 2 * np.cumsum(_binomial(discordant, 0.5))
        reach = int(np.searchsorted(tails, alpha, side="right"))  # so few of one kind are found
        if reach and 2 * reach <= discordant:
            chances = _binomial(discordant, share)
            found[discordant] = chances[:reach].sum() + chances[-reach:].sum()
    return found


def _binomial(n: int, p: float) -> Floats:
    """Return the probabilities of 0 to ``n``."""
    if p <= 0 or p >= 1:
        certain = np.zeros(n + 1)
        certain[0 if p <= 0 else n] = 1.0
        return certain
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    k = np.arange(n + 1)
    chances: Floats = np.exp(
        logs[n] - logs[k] - logs[n - k] + k * np.log(p) + (n - k) * np.log1p(-p)
    )
    return chances
