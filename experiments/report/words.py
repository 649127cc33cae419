"""How figures are written in reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import floor, log10
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_brain.common.text import cut_line
from agent_brain.experiments.case import CaseResult, Outcome

if TYPE_CHECKING:
    from agent_brain.experiments.report.figures import CellReport, Mean, Rate
    from agent_brain.experiments.report.report import Report

NOTHING = "–"


def percent(rate: float) -> str:
    """Return a rate in whole percent."""
    return f"{rate * 100:.0f} %"


def interval(rate: Rate) -> str:
    """Return the interval of a rate in whole percent."""
    return f"{rate.low * 100:.0f}–{rate.high * 100:.0f} %"


def dollars(cost: float | None) -> str:
    """Return US dollars with at least two significant digits; a dash if unknown."""
    if cost is None:
        return NOTHING
    if cost >= 1 or cost == 0:
        return f"${cost:.2f}"
    return f"${cost:.{max(4, 1 - floor(log10(cost)))}f}"


def show_p(p: float) -> str:
    """Return a p with two or three digits, after its sign."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.2 else f"= {p:.2f}"


def seconds(value: float) -> str:
    """Return seconds with two or three digits."""
    return (
        f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 1 else f"{value:.2f} s"
    )


class Amount(NamedTuple):
    """An amount of a cell that reports show in a column of its own.

    Attributes:
        title: The heading of its column.
        value: Returns it; None if it is unknown.
        write: Writes a value.
    """

    title: str
    value: Callable[[CellReport], float | None]
    write: Callable[[Any], str]

    def shown(self, one: CellReport) -> str:
        """Return the amount of a cell as it is written."""
        return self.write(self.value(one))


AMOUNTS = (
    Amount("steps", attrgetter("steps"), "{:.1f}".format),
    Amount("tokens", attrgetter("tokens"), "{:,.0f}".format),
    Amount("cost", attrgetter("cost"), dollars),
    Amount("cost per pass", attrgetter("cost_per_pass"), dollars),
    Amount("median", attrgetter("median_seconds"), seconds),
    Amount("p95", attrgetter("p95_seconds"), seconds),
)


def amounts(one: CellReport) -> dict[str, str]:
    """Return the amounts of a cell as they are written, by the headings of their columns."""
    return {amount.title: amount.shown(one) for amount in AMOUNTS}


def row_of(report: Report, one: CellReport) -> dict[str, str]:
    """Return what a table says of a cell, by the headings of the columns."""
    name = report.names[one.cell]
    if not one.cases:
        return {"cell": name, "passed": "not run"}
    base = one.cell == report.base
    return {
        "cell": name,
        "passed": str(one.passed),
        "rate": percent(one.passed.rate),
        "95 % interval": interval(one.passed),
        "score": _score(one.score),
        "gained": NOTHING if base else f"+{len(one.gained)}",
        "lost": NOTHING if base else f"−{len(one.lost)}",
        "failed otherwise": failed_by(one.outcomes),
        **amounts(one),
    }


def _score(score: Mean) -> str:
    if score.low is None or score.high is None:
        return f"{score.mean:.2f}"
    return f"{score.mean:.2f} ({score.low:.2f}–{score.high:.2f})"


def conclusions(report: Report) -> Iterator[str]:
    """Return what can be concluded, in sentences: first in all, then of each comparison."""
    compared = [one for one in report.comparisons if one.tasks]
    if not compared:
        yield "There is nothing to compare: fewer than two cells have tasks in common."
        return
    found = [one for one in compared if one.significant]
    names = report.names
    if not found:
        yield (
            f"Nothing can be concluded: no cell differs from {names[report.base]} by more than "
            "chance explains."
        )
    yield from (one.sentence for one in sorted(compared, key=lambda one: one.p))


def failed_by(outcomes: Mapping[Outcome, int]) -> str:
    """Return how cases failed otherwise than by wrong answers: ``"2 crashed, 1 stuck"``."""
    others = [one for one in Outcome if one not in {Outcome.PASSED, Outcome.WRONG}]
    parts = [f"{outcomes[one]} {one.value}" for one in others if outcomes.get(one)]
    return ", ".join(parts) or NOTHING


def why(case: CaseResult, length: int = 160) -> str:
    """Return why a case failed, in one line."""
    return cut_line(case.error or case.reason or case.stop_reason or "", length)


def made_with(report: Report) -> Iterator[tuple[str, str]]:
    """Return what the experiment was made with: name and value of each line."""
    info = report.info
    yield "Experiment", info.name
    yield "Date", f"{info.started:%Y-%m-%d %H:%M} UTC"
    yield "Models", ", ".join(_given(*item) for item in info.models.items())
    yield "Nets", ", ".join(_given(*item) for item in info.nets.items())
    yield "Memories", ", ".join(_given(*item) for item in info.memories.items())
    yield "Tasks", f"{len(info.tasks)}, each {info.repeat}× by each cell"
    yield "Base", str(info.base)
    yield "Commit", info.commit or NOTHING
    if info.version is not None:
        yield "Version", info.version
    yield "Seed", str(info.seed)
    yield "Limits", ", ".join(f"{k}={v}" for k, v in info.limits.items()) or NOTHING
    yield "Versions", ", ".join(f"{k} {v}" for k, v in info.versions.items()) or NOTHING


def _given(name: str, given: str) -> str:
    return name if given in {"", name} else f"{name} ({given})"
