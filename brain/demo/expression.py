"""Arithmetic expressions: read them, write them, work them out. Exact, bounded, and never ``eval``.

Numbers are fractions, so ``0.1 + 0.2`` is ``0.3``; only roots and fractional powers become floats.
The bounds on length, depth and size make hostile input an error within a millisecond.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

MAX_LENGTH = 1_000  # characters
MAX_TOKENS = 400  # numbers, operators and brackets
MAX_DEPTH = 60  # nested brackets, powers and signs
MAX_BITS = 8_192  # of a numerator or a denominator: about 2,400 digits

Value: TypeAlias = Fraction | float


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
        name: ``+ - * / % **``, ``neg``, or a key of :data:`FUNCTIONS`.
        operands: One or two of them.
    """

    name: str
    operands: tuple[Node, ...]


Node: TypeAlias = Number | Earlier | Operation


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


FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "sqrt": _root,
    "cbrt": _cube_root,
    "factorial": _factorial,
    "abs": abs,
    "round": lambda value: Fraction(round(value)),
}
_CONSTANTS = {"pi": math.pi, "e": math.e}


def _power(base: Value, exponent: Value) -> Value:
    if base == 0 and exponent < 0:
        raise ExpressionError("division by zero: zero to a negative power")
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if base.numerator not in (-1, 0, 1) or base.denominator != 1:
            if bits * abs(exponent) > MAX_BITS:
                raise ExpressionError("this power is too large to work out")
            return base ** int(exponent)
        return base ** (int(exponent) % 2 + 2)
    if base < 0:
        raise ExpressionError("a negative number to a fractional power is not a real number")
    return float(base) ** float(exponent)


def _divide(left: Value, right: Value) -> Value:
    if right == 0:
        raise ExpressionError("division by zero")
    return left / right


def _modulo(left: Value, right: Value) -> Value:
    if right == 0:
        raise ExpressionError("division by zero")
    return left % right


BINARY: dict[str, Callable[[Value, Value], Value]] = {
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
        if node.name in FUNCTIONS:
            return _bounded(FUNCTIONS[node.name](values[0]))
        return _bounded(BINARY[node.name](values[0], values[1]))
    except OverflowError:
        raise ExpressionError("the result is too large") from None


def _bounded(value: Value) -> Value:
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
            raise ExpressionError("the result is too large")
    elif not math.isfinite(value):
        raise ExpressionError("the result is too large")
    return value


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
        return format_number(node.value)
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


_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|\.\d+)(?![\w.])|(\*\*|[-+*/%^!()@×÷·−])|([a-z]+))", re.I
)
_SPELLINGS = {"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"}


def parse(text: str) -> Node:
    """Read an expression: ``+ - * / % ** ^ !``, brackets, ``50%``, ``sqrt(2)``, ``pi``; ``@`` is
    an earlier result.

    Raises:
        ExpressionError: It is none, or it is too long or too deeply nested.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"the expression has {len(text)} characters; {MAX_LENGTH} are allowed"
        )
    tokens = _tokens(text.strip())
    if len(tokens) > MAX_TOKENS:
        raise ExpressionError(f"the expression has {len(tokens)} parts; {MAX_TOKENS} are allowed")
    return _Parser(tokens).whole()


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"cannot read {text[position : position + 20].strip()!r}")
        token = match[0].strip().lower()
        found.append(_SPELLINGS.get(token, token))
        position = match.end()
    return found


class _Parser:
    """Recursive descent, one method a level of precedence."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._sum()
        if self._peek():
            raise ExpressionError(f"did not expect {self._peek()!r}")
        return node

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _sum(self) -> Node:
        node = self._product()
        while self._peek() in ("+", "-"):
            node = Operation(self._take(), (node, self._product()))
        return node

    def _product(self) -> Node:
        node = self._signed()
        while self._peek() in ("*", "/", "%", "mod"):
            name = "%" if self._take() in ("%", "mod") else self._tokens[self._at - 1]
            node = Operation(name, (node, self._signed()))
        return node

    def _signed(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(f"the expression is nested more than {MAX_DEPTH} deep")
        try:
            if self._peek() == "+":
                self._take()
                return self._signed()
            if self._peek() == "-":
                self._take()
                operand = self._signed()
                if isinstance(operand, Number):
                    return Number(-operand.value)
                return Operation("neg", (operand,))
            node = self._postfix()
            if self._peek() == "**":
                self._take()
                return Operation("**", (node, self._signed()))
            return node
        finally:
            self._depth -= 1

    def _postfix(self) -> Node:
        node = self._atom()
        while self._peek() == "!" or (self._peek() == "%" and not self._starts_operand(1)):
            if self._take() == "!":
                node = Operation("factorial", (node,))
            else:
                node = Operation("/", (node, Number(Fraction(100))))
        return node

    def _starts_operand(self, ahead: int) -> bool:
        token = self._peek(ahead)
        return bool(token) and (token[0].isalnum() or token[0] in "(.@") and token != "mod"

    def _atom(self) -> Node:
        if not self._peek():
            raise ExpressionError("the expression ends where a number was expected")
        token = self._take()
        if token[0].isdigit() or token[0] == ".":
            return Number(Fraction(token))
        if token == "@":
            return Earlier()
        if token == "(":
            node = self._sum()
            if self._peek() != ")":
                raise ExpressionError("a bracket is not closed")
            self._take()
            return node
        if token in FUNCTIONS:
            return Operation(token, (self._postfix_of_function(),))
        if token in _CONSTANTS:
            return Number(_CONSTANTS[token])
        raise ExpressionError(f"cannot read {token!r}")

    def _postfix_of_function(self) -> Node:
        return self._signed() if self._peek() == "-" else self._nested_atom()

    def _nested_atom(self) -> Node:
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise ExpressionError(f"the expression is nested more than {MAX_DEPTH} deep")
            return self._atom()
        finally:
            self._depth -= 1
