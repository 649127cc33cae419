"""Days and months that a question names, and how well the day of a message fits them.

The answer to a question about a day was mostly said on that day, or a few days before or after it.
A month has less weight than a day. A date without a year matches every year.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

MONTHS = (
    "january february march april may june july august september october november december"
).split()
NEAR = 3  # days before and after a named day that also fit
MONTH_WEIGHT = 0.5  # of a day: 1

_NAME = "|".join(f"{month[:3]}(?:{month[3:]})?" if month != "may" else month for month in MONTHS)
_NAME = _NAME.replace("sep(?:tember)?", "sept?(?:ember)?")
_YEAR = r"(?:,?\s+(?:of\s+)?(\d{4})\b)?"
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?:of\s+)?({_NAME})\b\.?{_YEAR}")
_MONTH_DAY = re.compile(rf"\b({_NAME})\b\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d){_YEAR}")
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_FULL = "|".join(month for month in MONTHS if month != "may")
_MONTH = re.compile(rf"\b(?:({_FULL})\b|(?<=in )(may)\b|(may)(?=,? \d{{4}}\b)){_YEAR}")
_AGO = re.compile(r"\b(\d{1,3}|an?|one|two|three|four|five|six) (day|week|month)s? ago\b")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DAYS = {"day": 1, "week": 7, "month": 30}


class Span(NamedTuple):
    """Days from ``first`` to ``last`` (proleptic ordinals), and the weight of a message of one."""

    first: int
    last: int
    weight: float = 1.0


Named: TypeAlias = tuple[int | None, int, int | None]
"""A day and its month, or a month if the day is None, of one year, or of any if that is None."""


def named_dates(question: str) -> list[Named]:
    """Return the days named in ``question``; if there are none, the months."""
    text = question.lower()
    days: list[Named] = [(int(d), _month(m), _year(y)) for d, m, y in _DAY_MONTH.findall(text)]
    days += [(int(d), _month(m), _year(y)) for m, d, y in _MONTH_DAY.findall(text)]
    days += [(int(d), int(m), int(y)) for y, m, d in _ISO.findall(text) if 1 <= int(m) <= 12]
    return days or [(None, _month(a or b or c), _year(y)) for a, b, c, y in _MONTH.findall(text)]


def relative_spans(question: str, now: datetime) -> Iterator[Span]:
    """Yield the days that ``question`` gives relative to ``now``: yesterday, two weeks ago."""
    text, today = question.lower(), now.date().toordinal()
    if "yesterday" in text or "last night" in text:
        yield Span(today - 1, today - 1)
    if "today" in text or "this morning" in text:
        yield Span(today, today)
    for number, unit in _AGO.findall(text):
        days = _DAYS[unit] * (_NUMBERS.get(number) or int(number))
        yield Span(today - days - _DAYS[unit] // 4, today - days + _DAYS[unit] // 4)
    if "last week" in text:
        monday = today - now.weekday() - 7
        yield Span(monday, monday + 6, MONTH_WEIGHT)
    if "last month" in text:
        before = now.date().replace(day=1) - timedelta(days=1)
        yield Span(before.replace(day=1).toordinal(), before.toordinal(), MONTH_WEIGHT)


def spans_of(question: str, years: Collection[int]) -> list[Span]:
    """Return the days of :func:`named_dates`; one without a year has days in each of ``years``."""
    dates = named_dates(question)
    found = [_span(y, m, d) for d, m, year in dates for y in (years if year is None else [year])]
    return [span for span in found if span is not None]


def _span(year: int, month: int, day: int | None) -> Span | None:
    """Return the days of a day or a month; None if there is no such day."""
    try:
        first = date(year, month, day or 1).toordinal()
    except ValueError:
        return None
    if day is not None:
        return Span(first, first)
    return Span(first, first + monthrange(year, month)[1] - 1, MONTH_WEIGHT)


def closeness(days: NDArray[np.float64], spans: Iterable[Span]) -> NDArray[np.float32]:
    """Return how well each day fits the best of ``spans``: its weight inside, less near it.

    A day that is not a number fits none.
    """
    best = np.zeros(len(days), np.float32)
    for span in spans:
        away = np.maximum(np.maximum(span.first - days, days - span.last), 0)
        fits = span.weight * np.maximum(1 - away.astype(np.float32) / (NEAR + 1), 0)
        np.fmax(best, fits, out=best)
    return best


def _month(name: str) -> int:
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(name[:3]))


def _year(text: str) -> int | None:
    return int(text) if text and int(text) else None
