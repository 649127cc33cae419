"""Thoughts about puzzles of numbers, as in "Tree of Thoughts" (Yao et al. 2023, section 4.1).

A thought is one operation with what is then left: "10 - 4 = 6 (left: 6 9 13)".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from agent_brain.experiments.expressions import (
    ExpressionError,
    Operation,
    Part,
    combined,
    solve_parts,
    write,
    write_number,
)

_THOUGHT = re.compile(r"(\S+) ([-+*/]) (\S+) = (\S+) ")


def continued(path: Sequence[str], numbers: Sequence[int], target: int, count: int) -> list[str]:
    """Return different thoughts that could come next, those that reach the target first."""
    try:
        parts = _left(path, numbers)
    except ExpressionError:
        parts = []
    if len(parts) < 2:
        return ["This leads nowhere."]
    goal = Fraction(target)
    nexts = [(solve_parts(left, goal) is None, _written(parts, left)) for left in combined(parts)]
    return [*dict.fromkeys(text for _, text in sorted(nexts, key=lambda one: one[0]))][:count]


def judged(path: Sequence[str], numbers: Sequence[int], target: int) -> tuple[float, bool]:
    """Return how promising a path is, and whether it has reached the target."""
    try:
        parts = _left(path, numbers)
    except ExpressionError:
        return 0.0, False
    found = solve_parts(parts, Fraction(target)) is not None
    return float(found), found and len(parts) == 1


def _written(parts: Sequence[Part], left: Sequence[Part]) -> str:
    """Return a thought: the last of ``left`` was made of two of ``parts``."""
    value, operation = left[-1]
    assert isinstance(operation, Operation)
    values = {id(expression): number for number, expression in parts}
    one, other = (write_number(values[id(side)]) for side in (operation.left, operation.right))
    said = f"{one} {operation.symbol} {other} = {write_number(value)}"
    if len(left) == 1:
        return f"{said} (nothing left), so {write(operation)} = {write_number(value)}"
    return f"{said} (left: {' '.join(write_number(number) for number, _ in left)})"


def _left(path: Sequence[str], numbers: Sequence[int]) -> list[Part]:
    """Return the parts that are left after the thoughts of a path.

    Raises:
        ExpressionError: A thought is none, or is wrong.
    """
    parts: list[Part] = [(Fraction(number), number) for number in numbers]
    for thought in path:
        said = _THOUGHT.match(thought)
        same = [
            left for left in combined(parts) if said and _written(parts, left).startswith(said[0])
        ]
        if not same:
            raise ExpressionError(f"{thought!r} does not follow")
        parts = same[0]
    return parts
