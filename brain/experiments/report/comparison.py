"""Two cells on the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import TypeAlias

from agent_brain.experiments.case import CaseResult, Cell
from agent_brain.experiments.report.words import many, show_p
from agent_brain.experiments.statistics.interval import Interval
from agent_brain.experiments.statistics.multiple import holm
from agent_brain.experiments.statistics.paired import (
    mcnemar_exact,
    paired_bootstrap,
    paired_interval,
    sign_flip,
)
from agent_brain.experiments.statistics.power import tasks_needed, tasks_needed_by_formula

ALPHA = 0.05
Groups: TypeAlias = Mapping[str, Sequence[CaseResult]]  # the cases of a cell, by task


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Which of two cells passed more of the tasks that both did, and what can be concluded.

    Attributes:
        a: The first cell.
        b: The second cell, which the first is compared with.
        names: Their names in the report.
        tasks: How many tasks both did.
        passed: How many cases of these tasks each of both passed.
        cases: How many cases of these tasks each of both did.
        gained: Tasks that ``a`` passed more often than ``b``.
        lost: Tasks that ``a`` passed less often than ``b``.
        difference: The rate of ``a`` minus that of ``b``, each task counted once.
        low: Lower end of the 95 % interval of the difference.
        high: Upper end of it.
        score_difference: The interval of the difference of mean scores, if there are scores other
            than 0 and 1; else None.
        p: How likely a difference as large or larger is if both are alike: McNemar's exact test,
            or with repeats the randomisation test of the tasks' differences.
        p_adjusted: The same after Holm, over all comparisons of the report.
        family: The number of these comparisons.
        square: The mean square of the tasks' differences.
    """

    a: Cell
    b: Cell
    names: tuple[str, str]
    tasks: int
    passed: tuple[int, int]
    cases: tuple[int, int]
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    difference: float
    low: float
    high: float
    score_difference: Interval | None
    p: float
    p_adjusted: float
    family: int
    square: float

    @property
    def significant(self) -> bool:
        """Whether a difference was found: ``p_adjusted`` is below 0.05."""
        return self.p_adjusted < ALPHA

    @property
    def repeated(self) -> bool:
        """Whether tasks were done several times."""
        return self.cases != (self.tasks, self.tasks)

    @property
    def _counts_mislead(self) -> bool:
        """Whether the counts show another difference, as tasks were not repeated equally often."""
        rates = [k / n if n else 0.0 for k, n in zip(self.passed, self.cases, strict=True)]
        return abs(rates[0] - rates[1] - self.difference) > 1e-9

    @property
    def tasks_needed(self) -> int | None:
        """How many tasks find a difference as large as this one, in 8 of 10 experiments.

        With as many comparisons as this report has. None if there is no difference.
        """
        if not self.difference:
            return None
        alpha = ALPHA / max(1, self.family)
        if self.repeated:
            return tasks_needed_by_formula(self.difference, self.square, alpha=alpha)
        gained, lost = len(self.gained) / self.tasks, len(self.lost) / self.tasks
        return tasks_needed(gained, lost, alpha=alpha)

    @property
    def sentence(self) -> str:
        """What can be concluded, in words."""
        if self.score_difference is None:
            return self._of_passes()
        low, high = self.score_difference
        between = _points(low, high)
        return f"{self._of_passes()} Mean scores differ by {between} points (95 % interval)."

    def _of_passes(self) -> str:
        a, b = self.names
        if not self.tasks:
            return f"{a} and {b} did no task in common: nothing to compare."
        counts = [f"{k} of {n}" for k, n in zip(self.passed, self.cases, strict=True)]
        same = f"{many(self.tasks, 'task')}, repeated" if self.repeated else "tasks"
        if self._counts_mislead:
            same += " unequally often and counted once each"
        begin = f"{a} passed {counts[0]}, {b} {counts[1]} on the same {same}"
        chance = f"p {show_p(self.p)}"
        if self.family > 1:
            chance += f"; {show_p(self.p_adjusted)} after Holm".replace("; = ", "; ")
        if self.significant:
            better, low, high = a, self.low, self.high
            if self.difference < 0:
                better, low, high = b, -high, -low
            points = f"{abs(self.difference) * 100:.0f} points more often"
            between = f"95 % interval {_points(low, high)}"
            return f"{begin}: {better} passes {points} ({between}; {chance})."
        if not self.difference:
            between = _points(self.low, self.high)
            return f"{begin}: no difference was seen (95 % interval {between} points)."
        needed = self.tasks_needed
        more = needed is not None and needed > self.tasks
        end = f" A difference of this size needs about {needed:,} tasks." if more else ""
        return f"{begin}: no conclusion ({chance}).{end}"


def _points(low: float, high: float) -> str:
    return f"{round(low * 100):+d} to {round(high * 100):+d}"


def compare(
    cells: tuple[Cell, Cell],
    names: tuple[str, str],
    first: Groups,
    second: Groups,
    *,
    seed: int = 0,
) -> Comparison:
    """Compare two cells on the tasks that both did. ``p_adjusted`` is that of a single one."""
    tasks = [task for task in first if task in second]
    a, b = [first[task] for task in tasks], [second[task] for task in tasks]
    passes = [[[float(case.passed) for case in group] for group in side] for side in (a, b)]
    differences = [
        sum(x) / len(x) - sum(y) / len(y) for x, y in zip(passes[0], passes[1], strict=True)
    ]
    counts = [sum(map(len, side)) for side in passes]
    passed = [int(sum(map(sum, side))) for side in passes]
    interval = paired_interval(passes[0], passes[1])
    p = _p(passes[0], passes[1])
    return Comparison(
        a=cells[0],
        b=cells[1],
        names=names,
        tasks=len(tasks),
        passed=(passed[0], passed[1]),
        cases=(counts[0], counts[1]),
        gained=tuple(task for task, d in zip(tasks, differences, strict=True) if d > 0),
        lost=tuple(task for task, d in zip(tasks, differences, strict=True) if d < 0),
        difference=sum(differences) / max(1, len(tasks)),
        low=interval.low,
        high=interval.high,
        score_difference=_scores(a, b, seed),
        p=p,
        p_adjusted=p,
        family=1,
        square=sum(d * d for d in differences) / max(1, len(tasks)),
    )


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with their p adjusted for all of those that share tasks."""
    ps = iter(holm([one.p for one in comparisons if one.tasks]))
    family = sum(bool(one.tasks) for one in comparisons)
    return [
        replace(one, p_adjusted=next(ps), family=family) if one.tasks else one
        for one in comparisons
    ]


def _p(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> float:
    if all(len(group) == 1 for side in (first, second) for group in side):
        pairs = [(x[0], y[0]) for x, y in zip(first, second, strict=True)]
        return mcnemar_exact(pairs.count((1.0, 0.0)), pairs.count((0.0, 1.0)))
    scale = lcm(*(len(group) for side in (first, second) for group in side))
    return sign_flip(
        [
            round(sum(x) * (scale // len(x)) - sum(y) * (scale // len(y)))
            for x, y in zip(first, second, strict=True)
        ]
    )


def _scores(
    first: Sequence[Sequence[CaseResult]], second: Sequence[Sequence[CaseResult]], seed: int
) -> Interval | None:
    scores = [case.score for side in (first, second) for group in side for case in group]
    if all(score in {0, 1} for score in scores):
        return None
    means = [
        [sum(case.score for case in group) / len(group) for group in side]
        for side in (first, second)
    ]
    return paired_bootstrap(means[0], means[1], seed=seed)
