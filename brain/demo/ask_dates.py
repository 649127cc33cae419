"""Questions about dates and the time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_brain.demo.asks import Ask
from agent_brain.demo.calendar import SPAN_PATTERN, Day, Today, mark_dates, read_span
from agent_brain.demo.numbers import words_to_digits

_DAYS = (
    r"(?:(?:what is )?(?:the )?(?:how many|number of|count(?: the)?) )?days?"
    r"(?: (?:are|is|were|was|lie|do we have|have|has))?"
    r"(?: there| it| passed| gone by| left| to go)*"
)
_BETWEEN = re.compile(rf"{_DAYS} (?:between|from) §0 (?:and|to|until|till|through) §1", re.I)
_UNTIL = re.compile(
    rf"(?:{_DAYS}|how long(?: is it)?)(?: from now)? (?:until|till|to|before) §0", re.I
)
_SINCE = re.compile(rf"(?:{_DAYS}|how long(?: is it| has it been)?) (?:since|after) §0", re.I)
_WEEKDAY = re.compile(
    r"(?:(?:on )?(?:what|which) (?:weekday|day of the week|day)(?: (?:is|was|will|does|did|it))*"
    r"(?: be)?|(?:the )?(?:weekday|day of the week) (?:of|for|on))(?: on)? §0"
    r"(?: (?:fall|be|land)(?: on)?)?",
    re.I,
)
_IS_DAY = re.compile(
    r"(?:is|was|will|does|did) §0 (?:fall )?(?:be )?(?:on )?(?:an? )?"
    r"(monday|tuesday|wednesday|thursday|friday|saturday|sunday)",
    re.I,
)
_WHICH = r"(?:(?:what|which)(?: is| was)? (?:the )?(?:date|day)?(?: (?:is|was|will|it|be))* ?)?"
_SPAN = rf"(?P<span>(?:a |an |one )?{SPAN_PATTERN}|a (?:day|week|fortnight|month|year))"
_MOVES = [
    re.compile(rf"{_WHICH}{_SPAN} (?P<way>after|from|before|prior to) §0", re.I),
    re.compile(rf"{_WHICH}§0 (?P<way>plus|minus) {_SPAN}", re.I),
    re.compile(rf"(?P<way>add) {_SPAN} to §0", re.I),
    re.compile(rf"(?P<way>subtract) {_SPAN} from §0", re.I),
]
_MOVES_TODAY = [
    re.compile(rf"{_WHICH}{_SPAN} (?P<way>ago)", re.I),
    re.compile(rf"{_WHICH}(?P<way>in) {_SPAN}(?: time)?", re.I),
]
_BACK = ("before", "prior to", "minus", "subtract", "ago")
_NOW = re.compile(
    r"(?:(?:what|which|tell me|give me)(?:'s| is| was)? )?(?:the )?(?:current |present |local )?"
    r"(?P<part>date and time|date|time|day of the week|weekday|day|"
    r"year|month)(?: of the day)?"
    r"(?: (?:is|was|it|today|now|right|at the moment|currently|§0))*"
    r"(?: (?:in|at|for) (?P<place>[\w/ .,-]+?))?(?: (?:right )?(?:now|today|§\d))?",
    re.I,
)
_TODAYS = re.compile(r"(?:what(?:'s| is) )?§0(?:'s)? ?(?P<part>date|weekday|day)?", re.I)


def read_dates(text: str) -> list[Ask] | None:
    """The questions about dates or times that ``text`` is, or None."""
    plain = re.sub(r"\bone (?=day|week|fortnight|month|year)", "1 ", text, flags=re.I)
    marked, days = mark_dates(words_to_digits(re.sub(r"\bwhat's\b", "what is", plain, flags=re.I)))
    marked = re.sub(r"\s+", " ", marked).strip(" ?!.")
    if match := _BETWEEN.fullmatch(marked):
        return [Ask("days_between", text, {"start": days[0], "end": days[1]})]
    if _UNTIL.fullmatch(marked):
        return [Ask("days_between", text, {"start": Today(), "end": days[0]})]
    if _SINCE.fullmatch(marked):
        return [Ask("days_between", text, {"start": days[0], "end": Today()})]
    if (match := _NOW.fullmatch(marked)) and match["part"] == "date" and len(days) == 1:
        if isinstance(days[0], Today) and days[0].offset:
            return [Ask("add_days", text, {"date": Today(), "days": days[0].offset})]
    if _is_now(marked, days):
        return _now(text, marked)
    if _WEEKDAY.fullmatch(marked):
        return [Ask("weekday", text, {"date": days[0]})]
    if match := _IS_DAY.fullmatch(marked):
        return [Ask("weekday", text, {"date": days[0], "guess": match[1].capitalize()})]
    return _moved(text, marked, days)


def _is_now(marked: str, days: Sequence[Day]) -> bool:
    if any(day != Today() for day in days):
        return False
    today = _TODAYS.fullmatch(marked)
    if today:
        return marked.lower().startswith("what") or bool(today["part"])
    match = _NOW.fullmatch(marked)
    return bool(match) and (" " in marked)


def _now(text: str, marked: str) -> list[Ask]:
    match = _NOW.fullmatch(marked) or _TODAYS.fullmatch(marked)
    found = match.groupdict() if match else {}
    part = (found.get("part") or "date").lower()
    if part in ("year", "month") and not marked.lower().startswith(("what", "which", "current")):
        return []
    wanted = {"day of the week": "weekday", "day": "weekday"}.get(part, part)
    places = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+(?:in\s+)?", found.get("place") or "")
    return [Ask("now", text, {"part": wanted, "place": place.strip()}) for place in places]


def _moved(text: str, marked: str, days: Sequence[Day]) -> list[Ask] | None:
    for pattern in (*_MOVES, *_MOVES_TODAY):
        match = pattern.fullmatch(marked)
        if match is None:
            continue
        if pattern in _MOVES_TODAY and match["way"] == "in" and not marked.lower().startswith("w"):
            return None
        span = read_span(re.sub(r"^an? (?=[a-z])", "1 ", match["span"], flags=re.I))
        sign = -1 if match["way"].lower() in _BACK else 1
        moves = {unit: sign * amount for unit, amount in span.items()}
        return [Ask("add_days", text, {"date": days[0] if days else Today(), **moves})]
    return None
