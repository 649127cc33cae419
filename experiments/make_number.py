"""Solve puzzles of the kind "make 24 of 4, 9, 10 and 13", exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from agent_brain.experiments.expressions import (
    Expression,
    ExpressionError,
    Operation,
    apply,
)

Part = tuple[Fraction, Expression]


def make_number(numbers: Sequence[int], target: int) -> Expression | None:
    """Return an expression that uses each number once and makes the target; None if none does."""
    return solve_parts([(Fraction(number), number) for number in numbers], Fraction(target))


def solve_parts(parts: Sequence[Part], target: Fraction) -> Expression | None:
    """Return an expression of all parts, each a value and its expression, that makes the target."""
    if len(parts) == 1:
        return parts[0][1] if parts[0][0] == target else None
    for left in combined(parts):
        found = solve_parts(left, target)
        if found is not None:
            return found
    return None


def combined(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield what is left after each operation on two of the parts; its result comes last."""
    for first, second in combinations(range(len(parts)), 2):
        rest = [part for place, part in enumerate(parts) if place not in (first, second)]
        one, other = parts[first], parts[second]
        for (a, left), (b, right), symbols in ((one, other, "+-*/"), (other, one, "-/")):
            for symbol in symbols:
                try:
                    value = apply(symbol, a, b)
                except ExpressionError:
                    continue
                yield [*rest, (value, Operation(symbol, left, right))]
