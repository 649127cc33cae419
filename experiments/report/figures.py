"""The figures of a cell, and of two cells on the same tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import TypeAlias

import numpy as np

from agent_brain.common.text import count_of
from agent_brain.experiments.case import CaseResult, Cell, Outcome
from agent_brain.experiments.statistics.power import tasks_needed, tasks_needed_by_formula
from agent_brain.experiments.statistics.rates import (
    clustered_wilson,
    holm,
    mean_bootstrap,
    mean_of_tasks,
    paired_interval,
    sign_flip,
)

FEW_TASKS = 30  # fewer show only large differences, and not how much scores vary


@dataclass(frozen=True, slots=True)
class Rate:
    """How many cases passed, and the rate with its 95 % interval.

    ``float(rate)`` is the rate, ``str(rate)`` is such as ``"18/20"``. Each task counts once: if
    tasks were not repeated equally often, the rate is the mean of the tasks' rates and not ``k`` of
    ``n``.

    Attributes:
        k: Cases that passed.
        n: All cases.
        low: Lower end of the interval.
        high: Upper end of the interval.
        rate: The rate, from 0 to 1; 0 without cases.
    """

    k: int
    n: int
    low: float
    high: float
    rate: float

    def __float__(self) -> float:
        return self.rate

    def __str__(self) -> str:
        return f"{self.k}/{self.n}"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean score or a difference of mean scores, each task counted once, with its 95 % interval.

    Attributes:
        mean: The mean; 0 without cases.
        low: Lower end of the interval; None if there is none.
        high: Upper end of the interval; None if there is none.
        no_interval: Why there is no interval: fewer than 30 tasks do not show what is rare, and
            tasks that are all the same do not show how much they vary. Else None.
    """

    mean: float
    low: float | None
    high: float | None
    no_interval: str | None = None

    def __float__(self) -> float:
        return self.mean


@dataclass(frozen=True, kw_only=True)
class CellReport:
    """What an experiment found of a cell.

    Attributes:
        cell: The net, the memory and the model.
        cases: Its cases, in the order of tasks and repeats.
        passed: How many cases passed. All other outcomes count as failed.
        outcomes: How many cases ended how.
        score: The mean score.
        judged: How many cases a model judged.
        gained: Tasks that it passed more often than the base did.
        lost: Tasks that it passed less often than the base did.
        steps: Steps of a case, the mean.
        model_calls: Model calls of a case, the mean.
        tool_calls: Tool calls of a case, the mean.
        tokens: Tokens of a case, read and written, the mean.
        cost: US dollars of all its cases, without judges; None if the price of a call is unknown.
        cost_per_pass: ``cost`` for each case that passed; None if none did, or if ``cost`` is None.
        median_seconds: Seconds of a case without waiting for rate limits, the median.
        p95_seconds: The 95th percentile of the same.
    """

    cell: Cell
    cases: tuple[CaseResult, ...]
    passed: Rate
    outcomes: Counter[Outcome]
    score: Mean
    judged: int
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    steps: float
    model_calls: float
    tool_calls: float
    tokens: float
    cost: float | None
    cost_per_pass: float | None
    median_seconds: float
    p95_seconds: float


def passed_rate(cases: Sequence[CaseResult]) -> Rate:
    """Return the rate of cases that passed; the repeats of a task are one cluster."""
    passes = [[float(case.passed) for case in group] for group in tasks_of(cases)]
    counts = sum(case.passed for case in cases), len(cases)
    return Rate(*counts, *clustered_wilson(passes), mean_of_tasks(passes))


def mean_score(cases: Sequence[CaseResult]) -> Mean:
    """Return the mean score; of scores that are 0 and 1 only it is a rate."""
    scores = [[case.score for case in group] for group in tasks_of(cases)]
    if all(score in {0, 1} for group in scores for score in group):
        return Mean(mean_of_tasks(scores), *clustered_wilson(scores))
    return mean_with_interval([sum(group) / len(group) for group in scores])


def mean_with_interval(tasks: Sequence[float], *, lowest: float = 0.0) -> Mean:
    """Return the mean of the tasks' scores, or of their differences.

    Args:
        tasks: One for each task, at least one.
        lowest: The lowest possible score: 0, or -1 of a difference.
    """
    mean = sum(tasks) / len(tasks)
    if len(tasks) < FEW_TASKS:
        return Mean(mean, None, None, f"fewer than {FEW_TASKS} tasks")
    if max(tasks) - min(tasks) < 1e-9:
        return Mean(mean, None, None, "the same for all tasks")
    return Mean(mean, *mean_bootstrap(tasks, lowest=lowest))


def tasks_of(cases: Sequence[CaseResult]) -> list[list[CaseResult]]:
    """Return the cases of each task."""
    groups: dict[str, list[CaseResult]] = {}
    for case in cases:
        groups.setdefault(case.task, []).append(case)
    return list(groups.values())


def report_cell(
    cell: Cell, cases: Sequence[CaseResult], gained: Sequence[str], lost: Sequence[str]
) -> CellReport:
    """Return the figures of a cell."""
    n = len(cases) or 1
    costs = [case.cost for case in cases if case.cost is not None]
    cost = sum(costs) if len(costs) == len(cases) else None
    passed = passed_rate(cases)
    median, p95 = np.quantile([case.seconds for case in cases] or [0.0], [0.5, 0.95]).tolist()
    return CellReport(
        cell=cell,
        cases=tuple(cases),
        passed=passed,
        outcomes=Counter(case.outcome for case in cases),
        score=mean_score(cases),
        judged=sum(case.judged for case in cases),
        gained=tuple(gained),
        lost=tuple(lost),
        steps=sum(case.steps for case in cases) / n,
        model_calls=sum(case.model_calls for case in cases) / n,
        tool_calls=sum(case.tool_calls for case in cases) / n,
        tokens=sum(case.input_tokens + case.output_tokens for case in cases) / n,
        cost=cost,
        cost_per_pass=None if cost is None or not passed.k else cost / passed.k,
        median_seconds=median,
        p95_seconds=p95,
    )


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


def show_p(p: float) -> str:
    """Return a p with two or three digits, after its sign."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.2 else f"= {p:.2f}"


def _interval(low: float | None, high: float | None, why: str | None) -> str:
    if low is None or high is None:
        return f"no interval: {why}"
    return f"95 % interval {round(low * 100):+d} to {round(high * 100):+d}"


def compare(
    cells: tuple[Cell, Cell], names: tuple[str, str], first: Groups, second: Groups
) -> Comparison:
    """Compare two cells on the tasks that both did. ``p_adjusted`` is that of a single one."""
    tasks = [task for task in first if task in second]
    a, b = [first[task] for task in tasks], [second[task] for task in tasks]
    passes = [[[int(case.passed) for case in group] for group in side] for side in (a, b)]
    rates = [[Fraction(sum(group), len(group)) for group in side] for side in passes]
    differences = [x - y for x, y in zip(*rates, strict=True)]
    scale = lcm(*(d.denominator for d in differences))
    p = sign_flip([int(d * scale) for d in differences])
    counts = [sum(map(len, side)) for side in passes]
    passed = [sum(map(sum, side)) for side in passes]
    low, high = paired_interval(passes[0], passes[1]) if len(tasks) >= FEWEST else (None, None)
    return Comparison(
        a=cells[0],
        b=cells[1],
        names=names,
        tasks=len(tasks),
        passed=(passed[0], passed[1]),
        cases=(counts[0], counts[1]),
        gained=tuple(task for task, d in zip(tasks, differences, strict=True) if d > 0),
        lost=tuple(task for task, d in zip(tasks, differences, strict=True) if d < 0),
        difference=float(sum(differences) / max(1, len(tasks))),
        low=low,
        high=high,
        score_difference=_scores(a, b),
        p=p,
        p_adjusted=p,
        family=1,
        square=float(sum(d * d for d in differences) / max(1, len(tasks))),
    )


def adjust(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with their p adjusted for all of those that share tasks."""
    ps = iter(holm([one.p for one in comparisons if one.tasks]))
    family = sum(bool(one.tasks) for one in comparisons)
    return [
        replace(one, p_adjusted=next(ps), family=family) if one.tasks else one
        for one in comparisons
    ]


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
