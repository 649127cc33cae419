"""Many comparisons at once."""

from __future__ import annotations

from collections.abc import Sequence

from agent_brain.errors import ExperimentError


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
