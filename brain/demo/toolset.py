"""Five small tools for the demo: real, safe, deterministic but for the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from typing import Annotated, Literal

from pydantic import Field

from agent_brain.demo import words
from agent_brain.tools import BaseTool, ToolError, tool
from agent_brain.tools.builtin.calculator import calculate, convert_units
from agent_brain.tools.builtin.clock import WEEKDAYS, clock_tool

MAX_TEXT = 20_000  # characters


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


def demo_tools(*, clock: Callable[[tzinfo], datetime] = datetime.now) -> list[BaseTool]:
    """The tools of the demo: calculate, date_math, text_tool, convert_units, current_time.

    Args:
        clock: The current time in a zone; pass a function of your own to fix it.
    """
    return [calculate, date_math, text_tool, convert_units, clock_tool(clock)]
