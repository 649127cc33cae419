"""The report of an experiment over results made by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_brain.errors import ExperimentError
from agent_brain.experiments.case import CaseResult, Cell, Outcome
from agent_brain.experiments.report.report import Report, load_report
from agent_brain.experiments.report.tables import terminal
from agent_brain.experiments.report.words import dollars
from tests.experiments.report.made import MESSAGES, VECTOR, case, info_of, report_of

# As in a real run of 20 tasks: 18 and 13 passed, 6 gained, 1 lost.
TWENTY = {VECTOR: "++++++++++++++++++--", MESSAGES: "++++++++++++------+-"}


def test_a_cell_has_its_rate_with_interval_and_what_it_gained_and_lost() -> None:
    vector = report_of(TWENTY).cell("react/vector")

    assert (vector.passed.k, vector.passed.n, float(vector.passed)) == (18, 20, 0.9)
    assert (round(vector.passed.low, 3), round(vector.passed.high, 3)) == (0.699, 0.972)
    assert vector.gained == ("t12", "t13", "t14", "t15", "t16", "t17")
    assert vector.lost == ("t18",)


def test_a_difference_that_chance_explains_is_no_conclusion() -> None:
    comparison = report_of(TWENTY).versus("react/vector")

    assert not comparison.significant
    assert comparison.p == 0.125
    assert comparison.sentence == (
        "vector passed 18 of 20, messages 13 of 20 on the same tasks: no conclusion (p = 0.125). "
        "A difference of this size needs about 45 tasks."
    )


def test_a_difference_that_is_found_is_said() -> None:
    report = report_of({VECTOR: "++++++++++", MESSAGES: "----------"})

    assert report.versus(VECTOR).significant
    assert report.versus(VECTOR).sentence.endswith(
        "vector passes 100 points more often (95 % interval +61 to +100; p = 0.002)."
    )
    assert "vector passes 100 points more often" in report.to_markdown()
    assert "Nothing can be concluded" not in report.to_markdown()


def test_the_interval_of_a_difference_is_that_of_the_better_cell() -> None:
    report = report_of({VECTOR: "----------", MESSAGES: "++++++++++"})

    assert (report.versus(VECTOR).high or 0) < 0
    assert report.versus(VECTOR).sentence.endswith(
        "messages passes 100 points more often (95 % interval +61 to +100; p = 0.002)."
    )


def test_each_kind_of_failure_counts_as_failed_and_is_shown_apart() -> None:
    kinds = [outcome for outcome in Outcome if outcome is not Outcome.PASSED]
    cases = [case(MESSAGES, "t0")]
    cases += [
        case(MESSAGES, f"t{n}", outcome=kind, score=0, error=f"Error{n}: no")
        for n, kind in enumerate(kinds, 1)
    ]
    report = Report(info_of(memories=["messages"], tasks=7), cases)

    assert str(report.cell("react").passed) == "1/7"
    assert [one.outcome for one in report.failures] == kinds
    told = " ".join(str(report).split())
    assert "failed: react 1 crashed, 1 rate-limited, 1 limit, 1 stuck, 1 waiting." in told
    assert "1 crashed, 1 rate-limited, 1 limit" in report.to_markdown()
    assert any("ended 1 case, which count as failed and say nothing" in w for w in report.warnings)
    assert "| react | t2 | crashed | Error2: no |" in report.to_markdown()


def of_scores(tasks: int, vector: Sequence[float], messages: Sequence[float]) -> Report:
    """Scores of two cells, again and again."""
    cases = [
        case(cell, f"t{n}", score=scores[n % len(scores)])
        for cell, scores in ((VECTOR, vector), (MESSAGES, messages))
        for n in range(tasks)
    ]
    return Report(info_of(tasks=tasks), cases)


def test_scores_between_0_and_1_are_shown_with_the_interval_of_their_difference() -> None:
    report = of_scores(40, vector=[1.0, 0.8], messages=[0.4, 0.6])
    found, score = report.versus(VECTOR).score_difference, report.cell(VECTOR).score

    assert found is not None
    assert (found.mean, score.mean) == pytest.approx((0.4, 0.9))
    assert 0.3 < (found.low or 0) < 0.4 < (found.high or 1) < 0.5
    assert 0.8 < (score.low or 0) < 0.9 < (score.high or 1) < 0.95
    between = re.search(
        r"Mean scores differ by \+40 points \(95 % interval \+3\d to \+4\d\)\.$",
        report.versus(VECTOR).sentence,
    )
    assert between
    assert between[0] in str(report).replace("\n  ", " ")
    assert re.search(r"0\.90 \(0\.8\d–0\.9\d\)", report.to_markdown())
    assert report_of(TWENTY).versus(VECTOR).score_difference is None
    assert "score" not in report_of(TWENTY).to_markdown()


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (of_scores(28, [1.0, 0.8], [0.4, 0.6]), "fewer than 30 tasks"),
        (of_scores(40, [0.9, 0.9], [0.5, 0.5]), "the same for all tasks"),
    ],
)
def test_mean_scores_that_do_not_show_their_spread_have_no_interval(
    report: Report, why: str
) -> None:
    for found in (report.versus(VECTOR).score_difference, report.cell(VECTOR).score):
        assert found is not None
        assert (found.low, found.high, found.no_interval) == (None, None, why)
    sentence = f"Mean scores differ by +40 points (no interval: {why})."
    assert report.versus(VECTOR).sentence.endswith(sentence)
    assert sentence in " ".join(str(report).split())
    assert sentence in report.to_markdown()
    assert sentence in report.to_html()
    assert "| 0.90 |" in report.to_markdown()
    assert any("no interval of mean scores" in one for one in report.warnings) == ("30" in why)


@pytest.mark.parametrize(
    ("tasks", "of"), [(28, "differences"), (30, "mean scores"), (58, "mean scores"), (60, None)]
)
def test_a_report_says_which_intervals_are_wider_than_they_need_be(
    tasks: int, of: str | None
) -> None:
    warnings = of_scores(tasks, [1.0, 0.8], [0.4, 0.6]).warnings
    wide = [one for one in warnings if "wider than 95 % needs" in one]
    assert [one.lower().count(f"intervals of {of} are") for one in wide] == ([1] if of else [])


def test_the_difference_of_fewer_than_10_tasks_has_no_interval() -> None:
    found, alike = (
        report_of({VECTOR: "+" * 9, MESSAGES: other}).versus(VECTOR) for other in ("-" * 9, "+" * 9)
    )

    assert found.significant
    assert (found.difference, found.low, found.high) == (1, None, None)
    assert found.sentence.endswith("more often (no interval: fewer than 10 tasks; p = 0.004).")
    assert alike.sentence.endswith("was seen (no interval: fewer than 10 tasks).")
    assert (
        report_of({VECTOR: "+" * 10, MESSAGES: "+" * 10})
        .versus(VECTOR)
        .sentence.endswith("was seen (95 % interval -28 to +28 points).")
    )


def test_a_task_counts_once_however_often_it_was_repeated() -> None:
    repeats = {(MESSAGES, 0): 1, (MESSAGES, 1): 3, (VECTOR, 0): 3, (VECTOR, 1): 1}
    cases = [
        case(cell, f"t{n}", passed=n == 0, repeat=again)
        for (cell, n), times in repeats.items()
        for again in range(times)
    ]
    report = Report(info_of(tasks=2, repeat=3), cases)
    found = report.versus(VECTOR)

    assert (found.difference, found.p) == (0, 1)
    assert found.sentence.startswith(
        "vector passed 3 of 4, messages 1 of 4 on the same 2 tasks, repeated unequally often and "
        "counted once each: no difference was seen"
    )
    assert [one.passed.rate for one in report.cells] == [0.5, 0.5]
    assert [one.score.mean for one in report.cells] == [0.5, 0.5]
    assert [str(one.passed) for one in report.cells] == ["1/4", "3/4"]


def test_repeats_of_a_task_are_no_tasks_of_their_own() -> None:
    cases = [
        case(cell, f"t{n}", cell == VECTOR, repeat=again)
        for cell in (VECTOR, MESSAGES)
        for n in range(5)
        for again in range(4)
    ]
    found = Report(info_of(tasks=5, repeat=4), cases).versus(VECTOR)

    assert (found.tasks, found.cases, found.passed) == (5, (20, 20), (20, 0))
    assert found.p == 0.0625  # and not 2 / 2**20
    assert (
        "20 of 20, messages 0 of 20 on the same 5 tasks, repeated: no conclusion (no interval: "
        "fewer than 10 tasks; p = 0.062)." in found.sentence
    )
    assert found.sentence.endswith("A difference of this size needs about 6 tasks.")


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "–"),
        (0.0, "$0.00"),
        (0.0000066, "$0.0000066"),
        (0.00005, "$0.000050"),
        (0.0123, "$0.0123"),
        (12.345, "$12.35"),
    ],
)
def test_small_costs_are_written_out(cost: float | None, shown: str) -> None:
    assert dollars(cost) == shown


def test_markdown_shows_texts_as_they_are() -> None:
    said = "a|b & &amp; ~c~ \x1b[31m\nd"
    failed = case(MESSAGES, "t0", False, outcome=Outcome.CRASHED, error=said)
    text = Report(info_of(memories=["messages"], tasks=1), [failed]).to_markdown()

    assert "| crashed | a\\|b \\& \\&amp; \\~c\\~ \ufffd\\[31m d |" in text
    assert "<summary>1 case failed</summary>" in text


def test_figures_of_cost_and_time_are_those_of_the_cases() -> None:
    cases = [
        case(
            MESSAGES,
            f"t{n}",
            n < 2,
            cost=0.5,
            seconds=n + 1.0,
            steps=n,
            input_tokens=10 * n,
            output_tokens=0,
        )
        for n in range(4)
    ]
    cell = Report(info_of(tasks=4), cases).cell(MESSAGES)

    assert (cell.cost, cell.cost_per_pass) == (2.0, 1.0)
    assert (cell.steps, cell.tokens) == (1.5, 15)
    assert cell.median_seconds == 2.5
    assert cell.p95_seconds == pytest.approx(3.85)


def test_one_unknown_price_makes_the_cost_of_its_cell_unknown() -> None:
    report = Report(info_of(tasks=2), [case(VECTOR, "t0"), case(VECTOR, "t1", cost=None)])

    assert report.cell(VECTOR).cost is None
    assert report.cell(VECTOR).cost_per_pass is None
    assert any("The price of small is unknown" in one for one in report.warnings)


def test_an_unfinished_experiment_says_what_is_missing() -> None:
    report = report_of({VECTOR: "++ -", MESSAGES: "+"})

    assert report.missing == 4
    assert any("4 of 8 cases were not run" in one for one in report.warnings)
    assert any("different numbers of cases" in one for one in report.warnings)
    assert report.versus(VECTOR).tasks == 1


def test_cells_without_cases_are_shown_and_compared_with_nothing() -> None:
    report = report_of({VECTOR: "   ", MESSAGES: "+-+"})

    assert str(report.cell(VECTOR).passed) == "0/0"
    assert (report.cell(VECTOR).passed.low, report.cell(VECTOR).passed.high) == (0, 1)
    assert "not run" in report.to_markdown()
    assert "no task in common" in report.versus(VECTOR).sentence
    assert "nothing to compare" in str(report)


def test_a_report_without_any_case_can_be_shown() -> None:
    report = Report(info_of(tasks=0), [])

    assert report.missing == 0
    assert report.by_tag() == {}
    assert str(report)
    assert report.to_markdown()


def test_warnings_name_rules_and_judges() -> None:
    report = Report(
        info_of(tasks=40, rule_based=("small",)),
        [case(MESSAGES, f"t{n}", judged=n == 0, judge_cost=0.25) for n in range(40)],
    )

    rules, missing, empty, judged = report.warnings
    assert rules.startswith("Rules and no language model answered for small")
    assert missing.startswith("40 of 80 cases")
    assert empty == "No case was run of vector."
    assert judged.startswith("A model judged 1 case, for $10.0000")


def test_a_full_experiment_has_no_warnings() -> None:
    assert report_of({VECTOR: "+-" * 20, MESSAGES: "+" * 40}).warnings == []


def test_a_report_says_what_it_was_made_with() -> None:
    said = report_of(TWENTY).to_markdown()

    for part in ("2026-11-22", "0123abc", "Seed: 7", "agent-brain 0.1.0", "openai/small"):
        assert part in said


def test_passes_are_grouped_by_tag() -> None:
    tags = report_of({VECTOR: "+-+-", MESSAGES: "++--"}).by_tag()

    assert {tag: [str(rate) for rate in rates.values()] for tag, rates in tags.items()} == {
        "even": ["1/2", "2/2"],
        "odd": ["1/2", "0/2"],
    }


def test_the_terminal_has_80_columns_whatever_the_names_are() -> None:
    nets = ["a net with quite a long name " * 3, "short"]
    report = Report(info_of(nets=nets, tasks=3), [case(Cell(nets[0], "vector", "small"), "t1")])

    assert max(map(len, str(report).splitlines())) <= 80


def columns(width: int) -> list[str]:
    """The columns that a table has in a terminal of that width."""
    cells = [Cell("react", "messages", f"provider/a-model-{size}") for size in ("mini", "large")]
    info = info_of(models=[cell.model for cell in cells], memories=["messages"], tasks=3)
    report = Report(info, [case(cell, f"t{n}") for cell in cells for n in range(3)])
    lines = terminal(report, width).splitlines()
    assert max(map(len, lines)) <= width
    assert len({line.split()[0] for line in lines[1:3]}) == 2, "two names look the same"
    return re.split("  +", lines[0].strip())


def test_a_narrow_terminal_has_fewer_columns() -> None:
    every = ["cell", "passed", "95 %", "+/−", "steps", "per pass", "median"]

    assert columns(200) == columns(80) == columns(70) == every
    assert columns(60) == every[:-1]
    assert columns(54) == ["cell", "passed", "95 %", "+/−", "per pass"]
    assert columns(48) == ["cell", "passed", "95 %", "+/−"]
    assert columns(36) == ["cell", "passed", "+/−"]
    assert columns(24) == ["cell", "passed"]


def test_a_wide_terminal_shows_whole_names_and_texts_that_can_be_read() -> None:
    nets = ["a net with quite a long name " * 3, "short"]
    report = Report(info_of(nets=nets, tasks=3), [case(Cell(nets[0], "vector", "small"), "t1")])
    lines = terminal(report, 200).splitlines()

    assert nets[0] in lines[2]
    assert 80 < max(map(len, lines[6:])) <= 100


def test_columns_are_in_line_under_wide_signs() -> None:
    cells = [Cell("react", name, "small") for name in ("日本", "e\u0301tat")]
    info = info_of(memories=[cell.memory for cell in cells], tasks=1)
    lines = terminal(Report(info, [case(cell, "t0") for cell in cells])).splitlines()

    assert lines[1].startswith("日本     1/1")
    assert lines[2].startswith("e\u0301tat     1/1")


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(TWENTY)
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, str(report).splitlines())) > 40, "it is not printed to a terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert max(map(len, str(report).splitlines())) <= 40


def test_what_a_model_said_does_not_break_the_table() -> None:
    nasty = "a | b\n<script>alert(1)</script> `x` [y](http://z) *w*"
    report = Report(info_of(tasks=1), [case(MESSAGES, "t0", False, reason=nasty)])

    rows = [line for line in report.to_markdown().splitlines() if "script" in line]
    assert rows == [
        r"| messages | t0 | wrong | a \| b \<script\>alert(1)\</script\> \`x\` \[y\](http://z) \*w\* |"
    ]


def test_of_several_results_of_a_case_the_last_counts_and_foreign_ones_do_not() -> None:
    cases = [
        case(MESSAGES, "t0", False),
        case(MESSAGES, "t0", True),
        case(MESSAGES, "t7"),
        case(MESSAGES, "t1", repeat=1),
        case(Cell("other", "messages", "small"), "t0"),
    ]

    assert [one.passed for one in Report(info_of(tasks=2), cases).cases] == [True]


def test_comparisons_with_the_base_are_adjusted_for_each_other() -> None:
    cells = [Cell("react", memory, "small") for memory in ("messages", "a", "b", "c")]
    signs = ["-" * 8, "+" * 8, "+" * 7 + "-", "-" * 8]
    report = report_of(dict(zip(cells, signs, strict=True)), memories=["messages", "a", "b", "c"])

    assert [one.p for one in report.comparisons] == [2 / 256, 2 / 128, 1]
    assert [one.p_adjusted for one in report.comparisons] == [6 / 256, 4 / 128, 1]
    assert "p = 0.008; 0.023 after Holm" in report.versus("a").sentence


def test_two_cells_that_are_not_the_base_are_adjusted_for_all_pairs() -> None:
    cells = [Cell("react", memory, "small") for memory in ("messages", "a", "b")]
    report = report_of(
        dict(zip(cells, ["-" * 8, "+" * 8, "-" * 8], strict=True)), memories=["messages", "a", "b"]
    )

    found = report.versus("b", "a")

    assert (found.a, found.b, found.difference) == (cells[2], cells[1], -1)
    assert (found.p, found.p_adjusted, found.family) == (2 / 256, 6 / 256, 3)


@pytest.mark.parametrize(
    "parts",
    [
        ("react", "vector"),
        ("react/vector",),
        ("vector",),
        ("react/vector/small",),
        (VECTOR,),
        ("react", "vector", "small"),
    ],
)
def test_a_cell_is_found_by_its_parts(parts: tuple) -> None:
    assert report_of(TWENTY).cell(*parts).cell == VECTOR


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        (("react",), "several cells are 'react'"),
        (("react/short",), "no cell is 'react/short'; the cells are react/messages/small, "),
        ((Cell("a", "b", "c"),), "no cell is 'a/b/c'"),
        (("react", 3), "3 is not a cell"),
    ],
)
def test_what_means_no_cell_is_refused(parts: tuple, problem: str) -> None:
    with pytest.raises(ExperimentError, match=problem):
        report_of(TWENTY).cell(*parts)


def test_a_cell_is_not_compared_with_itself() -> None:
    with pytest.raises(ExperimentError, match="cannot be compared with itself"):
        report_of(TWENTY).versus("messages")


def test_a_report_is_read_from_its_folder(tmp_path: Path) -> None:
    made = report_of(TWENTY)
    (tmp_path / "experiment.json").write_text(made.info.model_dump_json())
    (tmp_path / "cases.jsonl").write_text(made.to_jsonl() + '{"id": "torn')

    read = load_report(tmp_path)

    assert read.cases == made.cases
    assert read.folder == tmp_path
    assert read.to_markdown() == made.to_markdown()


def test_results_of_other_experiments_in_the_folder_are_left_out(tmp_path: Path) -> None:
    old, new = case(MESSAGES, "t0", id="old"), case(MESSAGES, "t1", id="new")
    info = info_of(tasks=2, case_ids=("newer", "new"))
    (tmp_path / "experiment.json").write_text(info.model_dump_json())
    (tmp_path / "cases.jsonl").write_text(f"{old.model_dump_json()}\n{new.model_dump_json()}\n")

    assert load_report(tmp_path).cases == [new]


def test_the_cases_are_written_a_line_each() -> None:
    made = report_of(TWENTY)

    lines = made.to_jsonl().splitlines()

    assert [CaseResult(**json.loads(line)) for line in lines] == made.cases


def test_a_folder_without_an_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="There is no experiment in"):
        load_report(tmp_path)


def test_a_folder_without_cases_yet_has_an_empty_report(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text(info_of(tasks=3).model_dump_json())

    assert load_report(tmp_path).missing == 6


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text(info_of().model_dump_json())
    (tmp_path / "cases.jsonl").write_text("nonsense\n" + report_of(TWENTY).to_jsonl())

    with pytest.raises(ExperimentError, match="line 1 is damaged"):
        load_report(tmp_path)


def test_a_report_without_a_folder_must_be_told_where_to_write() -> None:
    with pytest.raises(ExperimentError, match="the report has no folder"):
        report_of(TWENTY).save()


def test_a_report_is_saved_where_it_is_told(tmp_path: Path) -> None:
    report = report_of(TWENTY)

    assert report.save(tmp_path / "new" / "folder") == tmp_path / "new" / "folder"

    assert (tmp_path / "new/folder/report.md").read_text("utf-8") == report.to_markdown()
    assert "<html" in (tmp_path / "new/folder/report.html").read_text("utf-8")
