"""Evaluate arithmetic exactly: a whitelist of Python's grammar, and never ``eval``. Private.

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
from typing import Any, TypeAlias, cast

Value: TypeAlias = Fraction | float

MAX_LENGTH = 1_000  # characters
MAX_TOKENS = 400  # numbers, operators and brackets
MAX_BITS = 8_192  # of a numerator or a denominator: about 2,400 digits
SHORT = 25  # digits of an exact decimal that is shown in full
WHOLE = {Fraction: 21, float: 15}  # digits of a whole part that is shown in full

_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|\.\d+)(?![\w.])|(\*\*|//|[-+*/%^!(),×÷·−])|([a-z]+))",
    re.I,
)
_SPELLINGS = {"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "mod": "%", "!": ".factorial"}
_CONSTANTS = {"pi": math.pi, "e": math.e}


class ExpressionError(ValueError):
    """The text is not an arithmetic expression, or has no result within the limits."""


def evaluate(text: str) -> Value:
    """Return the value of an expression: ``+ - * / // % ** ^ !``, ``50%``, ``sqrt(2)``, ``pi``.

    Raises:
        ExpressionError: It is not an expression, or has no real result within the limits.
    """
    source = _as_python(text)
    try:
        return _evaluate(ast.parse(source, mode="eval").body, source)
    except SyntaxError:
        unclosed = source.count("(") != source.count(")")
        why = "has an unmatched bracket" if unclosed else "is not an arithmetic expression"
        raise ExpressionError(f"{text[:100]!r} {why}") from None
    except OverflowError:
        raise ExpressionError("the result is too large") from None
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except (RecursionError, MemoryError):
        raise ExpressionError("the expression is too deeply nested") from None


def format_number(value: Value, digits: int = 12) -> str:
    """Return ``value`` in full if that is short, else with at least ``digits`` significant digits.

    The whole part is never rounded: a long one gets two decimals, a very long one an exponent.
    """
    exact = Fraction(value)
    if exact.denominator == 1 and isinstance(value, Fraction):
        return str(exact.numerator)
    whole, most = len(str(abs(int(exact)))), WHOLE[type(value)]
    context = Context(prec=SHORT)
    shown = context.divide(exact.numerator, exact.denominator)
    if Fraction(shown) != exact or isinstance(value, float):
        context.prec = max(digits, min(whole + 2, most)) if whole <= most else digits
        shown = context.divide(exact.numerator, exact.denominator)
    plain = whole <= most and (abs(exact) >= Fraction(1, 10**6) or exact == 0)
    return f"{shown.normalize(context):{'f' if plain else 'g'}}"


def _as_python(text: str) -> str:
    """Return the expression in Python's spelling, with only known numbers, operators and names.

    ``5!`` and ``50%`` become attributes, which bind alike.
    """
    tokens: list[str] = []
    position, text = 0, text.strip()
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"the expression has {len(text)} characters; at most {MAX_LENGTH}")
    while position < len(text):
        match = _TOKEN.match(text, position)
        token = match[0].strip().lower() if match else text[position : position + 20].strip()
        token = _SPELLINGS.get(token, token)
        if match is None or (match[3] and token not in (*_CONSTANTS, *_FUNCTIONS, "%")):
            raise ExpressionError(f"cannot read {token!r}")
        if tokens and tokens[-1] == "%" and not re.match(r"[\w(]|\.\d", token):
            tokens[-1] = ".percent"
        tokens.append(re.sub(r"^0+(?=\d)", "", token))  # Python refuses 007
        position = match.end()
    if len(tokens) > MAX_TOKENS:
        raise ExpressionError(f"the expression has {len(tokens)} parts; at most {MAX_TOKENS}")
    return re.sub(r"%$", ".percent", " ".join(tokens))


def _evaluate(node: ast.expr, source: str) -> Value:
    match node:
        case ast.Constant():
            return Fraction(source[node.col_offset : node.end_col_offset])
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            value = _evaluate(inner, source)
            return -value if isinstance(node.op, ast.USub) else value
        case ast.BinOp(left=left, right=right) if type(node.op) in _OPERATORS:
            apply = _OPERATORS[type(node.op)]
            return _bounded(apply(_evaluate(left, source), _evaluate(right, source)))
        case ast.Attribute(value=inner, attr=name):
            value = _evaluate(inner, source)
            return _bounded(_factorial(value) if name == "factorial" else value / 100)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            function, most = _FUNCTIONS[name]
            if not 1 <= len(args) <= most:
                raise ExpressionError(
                    f"{name} takes {'1 or 2 numbers' if most > 1 else '1 number'}"
                )
            return _bounded(function(*[_evaluate(arg, source) for arg in args]))
        case ast.Name(id=name):
            raise ExpressionError(f"cannot read {name!r} without brackets: write {name}(…)")
        case ast.Call():
            raise ExpressionError(
                "there is a bracket after what is not a function; multiply with *"
            )
        case ast.Tuple(elts=[_, *_]):
            raise ExpressionError("cannot read ',': write numbers without it")
    raise ExpressionError("this is not arithmetic")


def _bounded(value: Value) -> Value:
    if isinstance(value, Fraction):
        too_large = max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS
    else:
        too_large = not math.isfinite(value)
    if too_large:
        raise ExpressionError("the result is too large")
    return value


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) not in (0, 1) and bits * abs(exponent) > MAX_BITS:
            raise ExpressionError("this power is too large")
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
    exact = Fraction(value)
    root = Fraction(math.isqrt(exact.numerator), math.isqrt(exact.denominator))
    return root if root**2 == exact and isinstance(value, Fraction) else math.sqrt(value)


def _cube_root(value: Value) -> Value:
    root = math.cbrt(value)
    near = Fraction(round(root)) if abs(root) < 2**53 else Fraction(0)
    return near if near**3 == value else root


def _round(value: Value, places: Value = Fraction(0)) -> Value:
    """Round half away from zero, as taught at school."""
    if places != int(places) or not -1_000 <= places <= 1_000:
        raise ExpressionError("round needs a whole number of places")
    scale = Fraction(10) ** int(places)
    size = Fraction(math.floor(abs(Fraction(value)) * scale + Fraction(1, 2))) / scale
    return size if value >= 0 else -size


def _factorial(value: Value) -> Value:
    if value < 0 or value != int(value) or value > 500:
        raise ExpressionError("a factorial needs a whole number from 0 to 500")
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
_FUNCTIONS: dict[str, tuple[Callable[..., Value], int]] = {
    "sqrt": (_root, 1),
    "cbrt": (_cube_root, 1),
    "factorial": (_factorial, 1),
    "abs": (cast("Callable[..., Value]", abs), 1),
    "round": (_round, 2),
}
