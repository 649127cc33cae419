"""Task sets of papers: the Game of 24, and GSM8K."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import combinations_with_replacement
from os import PathLike
from pathlib import Path
from random import Random
from typing import Any

from agent_brain.common.values import is_count
from agent_brain.errors import ExperimentError
from agent_brain.experiments.checks import Reply, Verdict, verdict
from agent_brain.experiments.expressions import (
    ExpressionError,
    expressions_in,
    make_number,
    numbers_of,
    value_of,
    write,
)
from agent_brain.experiments.task import Task

TARGET = 24
MOST = 1362  # of the 1,820 ways to take four of the numbers 1 to 13, so many can be solved


def game24(n: int = 20, seed: int = 0) -> list[Task]:
    """Return puzzles: make 24 of four numbers from 1 to 13, with ``+ - * /`` and brackets.

    An answer passes if its last expression uses each number once and makes 24, exactly. The tasks
    of "Tree of Thoughts" (Yao et al. 2023, https://arxiv.org/abs/2305.10601), whose net here is
    :func:`agent_brain.nets.tree_of_thoughts`.

    Args:
        n: How many puzzles, at most 1,362: there are no more.
        seed: Another seed draws others.

    Raises:
        ExperimentError: ``n`` is not a whole number from 1 to 1,362.
    """
    if not is_count(n) or n > MOST:
        raise ExperimentError(f"game24(n={n!r}): a whole number from 1 to {MOST}")
    every = [*combinations_with_replacement(range(1, 14), 4)]
    Random(f"game24 {seed}").shuffle(every)
    found: list[Task] = []
    for numbers in every:
        if len(found) == n:
            break
        if make_number(numbers, TARGET) is not None:
            found.append(_puzzle(numbers, f"game24-{len(found) + 1:03}", seed))
    return found


def check_expression(text: str, numbers: tuple[int, ...], target: int = TARGET) -> Verdict:
    """Check that the last expression in a text uses each number once and makes the target."""
    found = [
        one
        for line in text.splitlines()
        for part in line.split("=")
        for one in expressions_in(part)
    ]
    if not found:
        return verdict("It holds no expression", passed=False)
    last = found[-1]
    try:
        value = value_of(last)
    except ExpressionError as error:
        return verdict(f"{write(last)}: {error}", passed=False)
    if sorted(numbers_of(last)) != sorted(numbers):
        wanted = ", ".join(map(str, numbers))
        return verdict(f"{write(last)} does not use each of {wanted} once", passed=False)
    return verdict(f"{write(last)} = {value}", passed=value == target)


def _puzzle(numbers: tuple[int, ...], name: str, seed: int) -> Task:
    *some, last = map(str, numbers)

    def check(reply: Reply) -> Verdict:
        return check_expression(reply.result.answer, numbers)

    return Task(
        id=name,
        turns=(
            f"Use the numbers {', '.join(some)} and {last} and the operations + - * / to make "
            f"{TARGET}. Use each number exactly once. End with the expression."
        ),
        expected=check,
        tags=["game24"],
        source=f"agent_brain.experiments.game24(seed={seed}), after Yao et al. 2023",
    )


SOURCE = "GSM8K, MIT License, Copyright (c) 2021 OpenAI"


def gsm8k(path: str | PathLike[str], n: int = 50, seed: int = 0) -> list[Task]:
    """Return problems of GSM8K (Cobbe et al. 2021, https://arxiv.org/abs/2110.14168).

    The data (MIT) is not shipped; ``python -m scripts.fetch_task_sets gsm8k`` fetches it. An
    answer passes if its last number is the right one.

    Args:
        path: The file ``task_sets/gsm8k/test.jsonl``, or another of the same form: a line is a
            JSON object with ``question`` and ``answer``, which ends with ``#### NUMBER``.
        n: How many; all if there are fewer.
        seed: Another seed draws others.

    Raises:
        ExperimentError: The file cannot be read, a line is of another form, or ``n`` is not a whole
            number from 1.
    """
    if not is_count(n):
        raise ExperimentError(f"gsm8k(n={n!r}): a whole number from 1")
    place = Path(path)
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"gsm8k({str(path)!r}): {error}. Fetch it: python -m scripts.fetch_task_sets gsm8k"
        ) from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    drawn = Random(f"gsm8k {seed}").sample(numbered, min(n, len(numbered)))
    return [_problem(place, number, line) for number, line in drawn]


def _problem(place: Path, number: int, line: str) -> Task:
    where = f"{place}, line {number}"
    try:
        problem = json.loads(line)
    except ValueError as error:
        raise ExperimentError(f"{where} is not JSON: {error}") from error
    try:
        return Task(
            id=f"gsm8k-{number:04}",
            turns=problem["question"],
            expected=read_answer(problem),
            tags=["gsm8k"],
            source=SOURCE,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ExperimentError(
            f"{where}: an object with a question and an answer that ends with '#### NUMBER'"
        ) from error


def read_answer(problem: Mapping[str, Any]) -> int | float:
    """Return the number at the end of an answer.

    Raises:
        ValueError: There is none.
        KeyError: There is no answer.
    """
    number = float(problem["answer"].rpartition("####")[2].replace(",", ""))
    return int(number) if number.is_integer() else number
