"""Read an arithmetic expression; bounds make hostile input an error within a millisecond."""

from __future__ import annotations

import re
from fractions import Fraction

from agent_brain.tools.builtin.expression import (
    CONSTANTS,
    FUNCTIONS,
    Earlier,
    ExpressionError,
    Node,
    Number,
    Operation,
)

MAX_LENGTH = 1_000  # characters
MAX_TOKENS = 400  # numbers, operators and brackets
MAX_DEPTH = 60  # nested brackets, powers and signs

_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d{1,3})?|\.\d+)(?![\w.])|(\*\*|[-+*/%^!()@×÷·−])|([a-z]+))",
    re.I,
)
_SPELLINGS = {"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"}


def parse(text: str) -> Node:
    """Read an expression: ``+ - * / % ** ^ !``, brackets, ``50%``, ``sqrt(2)``, ``pi``.

    ``@`` is an earlier result.

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
        if token in CONSTANTS:
            return Number(CONSTANTS[token])
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
