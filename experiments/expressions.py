"""Arithmetic, exactly: expressions that are read, evaluated and found. No Python is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from operator import add, mul, sub, truediv

LONGEST = 200  # characters of an expression
_CHARACTERS = re.compile(r"[\d\s()+*/-]+")
_IN_TEXT = re.compile(r"(?<![\w-])(?!\d{4}-\d\d-\d\d)[(\d-][\d\s()+*/-]*[\d)](?!\w)")
_SYMBOLS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_DONE_BY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
}
_OTHER_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})


class ExpressionError(ValueError):
    """A text is not arithmetic with whole numbers, or it divides by zero."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on two expressions."""

    symbol: str
    left: Expression
    right: Expression


Expression = int | Operation


def read_expression(text: str) -> Expression:
    """Return the expression in ``text``: whole numbers, ``+ - * /`` and brackets.

    Raises:
        ExpressionError: It is something else, or longer than 200 characters.
    """
    plain = text.translate(_OTHER_SIGNS).strip()
    if len(plain) > LONGEST or not _CHARACTERS.fullmatch(plain):
        raise ExpressionError(f"{text!r:.100} is not arithmetic with whole numbers and + - * /")
    try:
        return _read(ast.parse(plain, mode="eval").body)
    except (SyntaxError, MemoryError, RecursionError):
        raise ExpressionError(f"{text!r:.100} is not an expression") from None


def _read(node: ast.expr) -> Expression:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SYMBOLS:
            return Operation(_SYMBOLS[type(op)], _read(left), _read(right))
    raise ExpressionError("Only whole numbers, + - * / and brackets are allowed")


def value_of(expression: Expression) -> Fraction:
    """Return the exact value.

    Raises:
        ExpressionError: It divides by zero.
    """
    if isinstance(expression, int):
        return Fraction(expression)
    left, right = value_of(expression.left), value_of(expression.right)
    return apply(expression.symbol, left, right)


def apply(symbol: str, left: Fraction, right: Fraction) -> Fraction:
    """Return the result of one operation.

    Raises:
        ExpressionError: It divides by zero.
    """
    try:
        return _DONE_BY[symbol](left, right)
    except ZeroDivisionError:
        raise ExpressionError("It divides by zero") from None


def numbers_of(expression: Expression) -> Iterator[int]:
    """Yield the numbers, from left to right."""
    if isinstance(expression, int):
        yield expression
    else:
        yield from numbers_of(expression.left)
        yield from numbers_of(expression.right)


def operations_of(expression: Expression) -> Iterator[Operation]:
    """Yield the operations in the order in which they can be done."""
    if isinstance(expression, Operation):
        yield from operations_of(expression.left)
        yield from operations_of(expression.right)
        yield expression


def write(expression: Expression, *, inside: bool = False) -> str:
    """Return the expression as text, with the brackets that it needs and some more."""
    if isinstance(expression, int):
        return f"({expression})" if inside and expression < 0 else str(expression)
    left, right = write(expression.left, inside=True), write(expression.right, inside=True)
    text = f"{left} {expression.symbol} {right}"
    return f"({text})" if inside else text


def expressions_in(text: str) -> list[Expression]:
    """Return the expressions with an operation that stand in a text."""
    found: list[Expression] = []
    for match in _IN_TEXT.finditer(text.translate(_OTHER_SIGNS)):
        try:
            expression = read_expression(match[0])
        except ExpressionError:
            continue
        if isinstance(expression, Operation):
            found.append(expression)
    return found


def make_number(numbers: Sequence[int], target: int) -> Expression | None:
    """Return an expression that uses each number once and makes the target; None if none does."""
    return _solved([(Fraction(number), number) for number in numbers], Fraction(target))


def _solved(parts: Sequence[tuple[Fraction, Expression]], target: Fraction) -> Expression | None:
    """Return an expression of all parts, each a value and its expression, that makes the target."""
    if len(parts) == 1:
        return parts[0][1] if parts[0][0] == target else None
    for first, second in combinations(range(len(parts)), 2):
        rest = [part for place, part in enumerate(parts) if place not in (first, second)]
        one, other = parts[first], parts[second]
        for (a, left), (b, right), symbols in ((one, other, "+-*/"), (other, one, "-/")):
            for symbol in symbols:
                try:
                    part = apply(symbol, a, b), Operation(symbol, left, right)
                except ExpressionError:
                    continue
                if (found := _solved([*rest, part], target)) is not None:
                    return found
    return None
