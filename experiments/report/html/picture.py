"""Accuracy by cost: where the points, labels and lines of the picture are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from typing import NamedTuple

from agent_brain.experiments.report.figures import CellReport
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.report.words import dollars, percent

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


class Point(NamedTuple):
    """A cell.

    Attributes:
        one: Its figures.
        amount: What a case costs, as it is written.
        x: Where the point is.
        y: Where it is.
        low: The lower end of the interval.
        high: The upper end of the interval.
        name: The label.
        label: Where the label is.
    """

    one: CellReport
    amount: str
    x: float
    y: float
    low: float
    high: float
    name: str
    label: Box

    @property
    def leader(self) -> tuple[float, float] | None:
        """Where a line to the label ends; None for a label beside the point."""
        x, middle = self.label.x, self.label.y + LINE / 2
        if abs(middle - self.y) <= LINE:
            return None
        return (x if x > self.x else x + self.label.width), middle


class Picture(NamedTuple):
    """What the picture consists of.

    Attributes:
        title: What is drawn.
        about: How to read it.
        unit: What the costs are of.
        rates: The rates that are marked: where, and as they are written.
        costs: The costs or tokens that are marked, the same.
        points: The cells.
    """

    title: str
    about: str
    unit: str
    rates: Sequence[tuple[float, str]]
    costs: Sequence[tuple[float, str]]
    points: Sequence[Point]


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


def make_picture(report: Report) -> Picture | None:
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
    return Picture(
        title="Accuracy by cost" if by_cost else "Accuracy by tokens",
        about=" ".join(_about(left_out, by_cost=by_cost, known=bool(priced))),
        unit=f"{unit}, logarithmic" if scale.logarithmic else unit,
        rates=[(_up(rate), percent(rate)) for rate in (0.0, 0.25, 0.5, 0.75, 1.0)],
        costs=[(scale.at(value), write(value)) for value in scale.marks()],
        points=[*_points(report, shown, [(scale.at(value), write(value)) for value in values])],
    )


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
) -> Iterator[Point]:
    rates = [(_up(one.passed.rate), _up(one.passed.low), _up(one.passed.high)) for one in cells]
    places = [(x, *rate) for (x, _), rate in zip(costs, rates, strict=True)]
    taken = [Box(x - 6, y - 6, 12, 12) for x, y, _, _ in places]
    ranges = [Box(x - 3, high, 6, low - high) for x, _, low, high in places]
    for one, (_, amount), place in zip(cells, costs, places, strict=True):
        number = str(report.info.cells.index(one.cell) + 1)
        name = number if len(cells) > MOST_NAMES else f"{number} {report.names[one.cell]}"
        label = _free(name, place[0], place[1], taken, ranges)
        taken.append(label)
        yield Point(one, amount, *place, name, label)


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


def _up(rate: float) -> float:
    return round(TOP + (1 - rate) * (HEIGHT - TOP - BOTTOM), 1)
