"""Work an expression out: exact, bounded, and never ``eval``."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from agent_brain.tools.builtin.expression import Earlier, ExpressionError, Node, Number, Value

MAX_BITS = 8_192  # of a numerator or a denominator: about 2,400 digits


def _root(value: Value) -> Value:
    if value < 0:
        raise ExpressionError("the square root of a negative number is not a real number")
    if isinstance(value, Fraction):
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return math.sqrt(value)


def _cube_root(value: Value) -> Value:
    root = math.cbrt(value)
    near = Fraction(round(root)) if abs(root) < 2**53 else Fraction(0)
    return near if near**3 == value else root


def _factorial(value: Value) -> Value:
    if value < 0 or value != int(value):
        raise ExpressionError("a factorial needs a whole number that is not negative")
    if value > 500:
        raise ExpressionError("a factorial of more than 500 is too large")
    return Fraction(math.factorial(int(value)))


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "sqrt": _root,
    "cbrt": _cube_root,
    "factorial": _factorial,
    "abs": lambda value: value if value >= 0 else -value,
    "round": lambda value: Fraction(round(value)),
}


def _power(base: Value, exponent: Value) -> Value:
    if base == 0 and exponent < 0:
        raise ExpressionError("division by zero: zero to a negative power")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if base.numerator not in (-1, 0, 1) or base.denominator != 1:
            if bits * abs(exponent) > MAX_BITS:
                raise ExpressionError("this power is too large to work out")
            return Fraction(base ** int(exponent))
        return Fraction(exponent == 0) if base == 0 else Fraction(base ** int(exponent % 2))
    if base < 0:
        raise ExpressionError("a negative number to a fractional power is not a real number")
    return math.pow(base, exponent)


def _divide(left: Value, right: Value) -> Value:
    if right == 0:
        raise ExpressionError("division by zero")
    return left / right


def _modulo(left: Value, right: Value) -> Value:
    if right == 0:
        raise ExpressionError("division by zero")
    return left % right


_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": _modulo,
    "**": _power,
}


def evaluate(node: Node) -> Value:
    """Work ``node`` out.

    Raises:
        ExpressionError: A division by zero, no real result, or a number beyond the bounds.
    """
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Earlier):
        raise ExpressionError("there is no earlier result to refer to")
    values = [evaluate(operand) for operand in node.operands]
    try:
        if node.name == "neg":
            return -values[0]
        if node.name in _FUNCTIONS:
            return _bounded(_FUNCTIONS[node.name](values[0]))
        return _bounded(_BINARY[node.name](values[0], values[1]))
    except OverflowError:
        raise ExpressionError("the result is too large") from None


def _bounded(value: Value) -> Value:
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
            raise ExpressionError("the result is too large")
    elif not math.isfinite(value):
        raise ExpressionError("the result is too large")
    return value
