"""The same figures as scipy 1.17 and statsmodels 0.15 give, which are written here as constants."""

from __future__ import annotations

import pytest

from agent_brain.errors import ExperimentError
from agent_brain.experiments.statistics import (
    holm,
    mcnemar_exact,
    mcnemar_power,
    mean_bootstrap,
    paired_interval,
    sign_flip,
    tasks_needed,
    wilson,
)
from agent_brain.experiments.statistics.power import tasks_needed_by_formula
from agent_brain.experiments.statistics.rates import effective_size


@pytest.mark.parametrize(
    "passed, n, low, high",
    [
        (0, 1, 0.0, 0.793450685623),
        (1, 1, 0.206549314377, 1.0),
        (1, 2, 0.0945312057342, 0.905468794266),
        (3, 3, 0.438502968245, 1.0),
        (13, 20, 0.432854276685, 0.818808175899),
        (18, 20, 0.698966354772, 0.972133518786),
        (20, 20, 0.838874841947, 1.0),
        (500, 1000, 0.469069600368, 0.530930399632),
    ],
)
def test_wilson(passed: int, n: int, low: float, high: float) -> None:
    assert wilson(passed, n) == pytest.approx((low, high), abs=1e-11)


def test_wilson_with_another_confidence() -> None:
    expected = (0.46651268884847163, 0.7977399599432391)

    assert wilson(13, 20, confidence=0.9) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(
    "gained, lost, p",
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (6, 0, 0.03125),
        (6, 1, 0.125),
        (2, 9, 0.0654296875),
        (30, 50, 0.03299261842647619),
    ],
)
def test_mcnemar(gained: int, lost: int, p: float) -> None:
    assert mcnemar_exact(gained, lost) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize(
    "ps, adjusted",
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.001, 0.02, 0.02, 1.0], [1.0, 0.005, 0.08, 0.08, 1.0]),
        ([], []),
    ],
)
def test_holm(ps: list[float], adjusted: list[float]) -> None:
    assert holm(ps) == pytest.approx(adjusted)


@pytest.mark.parametrize(
    "differences, p",
    [
        ([2, 1, -1, 3, 0, 2], 0.1875),
        ([1, 1, 1, 1, 1, 1, -1], 0.125),
        ([3, 2, 3, -1, 2, 1, 0, 2], 0.046875),
        ([], 1.0),
    ],
)
def test_the_randomisation_test(differences: list[int], p: float) -> None:
    assert sign_flip(differences) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize(
    "tasks, gained, lost, alpha, power",
    [
        (20, 0.3, 0.05, 0.05, 0.3211718577891794),
        (44, 0.3, 0.05, 0.05, 0.79274688844371),
        (45, 0.3, 0.05, 0.05, 0.8043706251995156),
        (10, 0.6, 0.0, 0.05, 0.6331032575999994),
        (60, 0.3, 0.05, 0.0125, 0.7876366771654947),
    ],
)
def test_power_is_that_of_all_outcomes_summed(
    tasks: int, gained: float, lost: float, alpha: float, power: float
) -> None:
    assert mcnemar_power(tasks, gained, lost, alpha=alpha) == pytest.approx(power, rel=1e-9)


def test_so_many_tasks_are_needed_as_have_the_power() -> None:
    assert tasks_needed(0.3, 0.05) == 45
    assert tasks_needed(1.0, 0.0) == 6  # 5 tasks have p = 0.0625 at best
    assert tasks_needed(0.2, 0.2) is None


def test_the_formula_continues_what_is_computed_exactly() -> None:
    needed = tasks_needed(0.1, 0.05)

    assert needed is not None
    assert mcnemar_power(needed, 0.1, 0.05) == pytest.approx(0.8, abs=0.01)
    assert tasks_needed_by_formula(0.05, 0.15) == pytest.approx(needed, rel=0.05)


def test_the_paired_interval_is_that_of_newcombe() -> None:
    # An example of his paper, method 10: 36 both, 12 and 2 one of both, 0 neither.
    first = [[1.0]] * 48 + [[0.0]] * 2
    second = [[1.0]] * 36 + [[0.0]] * 12 + [[1.0]] * 2

    assert paired_interval(first, second) == pytest.approx((0.0569, 0.3404), abs=5e-5)


def test_repeats_that_all_agree_are_worth_one_case_a_task() -> None:
    assert effective_size([[1, 1, 1], [0, 0, 0], [1, 1, 1]]) == 3
    assert effective_size([[1, 0], [0, 1], [1, 0]]) == 3  # no variance to go by


def test_repeats_are_worth_at_most_as_many_independent_cases() -> None:
    assert effective_size([[1, 0, 0]] * 20 + [[1, 1, 0]] * 20) == 120
    assert effective_size([[1] * 25 + [0] * 24] * 2 + [[1] * 24 + [0] * 25]) == 3 * 49


@pytest.mark.parametrize(
    "better, n, low, high",
    [
        (1, 10, 0.011012, 0.381315),
        (3, 20, 0.044131, 0.348578),
        (9, 30, 0.159993, 0.476544),
        (15, 20, 0.535805, 0.897601),
    ],
)
def test_the_bootstrap_of_wins_and_losses_is_the_interval_of_jeffreys(
    better: int, n: int, low: float, high: float
) -> None:
    differences = [1.0] * better + [-1.0] * (n - better)
    found = mean_bootstrap(differences, lowest=-1, samples=100_000)

    assert found == pytest.approx((2 * low - 1, 2 * high - 1), abs=0.008)
    wins = [max(0.0, one) for one in differences]
    assert mean_bootstrap(wins, samples=100_000) == pytest.approx((low, high), abs=0.004)


def test_the_bootstrap_widens_for_few_tasks_and_is_the_same_each_time() -> None:
    differences = [0.4, 0.2, 0.0, 0.5, 0.1, -0.1, 0.4, 0.2]

    low, high = mean_bootstrap(differences, lowest=-1, seed=1)

    # Student's interval of the same differences is 0.0369 to 0.3881.
    assert low < 0.037 < 0.388 < high
    assert (low, high) == pytest.approx((0.037, 0.388), abs=0.15)
    assert mean_bootstrap(differences, lowest=-1, seed=1) == (low, high)
    assert mean_bootstrap([], lowest=-1) == pytest.approx((-1, 1), abs=0.01)


@pytest.mark.parametrize(
    "call, problem",
    [
        (lambda: wilson(3, 2), "passed must be from 0 to n"),
        (lambda: wilson(1, 2, confidence=95), "must be between 0 and 1"),
        (lambda: mcnemar_exact(-1, 2), "numbers from 0"),
        (lambda: paired_interval([[1]], []), "1 tasks of one and 0 of the other"),
        (lambda: paired_interval([[2.0]], [[0.0]]), "must be from 0 to 1"),
        (lambda: paired_interval([[]], [[]]), "a task has no score"),
        (lambda: mean_bootstrap([float("nan")]), "must be from 0.0 to 1.0"),
        (lambda: mean_bootstrap([-0.1]), "must be from 0.0 to 1.0"),
        (lambda: sign_flip([0.5]), "must be whole numbers"),  # type: ignore[list-item]
        (lambda: holm([0.01, float("nan")]), "must be from 0 to 1"),
        (lambda: tasks_needed(float("nan"), 0.1), "must be shares of all tasks"),
        (lambda: tasks_needed(0.8, 0.7), "must be shares of all tasks"),
        (lambda: tasks_needed(0.3, 0.1, alpha=5), "alpha=5 must be between"),
        (lambda: tasks_needed(0.3, 0.1, power=80), "power=80 must be between"),
    ],
)
def test_what_makes_no_sense_is_refused(call, problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        call()
