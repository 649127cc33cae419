"""Numbers: arithmetic and units of measurement, exact where possible and never ``eval``."""

from __future__ import annotations

from fractions import Fraction

from agent_brain.tools.builtin.evaluate import evaluate
from agent_brain.tools.builtin.expression import ExpressionError, format_number
from agent_brain.tools.builtin.parse import parse
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
        return format_number(evaluate(parse(expression)))
    except ExpressionError as error:
        raise ToolError(f"Cannot calculate this: {error}.") from None


@tool(idempotent=True)
async def convert_units(value: float, from_unit: str, to_unit: str) -> float:
    """Convert a value between units of length, mass, volume, time, area, speed, data, temperature.

    Args:
        value: How many of the first unit.
        from_unit: Such as "mile", "kg", "cup" (US) or "fahrenheit".
        to_unit: A unit that measures the same.
    """
    try:
        result = convert(Fraction(str(value)), find_unit(from_unit), find_unit(to_unit))
        return float(f"{float(result):.10g}")
    except (UnitError, ValueError, OverflowError) as error:
        raise ToolError(f"Cannot convert this: {error}") from None
