"""A calculator over a whitelist of Python's grammar, which never runs code.

Numbers are fractions, so ``0.1 + 0.2`` is ``0.3``; only roots and fractional powers become floats.
Limits on the text and on every result turn hostile input into an error within a millisecond.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from decimal import Context
from fractions import Fraction
from typing import Any, TypeAlias

from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

Value: TypeAlias = Fraction | float

MAX_LENGTH = 1_000  # characters
MAX_BITS = 8_192  # of a numerator or a denominator: about 2,400 digits

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,3})?(?![\w.])"
_READABLE = re.compile(rf"\A(?:{_NUMBER}|[a-z]+|[-+*/%(), ]|\.factorial)*", re.ASCII)
# "5!" and "50%" become attributes, which bind alike
_SYMBOLS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "!": " .factorial"})


@tool(idempotent=True)
async def calculate(expression: str) -> str:
    """Calculate an arithmetic expression, exactly where possible.

    Args:
        expression: Such as "(3 + 4) * 2 ** 5", "12 / 100 * 80", "sqrt(2)" or "5!".
    """
    return format_number(evaluate(expression))


def evaluate(text: str) -> Value:
    """Return the value of an expression: ``+ - * / // % ** ^ !``, ``50%``, ``sqrt(2)``, ``pi``."""
    try:
        source = " ".join(text.lower().translate(_SYMBOLS).split())
        if len(text) > MAX_LENGTH:
            raise ValueError(f"it has {len(text)} characters; at most {MAX_LENGTH} are read")
        if unread := _READABLE.sub("", source):
            raise ValueError(f"cannot read {unread[:20]!r}")
        source = re.sub(r"%(?!\s*[\w(.])", " .percent", re.sub(r"\bmod\b", "%", source))
        source = re.sub(r"(?<![\w.])0+(?=\d)", "", source).strip()  # Python refuses 007
        return _evaluate(ast.parse(source, mode="eval").body, source)
    except ZeroDivisionError:
        why = "division by zero"
    except OverflowError:
        why = "the result is too large"
    except (SyntaxError, RecursionError, MemoryError) as error:
        why = f"it is not arithmetic: {getattr(error, 'msg', 'too deeply nested')}"
    except ValueError as error:
        why = str(error)
    raise ToolError(f"Cannot calculate {text[:100]!r}: {why}")


def format_number(value: Value) -> str:
    """Return ``value`` in full, or rounded after its whole part to 12 digits or two decimals."""
    exact, most = Fraction(value), 15 if isinstance(value, float) else 21
    if exact.denominator == 1 and isinstance(value, Fraction):
        return str(exact.numerator)
    whole = len(str(abs(int(exact))))
    plain = whole <= most and (exact == 0 or abs(exact) >= Fraction(1, 10**6))
    context = Context(prec=25)
    shown = context.divide(exact.numerator, exact.denominator)
    if Fraction(shown) != exact or isinstance(value, float):
        context.prec = max(12, min(whole + 2, most)) if plain else 12
        shown = context.divide(exact.numerator, exact.denominator)
    return f"{shown.normalize(context):{'f' if plain else 'g'}}"


def _evaluate(node: ast.expr, source: str) -> Value:
    part = source[node.col_offset : node.end_col_offset]
    match node:
        case ast.Constant():
            return Fraction(part)
        case ast.Name(id="pi" | "e" as name):
            return float(getattr(math, name))
        case ast.UnaryOp(operand=inner) if type(node.op) in _OPERATORS:
            return _bounded(_OPERATORS[type(node.op)](_evaluate(inner, source)))
        case ast.BinOp(left=left, right=right) if type(node.op) in _OPERATORS:
            apply = _OPERATORS[type(node.op)]
            return _bounded(apply(_evaluate(left, source), _evaluate(right, source)))
        case ast.Attribute(value=inner, attr=name):
            return _bounded(_FUNCTIONS[name](_evaluate(inner, source)))
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _FUNCTIONS:
            return _bounded(_FUNCTIONS[name](_evaluate(inner, source)))
        case ast.Call(func=ast.Name(id="round"), args=[inner, places], keywords=[]):
            return _bounded(_round(_evaluate(inner, source), _evaluate(places, source)))
    raise ValueError(f"cannot read {part!r}; write 1000 without a comma, 2 * 3, sqrt(2)")


def _bounded(value: Value) -> Value:
    if not isinstance(value, float):
        value = Fraction(value)
        if max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_BITS:
            return value
    elif math.isfinite(value):
        return value
    raise OverflowError


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) not in (0, 1) and bits * abs(exponent) > MAX_BITS:
            raise OverflowError
        return Fraction(base**exponent)
    if base < 0:
        raise ValueError("a root of a negative number is not a real number")
    result: float = float(base) ** float(exponent)
    if result == 0 and base != 0:
        raise ValueError("the result is too small")
    return result


def _round(value: Value, places: Value = Fraction(0)) -> Value:
    """Round half away from zero, as taught at school."""
    if places != int(places) or not -1_000 <= places <= 1_000:
        raise ValueError("round needs a whole number of places, at most 1,000")
    scale = Fraction(10) ** int(places)
    size = Fraction(math.floor(abs(Fraction(value)) * scale + Fraction(1, 2))) / scale
    return size if value >= 0 else -size


def _factorial(value: Value) -> Value:
    if value != int(value) or not 0 <= value <= 500:
        raise ValueError("a factorial needs a whole number from 0 to 500")
    return Fraction(math.factorial(int(value)))


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, Callable[[Any], Value]] = {
    "sqrt": lambda value: _power(value, Fraction(1, 2)),
    "cbrt": math.cbrt,
    "factorial": _factorial,
    "abs": abs,
    "round": _round,
    "percent": lambda value: value / 100,
}
