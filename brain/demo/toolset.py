"""Five small tools for the demo: real, safe, deterministic but for the clock."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from fractions import Fraction
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from agent_brain.demo import words
from agent_brain.demo.calendar import WEEKDAYS, find_zone, zones
from agent_brain.demo.evaluate import evaluate
from agent_brain.demo.expression import ExpressionError, format_number
from agent_brain.demo.parse import parse
from agent_brain.demo.units import UnitError, convert, find_unit
from agent_brain.tools import BaseTool, ToolError, tool

MAX_TEXT = 20_000  # characters


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
async def date_math(
    operation: Literal["days_between", "add_days", "weekday"],
    date: str,
    other_date: str | None = None,
    days: int = 0,
    months: int = 0,
) -> int | str:
    """Work with dates: days between two dates, a date some days after or before another, a weekday.

    Args:
        operation: What to work out.
        date: An ISO date such as "2026-03-01"; for days_between the earlier one.
        other_date: For days_between: the later date.
        days: For add_days: how many; a negative number goes back.
        months: For add_days: calendar months to add before the days.
    """
    start = _date(date)
    if operation == "weekday":
        return WEEKDAYS[start.weekday()]
    if operation == "add_days":
        return _moved(start, months, days)
    if other_date is None:
        raise ToolError("days_between needs other_date, the second date.")
    return (_date(other_date) - start).days


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ToolError(f"{text!r} is not a date: {error}. Write YYYY-MM-DD.") from None


def _moved(start: date, months: int, days: int) -> str:
    try:
        year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
        last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
        moved = date(year, month + 1, min(start.day, last))
        return (moved + timedelta(days=days)).isoformat()
    except (ValueError, OverflowError):
        raise ToolError("That is outside the years 1 to 9999.") from None


@tool(idempotent=True)
async def text_tool(
    operation: Literal[
        "count_letters",
        "count_characters",
        "count_words",
        "count_vowels",
        "count_occurrences",
        "reverse",
        "uppercase",
        "lowercase",
        "sort_words",
        "is_palindrome",
    ],
    text: Annotated[str, Field(max_length=MAX_TEXT)],
    search: str | None = None,
) -> int | str | bool:
    """Count letters, words or vowels of a text, reverse it, change its case, sort its words.

    Args:
        operation: What to do with the text.
        text: The text itself.
        search: For count_occurrences: the letter or word to count.
    """
    if operation != "count_occurrences":
        return words.OPERATIONS[operation](text)
    if not search:
        raise ToolError("count_occurrences needs search, the letter or word to count.")
    return text.lower().count(search.lower())


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


def _clock_tool(clock: Callable[[tzinfo], datetime]) -> BaseTool:
    @tool
    async def current_time(zone: str = "UTC") -> dict[str, str]:
        """Tell the current date, weekday and time (now, today) in a time zone.

        Args:
            zone: An IANA time zone such as "Asia/Tokyo", or a city.
        """
        now = clock(_zone(zone))
        return {
            "date": now.date().isoformat(),
            "weekday": WEEKDAYS[now.weekday()],
            "time": f"{now:%H:%M}",
            "zone": zone,
        }

    return current_time


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    found = find_zone(name)
    if found is None:
        near = difflib.get_close_matches(name.lower(), zones(), n=1, cutoff=0.75)
        hint = f" Did you mean {zones()[near[0]]!r}?" if near else ""
        raise ToolError(f"There is no time zone {name!r}.{hint}")
    return ZoneInfo(found)


def demo_tools(*, clock: Callable[[tzinfo], datetime] = datetime.now) -> list[BaseTool]:
    """The tools of the demo: calculate, date_math, text_tool, convert_units, current_time.

    Args:
        clock: The current time in a zone; pass a function of your own to fix it.
    """
    return [calculate, date_math, text_tool, convert_units, _clock_tool(clock)]
