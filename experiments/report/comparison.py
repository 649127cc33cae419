"""Two cells on the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import TypeAlias

from agent_brain.common.text import count_of
from agent_brain.experiments.case import CaseResult
from agent_brain.experiments.cells import Cell
from agent_brain.experiments.report.figures import Mean, mean_with_interval
from agent_brain.experiments.report.words import show_p
from agent_brain.experiments.statistics.paired import holm, paired_interval, sign_flip
from agent_brain.experiments.statistics.power import tasks_needed, tasks_needed_by_formula

ALPHA = 0.05
FEWEST = 10  # tasks, for an interval of the difference
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
        low: Lower end of the 95 % interval of the difference; None for fewer than 10 tasks, whose
            intervals would be too wide.
        high: Upper end of it; None as well.
        score_difference: The difference of mean scores, if there are scores other than 0 and 1;
            else None.
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
    low: float | None
    high: float | None
    score_difference: Mean | None
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
        scores = self.score_difference
        if scores is None:
            return self._of_passes()
        between = _interval(scores.low, scores.high, scores.no_interval)
        differ = f"Mean scores differ by {round(scores.mean * 100):+d} points ({between})."
        return f"{self._of_passes()} {differ}"

    def _of_passes(self) -> str:
        a, b = self.names
        if not self.tasks:
            return f"{a} and {b} did no task in common: nothing to compare."
        counts = [f"{k} of {n}" for k, n in zip(self.passed, self.cases, strict=True)]
        same = f"{count_of(self.tasks, 'task')}, repeated" if self.repeated else "tasks"
        if self._counts_mislead:
            same += " unequally often and counted once each"
        begin = f"{a} passed {counts[0]}, {b} {counts[1]} on the same {same}"
        chance = f"p {show_p(self.p)}"
        if self.family > 1:
            chance += f"; {show_p(self.p_adjusted)} after Holm".replace("; = ", "; ")
        if self.significant:
            points = f"{abs(self.difference) * 100:.0f} points more often"
            better = a if self.difference > 0 else b
            return f"{begin}: {better} passes {points} ({self._between}; {chance})."
        if not self.difference:
            points = "" if self.low is None else " points"
            return f"{begin}: no difference was seen ({self._between}{points})."
        needed = self.tasks_needed
        more = needed is not None and needed > self.tasks
        end = f" A difference of this size needs about {needed:,} tasks." if more else ""
        why = "" if self.low is not None else f"{self._between}; "
        return f"{begin}: no conclusion ({why}{chance}).{end}"

    @property
    def _between(self) -> str:
        """The interval, as seen from the cell that is better."""
        low, high = self.low, self.high
        if low is not None and high is not None and self.difference < 0:
            low, high = -high, -low
        return _interval(low, high, f"fewer than {FEWEST} tasks")


def _interval(low: float | None, high: float | None, why: str | None) -> str:
    if low is None or high is None:
        return f"no interval: {why}"
    return f"95 % interval {round(low * 100):+d} to {round(high * 100):+d}"


def compare(
    cells: tuple[Cell, Cell],
    names: tuple[str, str],
    first: Groups,
    second: Groups,
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
    low, high = paired_interval(passes[0], passes[1]) if len(tasks) >= FEWEST else (None, None)
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
        low=low,
        high=high,
        score_difference=_scores(a, b),
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
    scale = lcm(*(len(group) for side in (first, second) for group in side))
    return sign_flip(
        [
            round(sum(x) * (scale // len(x)) - sum(y) * (scale // len(y)))
            for x, y in zip(first, second, strict=True)
        ]
    )


def _scores(
    first: Sequence[Sequence[CaseResult]], second: Sequence[Sequence[CaseResult]]
) -> Mean | None:
    scores = [case.score for side in (first, second) for group in side for case in group]
    if all(score in {0, 1} for score in scores):
        return None
    means = [
        [sum(case.score for case in group) / len(group) for group in side]
        for side in (first, second)
    ]
    return mean_with_interval([x - y for x, y in zip(*means, strict=True)], lowest=-1.0)
