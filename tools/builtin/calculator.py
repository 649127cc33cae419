"""Tools for numbers: arithmetic and units of measurement."""

from __future__ import annotations

import math
from fractions import Fraction

from agent_brain.tools.builtin.arithmetic import ExpressionError, evaluate, format_number
from agent_brain.tools.builtin.units import UnitError, convert, find_unit
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool


@tool(idempotent=True)
async def calculate(expression: str) -> str:
    """Calculate an arithmetic expression, exactly where possible.

    Args:
        expression: Such as "(3 + 4) * 2 ** 5", "12 / 100 * 80", "sqrt(2)" or "5!".
    """
    try:
        return format_number(evaluate(expression))
    except ExpressionError as error:
        raise ToolError(f"Cannot calculate this: {error}.") from None


@tool(idempotent=True)
async def convert_units(value: float, from_unit: str, to_unit: str) -> float:
    """Convert a value between units of length, mass, volume, time, area, speed, data, temperature.

    Args:
        value: The value in the first unit.
        from_unit: Such as "mile", "kg", "cup" (US), "fahrenheit", "MB" (megabyte), "Mb" (megabit).
        to_unit: A unit that measures the same.
    """
    try:
        if not math.isfinite(value):
            raise UnitError(f"{value} is not a number that can be converted")
        exact = Fraction(str(value))  # 0.1 is 1/10
        result = float(format_number(convert(exact, find_unit(from_unit), find_unit(to_unit)), 10))
        if math.isinf(result):
            raise UnitError("the result is too large")
        return result
    except (UnitError, OverflowError) as error:
        raise ToolError(f"Cannot convert this: {error}") from None
