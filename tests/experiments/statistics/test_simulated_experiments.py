"""In many simulated experiments the report claims no more than it may.

``python -m benchmarks.statistics`` does the same with more experiments and sizes.
"""

from __future__ import annotations

from math import comb, isnan

import pytest

from agent_brain.experiments.statistics import tasks_needed, wilson
from benchmarks.statistics import PLANTED, TIES, Agents, scores_held, shares, simulate
from tests.support.thorough import thorough

EXPERIMENTS = 200


@pytest.mark.parametrize("tasks, repeat", [(20, 3), *thorough([(40, 1)])])
def test_a_planted_tie_is_not_found(tasks: int, repeat: int) -> None:
    seen = simulate(Agents(rates=TIES, tasks=tasks, repeat=repeat), EXPERIMENTS, seed=5)

    assert seen.false <= 0.05


@pytest.mark.parametrize("tasks, repeat", [(5, 1), (20, 3), *thorough([(10, 2), (20, 1)])])
def test_95_percent_of_the_intervals_hold_the_true_rates(tasks: int, repeat: int) -> None:
    seen = simulate(Agents(tasks=tasks, repeat=repeat), EXPERIMENTS, seed=6)

    assert 0.94 <= seen.rates <= 0.98  # 1,000 intervals: one standard error is 0.007
    assert 0.94 <= seen.differences <= 0.98 if tasks >= 10 else isnan(seen.differences)
    assert seen.wrong_way <= 0.025


@pytest.mark.parametrize("tasks, repeat", [(6, 3), *thorough([(10, 2), (20, 3)])])
def test_the_intervals_of_experiments_that_were_stopped_hold_the_true_rates(
    tasks: int, repeat: int
) -> None:
    agents = Agents(tasks=tasks, repeat=repeat, stopped=0.5)
    seen = simulate(agents, EXPERIMENTS, seed=9)
    tied = simulate(Agents(rates=TIES, tasks=tasks, repeat=repeat, stopped=0.5), 100, seed=9)

    assert 0.93 <= seen.rates <= 0.98
    assert 0.94 <= seen.differences <= 0.98 if tasks >= 10 else isnan(seen.differences)
    assert tied.false <= 0.05


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(
    "tasks, failures",
    [(30, (0.05, 0.0)), (60, (0.05, 0.0)), (30, (0.05, 0.15)), (30, (0.3, 0.1))],
)
def test_the_intervals_of_mean_scores_hold_rare_failures(
    tasks: int, failures: tuple[float, float], equal: bool
) -> None:
    assert scores_held(tasks, failures, equal, 100, seed=10) >= 0.92


@pytest.mark.parametrize("n", [5, 10, 20, 40, 100])
def test_wilson_holds_95_percent_on_average_and_never_much_less(n: int) -> None:
    """Exactly, from the chances of all outcomes, for rates from 0.05 to 0.95."""
    grid = [rate / 1_000 for rate in range(50, 951, 5)]
    held = [0.0] * len(grid)
    for k in range(n + 1):
        low, high = wilson(k, n)
        for place, rate in enumerate(grid):
            if low <= rate <= high:
                held[place] += comb(n, k) * rate**k * (1 - rate) ** (n - k)

    assert sum(held) / len(held) >= 0.95
    assert min(held) >= 0.87


def test_a_planted_difference_is_found_and_nothing_else() -> None:
    seen = simulate(Agents(rates=PLANTED, tasks=50), 150, seed=7)

    assert seen.found >= 0.8
    assert seen.false <= 0.05
    assert seen.wrong_way == 0


def test_so_many_tasks_as_a_report_asks_for_find_the_difference_in_8_of_10_experiments() -> None:
    first, second = 0.9, 0.65
    needed = tasks_needed(*shares(first, second))

    assert needed is not None
    enough = simulate(Agents(rates=(second, first), tasks=needed), 200, seed=8)
    few = simulate(Agents(rates=(second, first), tasks=needed // 2), 200, seed=8)
    assert 0.7 <= enough.found <= 0.9  # 200 experiments: 0.8 ± 3 standard errors is 0.715 to 0.885
    assert few.found < 0.6
