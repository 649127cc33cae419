"""Arithmetic and units: every digit that is shown is right."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_brain.tools import ToolError
from agent_brain.tools.builtin import calculate, convert_units
from agent_brain.tools.builtin.calculator import evaluate, format_number

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "expression, result",
    [
        ("1e14/7", "14285714285714.29"),
        ("1e11/7", "14285714285.71"),
        ("10**18/7", "142857142857142857.14"),
        ("-1e14/7", "-14285714285714.29"),
        ("1e30/7", "1.42857142857e+29"),
        ("1/3", "0.333333333333"),
        ("2/3", "0.666666666667"),
        ("0.1 + 0.2", "0.3"),
        ("1e-20", "1e-20"),
        ("1 + 1e-20", "1.00000000000000000001"),
        ("1e-20 / 3", "3.33333333333e-21"),
        ("2**0.5", "1.41421356237"),
        ("2**0.5 * 1e13", "14142135623731"),
        ("2**0.5 * 1e20", "1.41421356237e+20"),
        ("2**100", "1267650600228229401496703205376"),
        ("2**-2", "0.25"),
        ("2**100 + 0.5", "1.26765060023e+30"),
        ("99999999999999.5", "99999999999999.5"),
        ("-sqrt(2) * 0", "0"),
        ("sqrt(16) + cbrt(27)", "7"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.675, 2)", "2.68"),
        ("round(1234.5, -2)", "1200"),
        ("5! / 3!", "20"),
        ("2 ** 3!", "64"),
        ("50% * 8", "4"),
        ("8 / 50%", "16"),
        ("7 % 4", "3"),
        ("7 mod 4", "3"),
        ("-7 // 2", "-4"),
        ("-2 ^ 2", "-4"),
        ("6 ÷ 4 × 2 − 1", "2"),
        ("2 * PI", "6.28318530718"),
        ("007 + .5", "7.5"),
        ("abs(-3)", "3"),
    ],
)
async def test_digits_are_right(expression, result):
    assert await calculate.execute(expression=expression) == result


@pytest.mark.parametrize(
    "expression, why",
    [
        ("1/0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("sqrt(-1)", "negative number"),
        ("(-8) ** 0.5", "negative number"),
        ("2 ** 10 ** 10", "too large"),
        ("1e300 ** 9.5", "too large"),
        ("1e-300 ** 9.5", "too small"),
        ("(1 + 2", "'(' was never closed"),
        ("1 + ", "not arithmetic"),
        ("1, 2", "cannot read '1, 2'"),
        ("round(1, 2, 3)", "round"),
        ("sqrt(1, 2)", "sqrt"),
        ("round(1, 0.5)", "whole number"),
        ("0.5!", "whole number"),
        ("lambda", "not arithmetic"),
        ("foo(2)", "cannot read 'foo(2)'"),
        ("pi(2)", "cannot read 'pi(2)'"),
        ("sqrt", "cannot read 'sqrt'"),
        ("2(3)", "cannot read '2(3)'"),
        ("1 < 2", "cannot read '< 2'"),
        ("()", "cannot read '()'"),
        ("1if 2else 3", "cannot read '1if 2else 3'"),
        ("1e9999", "cannot read '1e9999'"),
        ("-" * 999 + "1", "too deeply nested"),
        ("1+" * 600 + "1", "1201 characters; at most 1000"),
    ],
)
async def test_the_reason_is_named(expression, why):
    with pytest.raises(ToolError) as caught:
        await calculate.execute(expression=expression)
    assert why in str(caught.value)


async def test_a_long_sum_is_not_deeply_nested():
    assert await calculate.execute(expression=" + ".join(["1"] * 150)) == "150"
    assert await calculate.execute(expression="-" * 300 + "1") == "1"


@given(st.fractions(max_denominator=10**6))
def test_a_written_fraction_is_within_half_a_unit_of_its_last_digit(value):
    text = format_number(value)
    digits, _, exponent = text.partition("e")
    decimals = len(digits.partition(".")[2])
    unit = Fraction(10) ** (int(exponent or 0) - decimals)
    assert abs(Fraction(text) - value) <= unit / 2


def _grown(parts):
    pair = st.tuples(parts, st.sampled_from("+-*/"), parts)
    return st.one_of(
        pair.map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(parts, st.integers(0, 3)).map(lambda p: f"({p[0]} ** {p[1]})"),
        parts.map(lambda part: f"-{part}"),
    )


@given(st.recursive(st.integers(0, 99).map(str), _grown, max_leaves=10))
def test_an_expression_is_what_python_says(text):
    try:
        value = evaluate(text)
    except ToolError:  # by zero or beyond the bounds: Python would take its time
        assume(False)
        return
    spaced = text
    for symbol in ("**", "(", ")", "+", "-", "/"):
        spaced = spaced.replace(symbol, f" {symbol} ")
    exact = " ".join(f"Fraction({p})" if p.isdigit() else p for p in spaced.split())
    assert value == eval(exact, {"Fraction": Fraction})


@given(st.text(max_size=200))
async def test_any_text_gives_a_result_or_a_reason(text):
    try:
        value = evaluate(text)
    except ToolError:  # whatever else is raised fails the test
        return
    assert format_number(value)


@pytest.mark.parametrize(
    "value, source, target, result",
    [
        (1, "MB", "Mb", 8),
        (100, "Mb", "MB", 12.5),
        (1, "megabyte", "megabit", 8),
        (1, "GB", "MB", 1000),
        (1, "GiB", "MiB", 1024),
        (8, "bits", "bytes", 1),
        (8, "b", "B", 1),
        (1, "Kbit", "bit", 1000),
        (1, "KB", "kB", 1),
        (1, "MEGABYTE", "KiloBytes", 1000),
        (1, "KM", "m", 1000),
        (2, "Kg", "G", 2000),
        (1, "WEEK", "days", 7),
        (123456789012, "mm", "mm", 123456789012),
        (123456789012.5, "m", "m", 123456789012.5),
        (0.1, "m", "cm", 10),
        (-40, "°C", "°F", -40),
        (0, "K", "C", -273.15),
        (-273.15, "C", "K", 0),
    ],
)
async def test_units(value, source, target, result):
    assert await convert_units.execute(value=value, from_unit=source, to_unit=target) == result


@pytest.mark.parametrize(
    "value, source, target, why",
    [
        (-300, "celsius", "kelvin", "absolute zero"),
        (-1, "kelvin", "kelvin", "-273.15 °C"),
        (-460, "F", "C", "absolute zero"),
        (1, "mb", "kb", "'Mb' .*'MB'"),
        (1, "kelvin", "kg", "measures temperature"),
        (1, "mille", "km", "Did you mean 'mile'"),
        (float("nan"), "m", "km", "not a number"),
        (float("inf"), "m", "km", "not a number"),
        (1e308, "km", "mm", "too large"),
    ],
)
async def test_what_cannot_be_converted(value, source, target, why):
    with pytest.raises(ToolError, match=why):
        await convert_units.execute(value=value, from_unit=source, to_unit=target)
