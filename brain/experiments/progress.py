"""How far an experiment is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from agent_brain.experiments.case import CaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an experiment is, after each case.

    Attributes:
        cases_done: Cases that have a result, also from earlier runs.
        cases: All cases that were chosen.
        cells_done: Cells of which all these cases have a result.
        cells: All cells that were chosen.
        passed: Cases that passed.
        cost: US dollars of all that is done, with judges; without calls of unknown price.
        seconds: Seconds since the experiment was started this time.
        seconds_left: Seconds that are left, from how long it took until now; None if unknown.
        last: The case that ended last; None at the start.
    """

    cases_done: int
    cases: int
    cells_done: int
    cells: int
    passed: int
    cost: float
    seconds: float
    seconds_left: float | None
    last: CaseResult | None


OnProgress: TypeAlias = Callable[[Progress], Awaitable[None] | None]
