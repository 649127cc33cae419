"""The tools of the demo: safe, and deterministic except for the clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Literal

from agent_brain.tools import BaseTool, ToolError, tool
from agent_brain.tools.builtin import calculate, convert_units
from agent_brain.tools.builtin.clock import WEEKDAYS, clock_tool


@tool(idempotent=True)
async def date_math(
    operation: Literal["days_between", "add_days", "weekday"],
    date: dt.date,
    other_date: dt.date | None = None,
    days: int = 0,
) -> int | str:
    """Work with dates: days between two dates, a date some days after another, a weekday.

    Args:
        operation: What to calculate.
        date: An ISO date such as "2026-03-01"; for days_between the earlier one.
        other_date: For days_between: the later date.
        days: For add_days: the number of days, negative for earlier dates.
    """
    if operation == "weekday":
        return WEEKDAYS[date.weekday()]
    if operation == "add_days":
        try:
            return (date + dt.timedelta(days=days)).isoformat()
        except OverflowError:
            raise ToolError("The result is outside the years 1 to 9999.") from None
    if other_date is None:
        raise ToolError("days_between needs other_date, the second date.")
    return (other_date - date).days


@tool(idempotent=True)
async def text_tool(
    operation: Literal["count_letters", "count_words", "reverse", "uppercase"], text: str
) -> int | str:
    """Count the letters or words of a text, reverse it, or write it in upper case.

    Args:
        operation: What to do with the text.
        text: The text itself.
    """
    if operation == "count_letters":
        return sum(letter.isalpha() for letter in text)
    if operation == "count_words":
        return len(text.split())
    return text[::-1] if operation == "reverse" else text.upper()


def demo_tools(*, clock: Callable[[dt.tzinfo], dt.datetime] = dt.datetime.now) -> list[BaseTool]:
    """Return the tools of the demo: calculate, date_math, text_tool, convert_units, current_time.

    Args:
        clock: Returns the current time in a zone; pass your own function to fix it.
    """
    return [calculate, date_math, text_tool, convert_units, clock_tool(clock)]
