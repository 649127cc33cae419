"""Arithmetic is read safely and exactly; puzzles are solved and checked."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_brain.errors import ExperimentError
from agent_brain.experiments.expressions import (
    Expression,
    ExpressionError,
    Operation,
    expressions_in,
    make_number,
    numbers_of,
    operations_of,
    read_expression,
    value_of,
    write,
)
from agent_brain.experiments.rule_based.llm import RuleBasedLLM
from agent_brain.experiments.task_sets.published import check_expression, game24, gsm8k
from tests.experiments.loop import passes
from tests.support.thorough import examples

expressions = st.recursive(
    st.integers(0, 99),
    lambda inner: st.builds(Operation, st.sampled_from("+-*/"), inner, inner),
    max_leaves=8,
)


@given(expressions)
def test_what_is_written_is_read_again(expression: Expression) -> None:
    text = write(expression)
    assert read_expression(text) == expression
    try:
        value = value_of(expression)
    except ExpressionError:
        with pytest.raises(ZeroDivisionError):
            eval(text)
    else:
        assert float(value) == pytest.approx(eval(text), rel=1e-9, abs=1e-9)


@given(expressions)
def test_operations_come_in_an_order_in_which_they_can_be_done(expression: Expression) -> None:
    done: list[Expression] = []
    for operation in operations_of(expression):
        assert all(
            isinstance(side, int) or side in done for side in (operation.left, operation.right)
        )
        done.append(operation)


@given(st.text(alphabet="0123456789+-*/() .x", max_size=40))
@example("9**9**9**9")
@example("2//1")
@example("(((((1)))))")
@example("1,2")
@example("007")
def test_no_text_does_harm(text: str) -> None:
    try:
        expression = read_expression(text)
    except ExpressionError:
        return
    assert all(isinstance(number, int) for number in numbers_of(expression))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2 ** 9",
        "7 // 2",
        "1.5 + 1",
        "f(1)",
        "(1",
        "1" * 201,
        "-(1 + 2)",
        "(" * 90 + "1" + ")" * 90 + "+",
    ],
)
def test_other_things_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        read_expression(text)


def test_expressions_are_found_in_a_text() -> None:
    found = expressions_in("On 2026-03-05, order K4-1234 of 17: is 4 × (9 − 3) = 24, or 7?")
    assert [write(one) for one in found] == ["4 * (9 - 3)"]


@settings(max_examples=examples(30))
@given(st.lists(st.integers(1, 13), min_size=4, max_size=4))
@example([3, 3, 8, 8])
@example([1, 5, 5, 5])
def test_a_solution_is_one(numbers: list[int]) -> None:
    solution = make_number(numbers, 24)
    if solution is not None:
        assert value_of(solution) == Fraction(24)
        assert check_expression(write(solution), tuple(numbers)).passed


@settings(max_examples=10)
@given(expressions.filter(lambda e: len([*numbers_of(e)]) == 4))
def test_what_can_be_made_is_found(expression: Expression) -> None:
    try:
        target = value_of(expression)
    except ExpressionError:
        return
    if target.denominator == 1:
        found = make_number([*numbers_of(expression)], int(target))
        assert found is not None
        assert value_of(found) == target


@pytest.mark.parametrize(
    "answer, reason",
    [
        ("I do not know.", "no expression"),
        ("(10 - 4) * (13 - 9) - 0 = 24", "does not use each of 4, 9, 10, 13 once"),
        ("4 + 9 + 10 + 13 = 24", "= 36"),
        ("4 / (9 - 9) + 10", "divides by zero"),
        ("24", "no expression"),
    ],
)
def test_an_answer_that_is_wrong_is_told_why(answer: str, reason: str) -> None:
    verdict = check_expression(answer, (4, 9, 10, 13))
    assert not verdict.passed
    assert verdict.score == 0
    assert reason in verdict.reason


@pytest.mark.parametrize("answer", ["(10 − 4) × (13 − 9) = 24", "Not 4 + 9.\nSo: (13-9)*(10-4)"])
def test_an_answer_passes_as_people_write_it(answer: str) -> None:
    assert check_expression(answer, (4, 9, 10, 13)).passed


def test_puzzles_are_drawn_by_the_seed() -> None:
    assert [p.turns for p in game24(5)] == [p.turns for p in game24(8)][:5]
    assert [p.turns for p in game24(5)] != [p.turns for p in game24(5, seed=1)]
    assert len({str(p.turns) for p in game24(40)}) == 40
    with pytest.raises(ExperimentError, match="from 1 to 1362"):
        game24(1363)


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_of_the_count_of_puzzles(seed: int) -> None:
    every = [*combinations_with_replacement(range(1, 14), 4)]
    sample = Random(seed).sample(every, 60)
    solved = sum(make_number(numbers, 24) is not None for numbers in sample)
    assert 34 <= solved <= 56  # 1,362 of 1,820 can be solved: 45 are expected


@pytest.mark.anyio
@pytest.mark.parametrize("net", ["react", "tree_of_thoughts", "graph_of_thoughts"])
async def test_puzzles_are_solved_by_the_model_of_rules(net: str) -> None:
    for puzzle in game24(2):
        passed, results = await passes(puzzle, net, "messages", RuleBasedLLM(), None)
        assert passed, results[-1].answer


@pytest.mark.anyio
async def test_a_tree_of_thoughts_answers_with_its_own_thoughts() -> None:
    """Slips in its thoughts are judged, so that it still finds a way where one is left."""
    solved = [
        (await passes(puzzle, "tree_of_thoughts", "messages", RuleBasedLLM(0.2), None))[0]
        for puzzle in game24(4)
    ]
    assert any(solved)


LINE = '{"question": "Ann has 3 boats and buys 1,200. How many?", "answer": "3+1200\\n#### 1,203"}'


def test_problems_of_gsm8k_are_read(tmp_path: Path) -> None:
    place = tmp_path / "test.jsonl"
    place.write_text("\n".join([LINE, LINE.replace("1,203", "2.5"), ""]))
    one, two = sorted(gsm8k(place), key=lambda task: task.id)
    assert (one.id, one.expected, one.tags) == ("gsm8k-0001", 1203, ["gsm8k"])
    assert two.expected == 2.5
    assert "MIT" in one.source
    assert len(gsm8k(place, n=1)) == 1


@pytest.mark.parametrize("line", ["{", '{"question": "?"}', LINE.replace("1,203", "many"), "[]"])
def test_a_line_that_is_none_is_named(line: str, tmp_path: Path) -> None:
    place = tmp_path / "test.jsonl"
    place.write_text(f"\n{line}\n")
    with pytest.raises(ExperimentError, match=r"test\.jsonl, line 2"):
        gsm8k(place)


def test_a_file_that_is_missing_names_the_script(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"fetch_task_sets gsm8k"):
        gsm8k(tmp_path / "none.jsonl")
    with pytest.raises(ExperimentError, match="whole number"):
        gsm8k(tmp_path / "none.jsonl", n=0)
