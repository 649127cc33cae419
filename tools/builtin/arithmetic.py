"""Arithmetic: Python's grammar over a few kinds of nodes, exact fractions, and never ``eval``.

Numbers are fractions, so ``0.1 + 0.2`` is ``0.3``; only roots and fractional powers become floats.
Bounds on the text and on every result make hostile input an error within a millisecond.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

from agent_brain.tools.builtin.numbers import Value

MAX_LENGTH = 1_000  # characters
MAX_TOKENS = 400  # numbers, operators and brackets
MAX_BITS = 8_192  # of a numerator or a denominator: about 2,400 digits

_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|\.\d+)(?![\w.])|(\*\*|//|[-+*/%^!(),×÷·−])|([a-z]+))",
    re.I,
)
_SPELLINGS = {"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "mod": "%", "!": ".factorial"}
_CONSTANTS = {"pi": math.pi, "e": math.e}


class ExpressionError(ValueError):
    """The text is not an arithmetic expression, or has no result within the bounds."""


def evaluate(text: str) -> Value:
    """Work out an expression: ``+ - * / // % ** ^ !``, brackets, ``50%``, ``sqrt(2)``, ``pi``.

    Raises:
        ExpressionError: It is not an expression, or has no real result within the bounds.
    """
    source = _as_python(text)
    try:
        return _work_out(ast.parse(source, mode="eval").body, source)
    except SyntaxError:
        why = "is not an arithmetic expression"
        if source.count("(") != source.count(")"):
            why = "has a bracket that is not closed, or not opened"
        raise ExpressionError(f"{text[:100]!r} {why}") from None
    except OverflowError:
        raise ExpressionError("the result is too large") from None
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except (RecursionError, MemoryError):
        raise ExpressionError("the expression is too deeply nested") from None


def _as_python(text: str) -> str:
    """The expression in Python's spelling; ``5!`` and ``50%`` become attributes, which bind alike.

    Nothing passes but numbers, operators and the names that are known here.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"the expression has {len(text)} characters; {MAX_LENGTH} are allowed"
        )
    tokens = _tokens(text.strip())
    if len(tokens) > MAX_TOKENS:
        raise ExpressionError(f"the expression has {len(tokens)} parts; {MAX_TOKENS} are allowed")
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if token == "%" and not re.match(r"[\w(]|\.\d", following):
            tokens[index] = ".percent"
    return " ".join(tokens)


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        token = match[0].strip().lower() if match else text[position : position + 20].strip()
        token = _SPELLINGS.get(token, token)
        if match is None or (match[3] and token not in (*_CONSTANTS, *_FUNCTIONS, "%")):
            raise ExpressionError(f"cannot read {token!r}")
        found.append(re.sub(r"^0+(?=\d)", "", token))  # Python refuses 007
        position = match.end()
    return found


def _work_out(node: ast.expr, source: str) -> Value:
    match node:
        case ast.Constant():
            return Fraction(source[node.col_offset : node.end_col_offset])
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            value = _work_out(inner, source)
            return -value if isinstance(node.op, ast.USub) else value
        case ast.BinOp(left=left, right=right) if type(node.op) in _OPERATORS:
            work = _OPERATORS[type(node.op)]
            return _bounded(work(_work_out(left, source), _work_out(right, source)))
        case ast.Attribute(value=inner, attr=name):
            return _bounded(_POSTFIXES[name](_work_out(inner, source)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            function, most = _FUNCTIONS[name]
            if not 1 <= len(args) <= most:
                raise ExpressionError(
                    f"{name} takes {'1 or 2 numbers' if most > 1 else '1 number'}"
                )
            return _bounded(function(*[_work_out(arg, source) for arg in args]))
    raise ExpressionError(_why_not(node))


def _why_not(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return f"cannot read {name!r} without brackets: write {name}(…)"
        case ast.Call():
            return "what stands before a bracket is not a function; write * to multiply"
        case ast.Tuple(elts=[_, *_]):
            return "cannot read ',': write numbers without it"
    return "this is not arithmetic"


def _bounded(value: Value) -> Value:
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
            raise ExpressionError("the result is too large")
    elif not math.isfinite(value):
        raise ExpressionError("the result is too large")
    return value


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) not in (0, 1) and bits * abs(exponent) > MAX_BITS:
            raise ExpressionError("this power is too large to work out")
        return Fraction(base ** (exponent.numerator if abs(base) != 1 else exponent.numerator % 2))
    if base < 0:
        raise ExpressionError("a negative number to a fractional power is not a real number")
    if base == 0 and exponent < 0:
        raise ZeroDivisionError
    result = math.pow(base, exponent)
    if result == 0 and base != 0:
        raise ExpressionError("the result is too small")
    return result


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


def _round(value: Value, places: Value = Fraction(0)) -> Value:
    """As at school: half is rounded away from zero."""
    if places != int(places) or not -1_000 <= places <= 1_000:
        raise ExpressionError("round needs a whole number of places")
    scale = Fraction(10) ** int(places)
    size = Fraction(math.floor(abs(Fraction(value)) * scale + Fraction(1, 2))) / scale
    return size if value >= 0 else -size


def _factorial(value: Value) -> Value:
    if value < 0 or value != int(value):
        raise ExpressionError("a factorial needs a whole number that is not negative")
    if value > 500:
        raise ExpressionError("a factorial of more than 500 is too large")
    return Fraction(math.factorial(int(value)))


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda left, right: Fraction(left // right),
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_POSTFIXES: dict[str, Callable[[Value], Value]] = {
    "factorial": _factorial,
    "percent": lambda value: value / 100,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Value], int]] = {
    "sqrt": (_root, 1),
    "cbrt": (_cube_root, 1),
    "factorial": (_factorial, 1),
    "abs": (cast("Callable[..., Value]", abs), 1),
    "round": (_round, 2),
}
