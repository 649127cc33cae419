"""Arithmetic expressions as data, and how they are written.

Numbers are fractions, so ``0.1 + 0.2`` is ``0.3``; only roots and fractional powers become floats.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

Value: TypeAlias = Fraction | float

CONSTANTS = {"pi": math.pi, "e": math.e}
FUNCTIONS = frozenset(["sqrt", "cbrt", "factorial", "abs", "round"])


class ExpressionError(ValueError):
    """The text is no arithmetic expression, or one that is too large to work out."""


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: Value


@dataclass(frozen=True, slots=True)
class Earlier:
    """The result of what was worked out before: "it", "that"."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or a function with what it is applied to.

    Attributes:
        name: ``+ - * / % **``, ``neg``, or a name of :data:`FUNCTIONS`.
        operands: One or two of them.
    """

    name: str
    operands: tuple[Node, ...]


Node: TypeAlias = Number | Earlier | Operation


def format_number(value: Value) -> str:
    """``value`` as people write it: exact where that is short, else twelve significant digits."""
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return str(value.numerator)
        context = Context(prec=25)
        exact = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        digits = exact if Fraction(exact) == value and len(str(exact)) <= 18 else None
        rounded = Context(prec=12).plus(exact) if digits is None else digits
        text = f"{rounded:f}" if 1e-6 <= abs(value) < 10**15 else f"{rounded:g}"
    else:
        text = f"{value:.12g}"
    return re.sub(r"\.?0+$", "", text) if re.fullmatch(r"-?\d+\.\d+", text) else text


_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "neg": 3, "**": 4}


def render(node: Node) -> str:
    """``node`` as text that Python, most calculators and :func:`parse` read alike."""
    if isinstance(node, Number):
        named = [name for name, value in CONSTANTS.items() if value == node.value]
        return named[0] if named else format_number(node.value)
    if isinstance(node, Earlier):
        return "it"
    if node.name in FUNCTIONS:
        return f"{node.name}({render(node.operands[0])})"
    rank = _PRECEDENCE[node.name]
    if node.name == "neg":
        return "-" + _wrapped(node.operands[0], rank)
    left, right = node.operands
    power = node.name == "**"
    left_text = _wrapped(left, rank + power)
    return f"{left_text} {node.name} {_wrapped(right, rank + (not power))}"


def _wrapped(node: Node, rank: int) -> str:
    text = render(node)
    negative = isinstance(node, Number) and node.value < 0
    if negative or (isinstance(node, Operation) and _PRECEDENCE.get(node.name, 9) < rank):
        return f"({text})"
    return text
