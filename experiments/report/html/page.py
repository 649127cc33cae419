"""The report of an experiment as one HTML file."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import log10
from typing import Any, NamedTuple
from urllib.parse import quote

import anyio
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from agent_brain.common.secrets import scrub
from agent_brain.common.text import count_of, cut_line
from agent_brain.experiments.case import CaseResult, Cell
from agent_brain.experiments.report.figures import CellReport
from agent_brain.experiments.report.html.case_data import LOOKS, MOST_BYTES, CaseData
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.report.words import (
    AMOUNTS,
    NOTHING,
    conclusions,
    dollars,
    interval,
    made_with,
    percent,
    why,
)

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 18, 54
LETTER, LINE = 7.6, 17  # the size of a label's letters
MOST_NAMES = 18  # with more cells, labels are numbers
WIDE = 20  # times; a wider range is drawn on a logarithmic scale
_TRIES = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 8, -8, 10, -10)  # lines up and down


class Box(NamedTuple):
    """A part of the picture that is taken."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: Box) -> bool:
        """Return whether the boxes have a part in common."""
        apart_x = self.x + self.width < other.x or other.x + other.width < self.x
        apart_y = self.y + self.height < other.y or other.y + other.height < self.y
        return not (apart_x or apart_y)


class Scale:
    """Where values are on the line of costs or tokens.

    Args:
        values: The values, 0 or more.
    """

    def __init__(self, values: Sequence[float]) -> None:
        self._most = max(values) * 1.08 or 1.0
        least = min(values)
        self.logarithmic = least > 0 and max(values) / least > WIDE
        self._least = least / 1.3

    def at(self, value: float) -> float:
        """Return where a value is."""
        share = value / self._most
        if self.logarithmic:
            share = log10(value / self._least) / log10(self._most / self._least)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def marks(self) -> list[float]:
        """Return values to mark: few and round."""
        if self.logarithmic:
            powers = range(int(log10(self._least)) - 1, int(log10(self._most)) + 2)
            found = [digit * 10.0**power for power in powers for digit in (1, 3)]
            return [value for value in found if self._least <= value <= self._most]
        rough = self._most / 5
        power: float = 10.0 ** (int(log10(rough)) - (rough < 1))
        step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
        return [step * n for n in range(int(self._most / step) + 1)]


def make_picture(report: Report) -> dict[str, Any] | None:
    """Return the picture of the cells that have cases; None if there are none."""
    cells = [one for one in report.cells if one.cases]
    if not cells:
        return None
    priced = [one for one in cells if one.cost is not None]
    by_cost = any(one.cost for one in priced)
    shown = priced if by_cost else cells
    values = [(one.cost or 0.0) / len(one.cases) if by_cost else one.tokens for one in shown]
    scale, write = Scale(values), dollars if by_cost else "{:,.0f}".format
    unit = "US dollars of a case" if by_cost else "Tokens of a case"
    left_out = [report.names[one.cell] for one in cells if one not in shown]
    return {
        "title": "Accuracy by cost" if by_cost else "Accuracy by tokens",
        "about": " ".join(_about(left_out, by_cost=by_cost, known=bool(priced))),
        "unit": f"{unit}, logarithmic" if scale.logarithmic else unit,
        "rates": [(_up(rate), percent(rate)) for rate in (0.0, 0.25, 0.5, 0.75, 1.0)],
        "costs": [(scale.at(value), write(value)) for value in scale.marks()],
        "points": [*_points(report, shown, [(scale.at(value), write(value)) for value in values])],
    }


def _about(left_out: Sequence[str], *, by_cost: bool, known: bool) -> Iterator[str]:
    if not by_cost:
        yield f"{'Nothing was paid' if known else 'No cost is known'}, so this is by tokens."
    yield (
        f"{'Cost' if by_cost else 'Tokens'} of a case, the mean, and the rate of cases that passed "
        "with its 95 % interval. Cheap and good is at the top left."
    )
    if left_out:
        yield f"Left out, as their cost is not known: {', '.join(left_out)}."


def _points(
    report: Report, cells: Sequence[CellReport], costs: Sequence[tuple[float, str]]
) -> Iterator[dict[str, Any]]:
    """Yield the points: figures, place, ends of the interval, label, and where a line to it ends.

    Args:
        report: The report.
        cells: The cells that are drawn.
        costs: Where each is on the line of costs, and its cost as it is written.
    """
    rates = [(_up(one.passed.rate), _up(one.passed.low), _up(one.passed.high)) for one in cells]
    places = [(x, *rate) for (x, _), rate in zip(costs, rates, strict=True)]
    taken = [Box(x - 6, y - 6, 12, 12) for x, y, _, _ in places]
    ranges = [Box(x - 3, high, 6, low - high) for x, _, low, high in places]
    for one, (_, amount), (x, y, low, high) in zip(cells, costs, places, strict=True):
        number = str(report.info.cells.index(one.cell) + 1)
        name = number if len(cells) > MOST_NAMES else f"{number} {report.names[one.cell]}"
        label = _free(name, x, y, taken, ranges)
        taken.append(label)
        middle, side = label.y + LINE / 2, label.x if label.x > x else label.x + label.width
        leader = None if abs(middle - y) <= LINE else (side, middle)
        point = {"one": one, "amount": amount, "x": x, "y": y, "low": low, "high": high}
        yield point | {"name": name, "label": label, "leader": leader}


def _free(name: str, x: float, y: float, taken: Sequence[Box], ranges: Sequence[Box]) -> Box:
    """Return the nearest place beside a point for a label that nothing else has, if possible."""
    width = len(name) * LETTER + 4
    boxes = [
        Box(side, y - LINE / 2 + lines * LINE, width, LINE)
        for lines in _TRIES
        for side in (x + 9, x - 9 - width)
    ]

    def faults(box: Box) -> tuple[bool, ...]:
        inside = LEFT <= box.x <= WIDTH - width and 0 <= box.y <= HEIGHT - BOTTOM + 4 - LINE
        return not inside, any(map(box.meets, taken)), any(map(box.meets, ranges))

    return min(boxes, key=faults)  # of equal ones the first


def _up(rate: float) -> float:
    return round(TOP + (1 - rate) * (HEIGHT - TOP - BOTTOM), 1)


_KEPT = "!*'()"  # by encodeURIComponent, too


def html_page(report: Report, *, most_bytes: int = MOST_BYTES) -> str:
    """Return a report as one page of HTML that needs no other file and no network.

    The page of each run is inside it: of those that failed first, of the others as long as there is
    room. What is left out is said where it would be. Without JavaScript the tables can be read.

    Args:
        report: The report. The sessions of its cases are read from its folder, if it has one.
        most_bytes: About how large the pages of runs may be together.
    """
    data = CaseData(report, most_bytes=most_bytes)
    with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
        thread.submit(anyio.run, data.read).result()
    style, script = _file("page.css"), _file("page.js")
    left_out = (
        f"{data.left_out} cases are in this file without their steps, to keep it small: their "
        "pages say how to look at them."
    )
    return (
        _environment()
        .get_template("page.html")
        .render(
            _values(report),
            warnings=report.warnings + ([left_out] if data.left_out else []),
            data={name: _as_json(value) for name, value in data.blocks().items()},
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
        )
    )


def _values(report: Report) -> Mapping[str, Any]:
    """Return what the template shows of a report, beside the pages of its cases."""
    cells, groups = report.info.cells, report.groups

    def cases_of(cell: Cell, task: str) -> list[CaseResult]:
        return groups[cell].get(task, [])

    def failed_or_first(cell: Cell, task: str) -> CaseResult:
        cases = cases_of(cell, task)
        return next((case for case in cases if not case.passed), cases[0])

    def look_of(task: str) -> str:
        """Return whether all cells passed a task alike."""
        done = [cases for cell in cells if (cases := cases_of(cell, task))]
        rates = {sum(case.passed for case in cases) / len(cases) for cases in done}
        return "passed" if rates == {1.0} else "differs" if len(rates) > 1 else "failed"

    shown = [outcome for outcome, look in LOOKS.items() if look.heading]
    return {
        "report": report,
        "info": report.info,
        "names": report.names,
        "conclusions": [*conclusions(report)],
        "outcomes": [one for one in shown if any(each.outcomes.get(one) for each in report.cells)],
        "picture": make_picture(report),
        "tags": report.by_tag(),
        "made_with": made_with(report),
        "loop_number": lambda cell: cells.index(cell) + 1,
        "cases_of": cases_of,
        "failed_or_first": failed_or_first,
        "look_of": look_of,
    }


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, auto_reload=False
    )
    made.globals |= {
        "looks": LOOKS, "amounts": AMOUNTS, "nothing": NOTHING, "interval": interval
    }  # fmt: skip
    made.filters |= {
        "address": lambda name: quote(name, safe=_KEPT),
        "cut_line": cut_line,
        "count_of": count_of,
        "percent": percent,
        "place": "{:.1f}".format,
        "value": lambda number: "" if number is None else f"{number:.6g}",
        "why": lambda case: cut_line(scrub(why(case, 2_000)), 120),
    }
    return made


def _file(name: str) -> str:
    return files("agent_brain.experiments.report.html").joinpath(name).read_text(encoding="utf-8")


def _as_json(value: Any) -> Markup:
    """Return JSON that a script reads, and that cannot end the element it is in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _policy(style: str, script: str) -> str:
    """Return the policy that lets a browser load nothing, and run only the script of the page."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
