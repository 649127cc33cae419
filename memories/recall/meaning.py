"""What the cosines of the messages nearest to a question tell about all messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
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

    cosine: Floats
    likeness: Floats
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
        mean, spread, rest = float(values.mean()), _spread(values), 0.0
    else:
        mean, spread = _of_tail(np.sort(values)[-NEAREST:], count)
        rest = float(values.min() - mean) * SPREAD / spread
    standard = np.full(count, rest, np.float32)
    standard[rows] = (values - mean) * SPREAD / spread
    base = min(mean * count / (count + FEW), 0.99)
    likeness = np.zeros(count, np.float32)
    likeness[rows] = np.clip((values - base) / (1 - base), 0, 1)
    return Meaning(standard, likeness, mean + 2.5 * spread)


def _spread(values: NDArray[np.float64]) -> float:
    """Return the standard deviation, with :data:`FEW` more cosines that have the usual one."""
    count = len(values)
    return float(((count * values.var() + FEW * SPREAD**2) / (count + FEW)) ** 0.5)


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
