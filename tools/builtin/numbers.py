"""Numbers as people write them: no digit is shown that is not right."""

from __future__ import annotations

from decimal import Context
from fractions import Fraction
from typing import TypeAlias

Value: TypeAlias = Fraction | float

_SHORT = 25  # digits of an exact decimal that is shown in full
_WHOLE = {Fraction: 21, float: 15}  # digits of a whole part that is shown in full


def format_number(value: Value, digits: int = 12) -> str:
    """``value`` in full where that is short, else to ``digits`` significant digits or more.

    The whole part is never rounded: a long one gets two decimals, a very long one an exponent.
    """
    exact = Fraction(value)
    if exact.denominator == 1 and isinstance(value, Fraction):
        return str(exact.numerator)
    whole, most = len(str(abs(int(exact)))), _WHOLE[type(value)]
    context = Context(prec=_SHORT)
    shown = context.divide(exact.numerator, exact.denominator)
    if Fraction(shown) != exact or isinstance(value, float):
        context.prec = max(digits, min(whole + 2, most)) if whole <= most else digits
        shown = context.divide(exact.numerator, exact.denominator)
    plain = whole <= most and (abs(exact) >= Fraction(1, 10**6) or exact == 0)
    return f"{shown.normalize(context):{'f' if plain else 'g'}}"
