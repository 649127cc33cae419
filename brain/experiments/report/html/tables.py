"""The tables of a report: cells, and cells by the tags of tasks. Private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_brain.experiments.case import Cell, Outcome
from agent_brain.experiments.report.figures import CellReport, Rate
from agent_brain.experiments.report.html.links import CaseLinks
from agent_brain.experiments.report.html.markup import Markup, join, tag
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.report.words import NOTHING, dollars, interval, percent, seconds

_OUTCOMES = {
    Outcome.WRONG: "Wrong",
    Outcome.CRASHED: "Crashed",
    Outcome.RATE_LIMITED: "Rate limit",
    Outcome.LIMIT: "Limit",
    Outcome.STUCK: "Stuck",
    Outcome.WAITING: "Waits",
}


def cells_table(report: Report, links: CaseLinks) -> Markup:
    """Return the table of the cells with their figures, and with the outcomes that there are."""
    base = report.names[report.base]
    outcomes = [one for one in _OUTCOMES if any(each.outcomes.get(one) for each in report.cells)]
    named = [_OUTCOMES[one] for one in outcomes]
    head = ["Cell", "Passed", "Gained", "Lost", *named, "Steps", "Tokens", "Cost", "Cost per pass"]
    rows = [_row(report, one, links, outcomes) for one in report.cells]
    return _section(
        "cells",
        "Cells",
        "Passed is with its 95 % interval. Gained and lost are tasks passed more and less often "
        f"than by the base, {base}. Steps and tokens are means of a case, the cost is of all its "
        "cases, times are without waiting for rate limits. Headings sort.",
        tag(
            "table",
            tag("caption", "The figures of each cell", class_="unseen"),
            tag("thead", tag("tr", *map(_heading, [*head, "Median time", "p95 time"]))),
            tag("tbody", *rows),
            class_="figures sortable",
        ),
    )


def tags_table(report: Report) -> Markup | None:
    """Return the table of cells by the tags of the tasks; None if tasks have none."""
    tags = report.by_tag()
    if not tags:
        return None
    rows = [
        tag("tr", _name(report, cell), *(_rate(rates[cell]) for rates in tags.values()))
        for cell in report.info.cells
    ]
    head = tag("thead", tag("tr", _heading("Cell"), *map(_heading, tags)))
    caption = tag("caption", "Passed cases by tag", class_="unseen")
    return _section(
        "tags",
        "By tag",
        "How many cases passed of the tasks with a tag, with the rate.",
        tag("table", caption, head, tag("tbody", *rows), class_="figures sortable"),
    )


def bar(rate: Rate) -> Markup:
    """Draw a rate with its interval; the figures beside it say the same."""
    shapes = [
        tag("rect", class_="bar-all", x=0, y=6, width=100, height=2),
        tag("rect", class_="bar-range", x=_at(rate.low), y=3, width=_at(rate.high - rate.low),
            height=8),
        tag("rect", class_="bar-rate", x=_at(rate.rate - 0.015), y=0, width=3, height=14),
    ]  # fmt: skip
    return tag("svg", *shapes, class_="bar", viewBox="-2 0 104 14", aria_hidden="true")


def scrolling(name: str, *children: object) -> Markup:
    """Return a part of the page that scrolls sideways, which a keyboard reaches."""
    return tag("div", *children, class_="scrolls", role="group", tabindex=0, aria_label=name)


def _section(name: str, title: str, about: str, table: Markup) -> Markup:
    heading = tag("h2", title, id=f"{name}-title")
    body = [heading, tag("p", about, class_="about"), scrolling(title, table)]
    return tag("section", *body, id=name, aria_labelledby=f"{name}-title")


def _heading(text: str) -> Markup:
    return tag("th", text, scope="col")


def _name(report: Report, cell: Cell) -> Markup:
    number = report.info.cells.index(cell) + 1
    base = tag("span", "base", class_="label") if cell == report.base else None
    shown = join(
        tag("span", number, class_="number"), _breaking(report.names[cell]), base, between=" "
    )
    return tag("th", shown, scope="row", data_value=number)


def _breaking(name: str) -> Markup:
    """Return a name that is broken behind its slashes where it is too long for a line."""
    return join(*name.split("/"), between="/<wbr>")


def _row(report: Report, one: CellReport, links: CaseLinks, outcomes: Sequence[Outcome]) -> Markup:
    name = _name(report, one.cell)
    if not one.cases:
        return tag("tr", name, tag("td", "not run", colspan=len(outcomes) + 9))
    return tag("tr", name, *_entries(report, one, links, outcomes))


def _entries(
    report: Report, one: CellReport, links: CaseLinks, outcomes: Sequence[Outcome]
) -> Iterator[Markup]:
    yield _rate(one.passed, f" ({interval(one.passed)})")
    base = one.cell == report.base
    for sign, tasks in (("+", one.gained), ("−", one.lost)):
        yield _entry(len(tasks), NOTHING if base else _tasks(one.cell, sign, tasks, links))
    for outcome in outcomes:
        count = one.outcomes.get(outcome, 0)
        yield _entry(count, count or NOTHING)
    yield _entry(one.steps, f"{one.steps:.1f}")
    yield _entry(one.tokens, f"{one.tokens:,.0f}")
    yield _entry(one.cost, dollars(one.cost))
    yield _entry(one.cost_per_pass, dollars(one.cost_per_pass))
    yield _entry(one.median_seconds, seconds(one.median_seconds))
    yield _entry(one.p95_seconds, seconds(one.p95_seconds))


def _rate(rate: Rate, more: str = "") -> Markup:
    if not rate.n:
        return _entry(None, NOTHING)
    shown = [tag("span", f"{rate} · {percent(rate.rate)}{more}"), bar(rate)]
    return _entry(rate.rate, tag("div", *shown, class_="rate"))


def _entry(value: float | None, shown: object) -> Markup:
    return tag("td", shown, data_value="" if value is None else f"{value:.6g}")


def _tasks(cell: Cell, sign: str, tasks: Sequence[str], links: CaseLinks) -> Markup:
    if not tasks:
        return Markup(f"{sign}0")
    items = (tag("li", links.task_link(cell, task)) for task in tasks)
    return tag("details", tag("summary", f"{sign}{len(tasks)}"), tag("ul", *items))


def _at(share: float) -> str:
    return f"{share * 100:.1f}"
