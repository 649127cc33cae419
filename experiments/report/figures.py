"""The figures of a cell: rates with their intervals, means and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent_brain.experiments.case import CaseResult, Outcome
from agent_brain.experiments.cells import Cell
from agent_brain.experiments.statistics.paired import mean_bootstrap
from agent_brain.experiments.statistics.rates import clustered_wilson, mean_of_tasks

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
