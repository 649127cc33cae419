"""What holds for all results, few and many."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain.experiments.case import Cell
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.statistics import (
    clustered_wilson,
    holm,
    mcnemar_exact,
    paired_interval,
    sign_flip,
    wilson,
)
from agent_brain.experiments.statistics.rates import mean_of_tasks
from tests.experiments.report.made import case, info_of
from tests.support.thorough import examples

scores = st.lists(st.sampled_from([0.0, 1.0, 0.0, 1.0, 0.3]), min_size=1, max_size=4)
passes = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=4)
counts = st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts)
def test_an_interval_contains_the_rate_and_is_one_of_rates(count: tuple[int, int]) -> None:
    passed, n = count
    low, high = wilson(passed, n)

    assert 0 <= low <= (passed / n if n else 0.5) <= high <= 1
    assert low < high


@given(counts)
def test_more_passes_move_both_ends_up_and_failures_mirror_passes(count: tuple[int, int]) -> None:
    passed, n = count
    low, high = wilson(passed, n)
    mirrored = wilson(n - passed, n)

    assert abs(mirrored.low - (1 - high)) < 1e-9
    if passed < n:
        more = wilson(passed + 1, n)
        assert more.low > low - 1e-12
        assert more.high > high - 1e-12


@given(counts.filter(lambda count: count[1] > 0))
def test_more_tasks_of_the_same_rate_make_the_interval_narrower(count: tuple[int, int]) -> None:
    passed, n = count
    few, many = wilson(passed, n), wilson(2 * passed, 2 * n)

    assert many.high - many.low < few.high - few.low


@given(st.lists(scores, max_size=12))
def test_repeats_never_make_an_interval_wider_than_tasks_nor_narrower_than_cases(groups) -> None:
    cases = sum(map(len, groups))
    mean = mean_of_tasks(groups) if cases else 0.5
    low, high = clustered_wilson(groups)
    widest = wilson(mean * len(groups), len(groups))
    narrowest = wilson(min(mean * cases, cases), cases)

    assert 0 <= low <= mean + 1e-12
    assert mean - 1e-12 <= high <= 1
    assert widest.low - 1e-9 <= low <= narrowest.low + 1e-9
    assert narrowest.high - 1e-9 <= high <= widest.high + 1e-9


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_never_lowers_a_p_and_keeps_their_order(ps: list[float]) -> None:
    adjusted = holm(ps)

    assert all(p <= new <= 1 for p, new in zip(ps, adjusted, strict=True))
    ordered = sorted(zip(ps, adjusted, strict=True))
    assert [new for _, new in ordered] == sorted(adjusted)


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_a_probability_and_the_same_both_ways(gained: int, lost: int) -> None:
    p = mcnemar_exact(gained, lost)

    assert 0 < p <= 1
    assert p == mcnemar_exact(lost, gained)
    if gained >= lost:
        assert mcnemar_exact(gained + 1, lost) <= p


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=60))
def test_without_repeats_the_randomisation_test_is_mcnemars(differences: list[int]) -> None:
    expected = mcnemar_exact(differences.count(1), differences.count(-1))

    assert abs(sign_flip(differences) - expected) < 1e-9


@given(st.lists(st.integers(-5, 5), max_size=30))
def test_the_randomisation_test_is_the_same_both_ways(differences: list[int]) -> None:
    p = sign_flip(differences)

    assert 0 < p <= 1
    assert abs(p - sign_flip([-one for one in differences])) < 1e-12


@given(st.lists(st.tuples(passes, passes), max_size=12))
def test_the_interval_of_a_difference_contains_it_and_turns_with_the_cells(pairs) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    low, high = paired_interval(first, second)
    turned = paired_interval(second, first)

    assert -1 <= low < high <= 1
    assert abs(turned.low + high) < 1e-9
    assert abs(turned.high + low) < 1e-9
    if pairs:
        rates = [mean_of_tasks(side) for side in (first, second)]
        assert low - 1e-9 <= rates[0] - rates[1] <= high + 1e-9


signs = st.lists(st.sampled_from("+- c"), max_size=4)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(signs, min_size=1, max_size=3), st.integers(1, 2))
def test_any_report_of_few_cases_can_be_shown(rows: list[list[str]], repeat: int) -> None:
    memories = [f"m{n}" for n in range(len(rows))]
    info = info_of(memories=memories, tasks=4, repeat=repeat)
    cases = [
        case(Cell("react", memory, "small"), f"t{n}", sign == "+", repeat=again)
        for memory, row in zip(memories, rows, strict=True)
        for n, sign in enumerate(row)
        for again in range(repeat if sign != "c" else 1)
        if sign != " "
    ]
    report = Report(info, cases)

    assert report.missing + len(report.cases) == len(rows) * 4 * repeat
    assert max(map(len, str(report).splitlines())) <= 80
    assert all(
        one.sentence in report.to_markdown().replace("\\", "")
        for one in report.comparisons
        if one.tasks
    )
    for one in report.cells:
        assert sum(one.outcomes.values()) == one.passed.n
        assert one.passed.low <= one.passed.rate <= one.passed.high
    for tag in report.by_tag().values():
        assert all(rate.k <= rate.n for rate in tag.values())
