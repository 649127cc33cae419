"""Accuracy by cost as a picture. Private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from typing import NamedTuple

from agent_brain.experiments.report.figures import CellReport
from agent_brain.experiments.report.html.markup import Markup, tag
from agent_brain.experiments.report.html.tables import scrolling
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.report.words import dollars, interval, percent

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


def picture(report: Report) -> Markup | None:
    """Return the picture of the cells that have cases; None if there are none."""
    cells = [one for one in report.cells if one.cases]
    if not cells:
        return None
    priced = [one for one in cells if one.cost is not None]
    by_cost = any(one.cost for one in priced)
    shown = priced if by_cost else cells
    title = "Accuracy by cost" if by_cost else "Accuracy by tokens"
    values = [(one.cost or 0.0) / len(one.cases) if by_cost else one.tokens for one in shown]
    drawn = _draw(report, shown, values, title, by_cost=by_cost)
    left_out = [report.names[one.cell] for one in cells if one not in shown]
    about = [_about(by_cost=by_cost, known=bool(priced))]
    if left_out:
        about.append(f"Left out, as their cost is not known: {', '.join(left_out)}.")
    return tag(
        "section",
        tag("h2", title, id="picture-title"),
        tag("p", " ".join(about), class_="about"),
        scrolling(title, drawn),
        id="picture",
        aria_labelledby="picture-title",
    )


def _about(*, by_cost: bool, known: bool) -> str:
    told = (
        "of a case, the mean, and the rate of cases that passed with its 95 % interval. Cheap and "
        "good is at the top left."
    )
    if by_cost:
        return f"Cost {told}"
    reason = "Nothing was paid" if known else "No cost is known"
    return f"{reason}, so this is by tokens. Tokens {told}"


def _draw(
    report: Report,
    cells: Sequence[CellReport],
    values: Sequence[float],
    title: str,
    *,
    by_cost: bool,
) -> Markup:
    scale = Scale(values)
    told = "; ".join(
        f"{report.names[one.cell]}: {percent(one.passed.rate)} ({interval(one.passed)}), "
        f"{_amount(value, by_cost=by_cost)}"
        for one, value in zip(cells, values, strict=True)
    )
    parts = [
        tag("title", title, id="picture-name"),
        tag("desc", told, id="picture-told"),
        *_axes(scale, by_cost=by_cost),
        *_ranges(scale, cells, values),
        *_points(report, scale, cells, values),
    ]
    return tag(
        "svg",
        *parts,
        class_="picture",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby="picture-name picture-told",
    )


def _axes(scale: Scale, *, by_cost: bool) -> Iterator[Markup]:
    floor = HEIGHT - BOTTOM
    for rate in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _up(rate)
        yield tag("line", class_="grid", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y)
        yield _text(percent(rate), LEFT - 8, y + 5, "end")
    for value in scale.marks():
        x = scale.at(value)
        yield tag("line", class_="grid", x1=f"{x:.1f}", y1=floor, x2=f"{x:.1f}", y2=floor + 5)
        yield _text(_amount(value, by_cost=by_cost), x, floor + 21, "middle")
    unit = "US dollars of a case" if by_cost else "Tokens of a case"
    more = ", logarithmic" if scale.logarithmic else ""
    yield _text(f"{unit}{more}", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "middle")


def _ranges(scale: Scale, cells: Sequence[CellReport], values: Sequence[float]) -> Iterator[Markup]:
    for one, value in zip(cells, values, strict=True):
        x, low, high = f"{scale.at(value):.1f}", _up(one.passed.low), _up(one.passed.high)
        yield tag("line", class_="range", x1=x, y1=low, x2=x, y2=high)


def _points(
    report: Report, scale: Scale, cells: Sequence[CellReport], values: Sequence[float]
) -> Iterator[Markup]:
    order = report.info.cells
    spots = [
        (scale.at(value), _up(one.passed.rate)) for one, value in zip(cells, values, strict=True)
    ]
    taken = [Box(x - 6, y - 6, 12, 12) for x, y in spots]
    ranges = [
        Box(x - 3, _up(one.passed.high), 6, _up(one.passed.low) - _up(one.passed.high))
        for one, (x, _) in zip(cells, spots, strict=True)
    ]
    for one, (x, y) in zip(cells, spots, strict=True):
        number = str(order.index(one.cell) + 1)
        name = number if len(cells) > MOST_NAMES else f"{number} {report.names[one.cell]}"
        box = _free(name, x, y, taken, ranges)
        taken.append(box)
        base = one.cell == report.base
        if abs(box.y + LINE / 2 - y) > LINE:
            near = box.x if box.x > x else box.x + box.width
            yield tag("line", class_="leader", x1=f"{x:.1f}", y1=f"{y:.1f}", x2=f"{near:.1f}",
                      y2=f"{box.y + LINE / 2:.1f}")  # fmt: skip
        yield _mark(x, y, base=base)
        yield _text(name, box.x + 2, box.y + 13, "start", "base-name" if base else None)


def _mark(x: float, y: float, *, base: bool) -> Markup:
    """Draw a cell: the base is a square."""
    if base:
        return tag(
            "rect", class_="mark", x=f"{x - 5.5:.1f}", y=f"{y - 5.5:.1f}", width=11, height=11
        )
    return tag("circle", class_="mark", cx=f"{x:.1f}", cy=f"{y:.1f}", r=5.5)


def _free(name: str, x: float, y: float, taken: Sequence[Box], ranges: Sequence[Box]) -> Box:
    """Return a place for a label beside a point that nothing else has, if there is one."""
    width = len(name) * LETTER + 4
    places = [
        Box(side, y - LINE / 2 + lines * LINE, width, LINE)
        for lines in _TRIES
        for side in (x + 9, x - 9 - width)
    ]
    inside = [
        box
        for box in places
        if box.x >= LEFT
        and box.x + width <= WIDTH
        and box.y >= 0
        and box.y + LINE <= HEIGHT - BOTTOM + 4
    ]
    free = [box for box in inside if not any(box.meets(other) for other in taken)]
    clear = (box for box in free if not any(box.meets(other) for other in ranges))
    return next(clear, (free or inside or places)[0])


def _text(text: str, x: float, y: float, anchor: str, look: str | None = None) -> Markup:
    at = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    return tag("text", text, class_=look, **at)


def _up(rate: float) -> float:
    return round(TOP + (1 - rate) * (HEIGHT - TOP - BOTTOM), 1)


def _amount(value: float, *, by_cost: bool) -> str:
    return dollars(value) if by_cost else f"{value:,.0f}"
