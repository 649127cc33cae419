"""From an ask to a sentence that answers it, through the tools in the box."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from agent_brain.demo.asks import Ask
from agent_brain.demo.box import Box, NoTool, Stopped, Waiting
from agent_brain.demo.calendar import MONTHS, Today, YearlyDay, settle
from agent_brain.demo.conversation import Called
from agent_brain.tools.builtin.expression import (
    Earlier,
    Node,
    Number,
    Operation,
    format_number,
    render,
)
from agent_brain.tools.builtin.zones import find_zone


@dataclass(frozen=True, slots=True)
class Solved:
    """An ask with its answer.

    Attributes:
        sentence: For the reader.
        value: The bare result, as the tool wrote it; None where there is none.
    """

    sentence: str
    value: str | None = None


def solve(ask: Ask, box: Box, earlier: str | None) -> Solved:
    """Answer ``ask``.

    Args:
        ask: What is wanted.
        box: The tools and their results.
        earlier: What "it" is: the result before this one.

    Raises:
        Waiting: Calls have to be made first.
        Stopped: It cannot be done.
    """
    if ask.kind == "calculate":
        return _calculated(ask.slots["expression"], box, earlier)
    solver = _SOLVERS.get(ask.kind, _about_text)
    return solver(ask, box)


def _value(result: Called) -> str:
    if result.is_error:
        raise Stopped(f"the tool {result.name} reported an error: {result.content.strip()}")
    return result.content.strip()


def read_number(content: str) -> Fraction | None:
    """The number that a result is or plainly holds."""
    try:
        return Fraction(content.strip())
    except (ValueError, ZeroDivisionError):
        found = re.findall(r"-?\d+(?:\.\d+)?(?![\w-])", content)
        return Fraction(found[0]) if len(found) == 1 and "-" not in content[1:] else None


def _calculated(node: Node, box: Box, earlier: str | None) -> Solved:
    if _refers(node):
        value = read_number(earlier) if earlier is not None else None
        if value is None:
            raise Stopped("I do not know which number you mean: I have no earlier result for it")
        node = _replaced(node, Number(value))
    text = render(node)
    if isinstance(node, Number):
        return Solved(f"Start with {text}.", text)
    try:
        value_text = _value(box.known("calculate", {"expression": text}))
    except NoTool:
        value_text = format_number(_stepwise(node, box))
    return Solved(f"{text} = {value_text}.", value_text)


def _stepwise(node: Node, box: Box) -> Fraction:
    """Work an expression out with tools that do one operation each, inner ones first."""
    if isinstance(node, Number):
        return Fraction(node.value)
    assert isinstance(node, Operation)
    values = [_stepwise(operand, box) for operand in node.operands]
    numbers = [int(v) if v.denominator == 1 else float(v) for v in values]
    content = _value(box.operation(node.name, numbers))
    result = read_number(content)
    if result is None:
        raise Stopped(f"I cannot read a number in the result {content!r}")
    return result


def _refers(node: Node) -> bool:
    if isinstance(node, Operation):
        return any(_refers(operand) for operand in node.operands)
    return isinstance(node, Earlier)


def _replaced(node: Node, value: Number) -> Node:
    if isinstance(node, Operation):
        return Operation(node.name, tuple(_replaced(part, value) for part in node.operands))
    return value if isinstance(node, Earlier) else node


def _today(box: Box) -> date:
    result = box.known("now", {})
    found = re.search(r"\b(\d{4})-(\d{2})-(\d{2})\b", _value(result))
    if found is None:
        raise Stopped(f"the tool {result.name} did not tell a date")
    return date.fromisoformat(found[0])


def _settled(box: Box, day: Any, *, after: bool | None = None) -> str:
    if not isinstance(day, (Today, YearlyDay)):
        return str(day)
    return settle(day, _today(box), after=after)


def _days_between(ask: Ask, box: Box) -> Solved:
    start = _settled(box, ask.slots["start"], after=False if ask.slots["end"] == Today() else None)
    end = _settled(box, ask.slots["end"], after=True if ask.slots["start"] == Today() else None)
    value = _value(box.known("days_between", {"start": start, "end": end}))
    return Solved(f"From {start} to {end} it is {_counted(value, 'day')}.", value)


def _counted(value: str, noun: str) -> str:
    return f"{value} {noun}{'' if value in ('1', '-1') else 's'}"


def _weekday(ask: Ask, box: Box) -> Solved:
    day = _settled(box, ask.slots["date"])
    value = _value(box.known("weekday", {"date": day}))
    guess = ask.slots.get("guess")
    verdict = "" if guess is None else ("Yes: " if guess in value else "No: ")
    return Solved(f"{verdict}{day} is a {value}.", value)


def _add_days(ask: Ask, box: Box) -> Solved:
    day = _settled(box, ask.slots["date"])
    moves = {unit: ask.slots[unit] for unit in ("days", "months") if unit in ask.slots}
    value = _value(box.known("add_days", {"date": day, **moves}))
    spans = " and ".join(_counted(str(abs(n)), unit[:-1]) for unit, n in moves.items())
    way = "before" if min(moves.values()) < 0 else "after"
    return Solved(f"{spans} {way} {day} is {value}.", value)


def _now(ask: Ask, box: Box) -> Solved:
    place, part = ask.slots["place"], ask.slots["part"]
    slots = {"zone": find_zone(place) or place} if place else {}
    try:
        content = _value(box.known("now", slots))
    except NoTool:
        if slots:
            raise
        slots = {"zone": "UTC"}
        content = _value(box.known("now", slots))
    found = _parts(content)
    where = f" in {place}" if place else f" ({found.get('zone', 'as the tool tells it')})"
    if part == "time" and "time" in found:
        return Solved(
            f"It is {found['time']}{where}, {found.get('date', '')}".rstrip(", ") + ".",
            found["time"],
        )
    if part == "weekday" and "weekday" in found and "date" in found:
        return Solved(f"Today{where} is {found['weekday']}, {found['date']}.", found["weekday"])
    if part in ("year", "month") and "date" in found:
        return _month_or_year(part, found["date"])
    if "date" in found and part != "time":
        clock = f", {found['time']}" if "and" in part and "time" in found else ""
        return Solved(f"Today{where} is {found['date']}{clock}.", found["date"])
    return Solved(f"The clock{where} says: {content}.", content)


def _month_or_year(part: str, day: str) -> Solved:
    year, month, _ = day.split("-")
    value = year if part == "year" else f"{MONTHS[int(month) - 1].capitalize()} {year}"
    return Solved(f"It is {value}.", value)


def _parts(content: str) -> dict[str, str]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return {key: str(one) for key, one in value.items()} if isinstance(value, dict) else {}


def _convert(ask: Ask, box: Box) -> Solved:
    value = _value(box.known("convert", ask.slots))
    shown = value.removesuffix(".0")
    amount = f"{ask.slots['value']} {ask.slots['from_unit']}"
    return Solved(f"{amount} = {shown} {ask.slots['to_unit']}.", shown)


def _about_text(ask: Ask, box: Box) -> Solved:
    value = _value(box.known(ask.kind, ask.slots))
    text = f"'{ask.slots['text']}'"
    if ask.kind == "is_palindrome":
        verdict = {"true": "is", "false": "is not"}.get(value.lower())
        sentence = f"{text} {verdict} a palindrome." if verdict else f"{text}: {value}."
    elif ask.kind == "count_occurrences":
        times = "once" if value == "1" else f"{value} times"
        sentence = f"'{ask.slots['search']}' occurs {times} in {text}."
    elif ask.kind.startswith("count_"):
        sentence = f"{text} has {_counted(value, ask.kind.removeprefix('count_')[:-1])}."
    else:
        done = {"reverse": "reversed", "uppercase": "in upper case", "lowercase": "in lower case"}
        sentence = f"{text} {done.get(ask.kind, 'sorted')} is '{value}'."
    return Solved(sentence, value)


def _other(ask: Ask, box: Box) -> Solved:
    results = box.other(ask.text)
    sentences = [_told(result, several=len(results) > 1) for result in results]
    return Solved(" ".join(sentences), results[-1].content.strip())


def _told(result: Called, *, several: bool) -> str:
    values = ", ".join(str(value) for value in result.args.values())
    label = f"{result.name}({values})" if several or values else result.name
    if result.is_error:
        return f"The tool {label} reported an error: {result.content.strip()}"
    parts = _parts(result.content)
    content = ", ".join(f"{key}: {value}" for key, value in parts.items()) or result.content.strip()
    return f"{label} says: {content}" + ("" if content.endswith((".", "!", "?")) else ".")


_SOLVERS: dict[str, Callable[[Ask, Box], Solved]] = {
    "add_days": _add_days,
    "convert": _convert,
    "days_between": _days_between,
    "now": _now,
    "other": _other,
    "weekday": _weekday,
}

__all__ = ["Solved", "Stopped", "Waiting", "read_number", "solve"]
