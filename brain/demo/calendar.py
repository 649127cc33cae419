"""Dates, spans and places as people write them. No clock here: "today" stays a word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeAlias

MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]}|\\.)?" if name != "may" else name for name in MONTHS)


@dataclass(frozen=True, slots=True)
class Today:
    """The current date, moved by so many days."""

    offset: int = 0


@dataclass(frozen=True, slots=True)
class YearlyDay:
    """A day of any year, such as 24 December."""

    month: int
    day: int


Day: TypeAlias = str | Today | YearlyDay  # a string is an ISO date, perhaps of a day that is none

_FEASTS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "new year": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
}
_RELATIVE = {"today": 0, "now": 0, "tomorrow": 1, "yesterday": -1}
_DATE = re.compile(
    r"\b(?P<iso>\d{4}[-/]\d{1,2}[-/]\d{1,2})\b"
    r"|\b(?P<dotted>\d{1,2}\.\d{1,2}\.\d{4})\b"
    rf"|\b(?:the )?(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH})\b"
    r"(?:,? (?P<y1>\d{4})\b)?"
    rf"|\b(?P<m2>{_MONTH}) (?:the )?(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y2>\d{{4}})\b)?"
    rf"|\b(?:the )?(?P<feast>{'|'.join(_FEASTS)})(?: (?P<y3>\d{{4}}))?\b"
    r"|\b(?P<relative>today|tomorrow|yesterday|now)\b",
    re.I,
)


def mark_dates(text: str) -> tuple[str, list[Day]]:
    """``text`` with each date replaced by ``§0``, ``§1``, … and the dates in order."""
    found: list[Day] = []

    def mark(match: re.Match[str]) -> str:
        found.append(_day(match))
        return f"§{len(found) - 1}"

    return _DATE.sub(mark, text), found


def _day(match: re.Match[str]) -> Day:
    part = match.groupdict()
    if part["iso"]:
        year, month, day = re.split(r"[-/]", part["iso"])
        return _iso(year, int(month), int(day))
    if part["dotted"]:
        day, month, year = part["dotted"].split(".")
        return _iso(year, int(month), int(day))
    if part["relative"]:
        return Today(_RELATIVE[part["relative"].lower()])
    if part["feast"]:
        number, of_month = _FEASTS[part["feast"].lower()]
        year = part["y3"]
    else:
        name = (part["m1"] or part["m2"]).lower()[:3]
        number = next(i for i, month in enumerate(MONTHS, start=1) if month.startswith(name))
        of_month = int(part["d1"] or part["d2"])
        year = part["y1"] or part["y2"]
    return _iso(year, number, of_month) if year else YearlyDay(number, of_month)


def _iso(year: str, month: int, day: int) -> str:
    return f"{int(year):04d}-{month:02d}-{day:02d}"


def settle(day: Day, today: date, *, after: bool | None = None) -> str:
    """The ISO date that ``day`` means when it is ``today``.

    Args:
        day: What was written.
        today: The current date.
        after: For a day without a year: True the next one, False the last one, None this year's.
    """
    if isinstance(day, str):
        return day
    if isinstance(day, Today):
        return (today + timedelta(days=day.offset)).isoformat()
    this_year = _iso(str(today.year), day.month, day.day)
    year = today.year
    if after is True and this_year < today.isoformat():
        year += 1
    if after is False and this_year > today.isoformat():
        year -= 1
    return _iso(str(year), day.month, day.day)


_SPAN = re.compile(r"(\d+)\s+(day|week|fortnight|month|year)s?\b", re.I)
SPAN_PATTERN = r"\d+\s+(?:day|week|fortnight|month|year)s?(?:(?:,| and|, and)? \d+ (?:day|week)s?)*"
_IN_DAYS = {"day": 1, "week": 7, "fortnight": 14}


def read_span(text: str) -> dict[str, int]:
    """The span "2 weeks and 3 days" as ``{"days": 17}``; months and years as ``{"months": …}``."""
    span: dict[str, int] = {}
    for digits, unit in _SPAN.findall(text):
        unit = unit.lower()
        key, size = ("days", _IN_DAYS[unit]) if unit in _IN_DAYS else ("months", 1)
        span[key] = span.get(key, 0) + int(digits) * (12 if unit == "year" else size)
    return span
