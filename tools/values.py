"""Numbers that callers pass as options, checked before they are used."""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral, Real
from typing import Any


def is_count(value: Any, *, least: int = 1) -> bool:
    """Whether this is a whole number of at least ``least``; True and False are not numbers here."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def is_amount(value: Any, *, zero: bool = False) -> bool:
    """Whether this is a number above 0, or 0 if ``zero``; True and False are not numbers here."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return False
    number = float(value)
    return number > 0 or (zero and number == 0)
