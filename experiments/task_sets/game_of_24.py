"""The Game of 24: four numbers, each used once, make 24.

A task of "Tree of Thoughts" (Yao et al. 2023, https://arxiv.org/abs/2305.10601, section 4.1), which
took its puzzles from 4nums.com. These are drawn by a seed, and an exact solver makes sure that each
can be solved.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from random import Random

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
    write_number,
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
            found.append(_task(numbers, f"game24-{len(found) + 1:03}", seed))
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
    return verdict(f"{write(last)} = {write_number(value)}", passed=value == target)


def _task(numbers: tuple[int, ...], name: str, seed: int) -> Task:
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
