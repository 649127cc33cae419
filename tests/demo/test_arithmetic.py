"""Expressions in words and symbols mean what Python says they mean."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_brain.demo.arithmetic import read_arithmetic
from agent_brain.demo.numbers import words_to_digits
from agent_brain.tools.builtin.evaluate import evaluate
from agent_brain.tools.builtin.expression import ExpressionError, format_number, render
from agent_brain.tools.builtin.parse import parse

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen".split()
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(number: int) -> str:
    for size, name in ((10**6, "million"), (10**3, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            joint = " and " if rest < 100 else " "
            return f"{in_words(number // size)} {name}" + (joint + in_words(rest) if rest else "")
    if number < 20:
        return _SMALL[number]
    return _TENS[number // 10 - 2] + (f"-{_SMALL[number % 10]}" if number % 10 else "")


@given(st.integers(0, 10**9 - 1))
def test_number_words_are_read(number):
    assert words_to_digits(in_words(number)) == str(number)


SPOKEN = {
    "+": ["plus", "+"],
    "-": ["minus", "-"],
    "*": ["times", "multiplied by", "*", "x"],
    "/": ["divided by", "over", "/"],
}
numbers = st.integers(0, 10**6)
chains = st.lists(
    st.tuples(st.sampled_from("+-*/"), st.integers(0, 3), st.integers(1, 10**4), st.booleans()),
    min_size=1,
    max_size=6,
)


@given(numbers, chains, st.sampled_from(["what is {}?", "calculate {}", "{}", "How much is {}?"]))
def test_a_chain_in_words_is_what_python_says(first, chain, question):
    said, python = in_words(first), f"Fraction({first})"
    for operator, choice, number, as_words in chain:
        spoken = SPOKEN[operator][choice % len(SPOKEN[operator])]
        said += f" {spoken} {in_words(number) if as_words else number}"
        python += f" {operator} Fraction({number})"
    node = read_arithmetic(question.format(said))
    assert node is not None
    assert evaluate(node) == eval(python, {"Fraction": Fraction})


def _grown(parts):
    pair = st.tuples(parts, st.sampled_from("+-*/"), parts)
    return st.one_of(
        pair.map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(parts, st.integers(0, 3)).map(lambda p: f"({p[0]} ** {p[1]})"),
        parts.map(lambda part: f"-{part}"),
    )


symbols = st.recursive(st.integers(0, 99).map(str), _grown, max_leaves=10)


@given(symbols)
def test_symbols_are_what_python_says_and_survive_being_written(text):
    try:
        value = evaluate(parse(text))
    except ExpressionError:  # by zero or beyond the bounds: Python would take its time
        assume(False)
        return
    exact = "".join(f"Fraction({c})" if c.isdigit() else c for c in _split(text))
    assert value == eval(exact, {"Fraction": Fraction})
    assert evaluate(parse(render(parse(text)))) == value


def _split(text: str) -> list[str]:
    for symbol in ("**", "(", ")", "+", "-", "/"):
        text = text.replace(symbol, f" {symbol} ")
    return [part for part in text.split() if part]


@given(st.fractions(max_denominator=10**4))
def test_a_written_number_is_close_to_the_number(value):
    written = Fraction(format_number(value))
    assert abs(written - value) <= abs(value) / 10**10


@given(st.text(max_size=200))
def test_any_text_is_an_expression_or_none(text):
    node = read_arithmetic(text)
    if node is not None:
        render(node)


@pytest.mark.parametrize("text", ["", "hello", "2026-03-01", "42", "the answer", "and", "it"])
def test_what_is_no_arithmetic_is_left_alone(text):
    assert read_arithmetic(text) is None
