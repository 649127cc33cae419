"""How figures are written in reports, and what to know before believing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor, log10
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_brain.common.text import count_of, cut_line
from agent_brain.experiments.case import CaseResult, ExperimentInfo, Outcome, short_names
from agent_brain.experiments.report.figures import FEW_TASKS, CellReport

if TYPE_CHECKING:
    from agent_brain.experiments.report.figures import Mean, Rate
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
        **{amount.title: amount.shown(one) for amount in AMOUNTS},
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


_SHOWN = 3  # of what cannot be known


def warnings_of(info: ExperimentInfo, cells: Sequence[CellReport], missing: int) -> list[str]:
    """Return the warnings, each a sentence or two."""
    return [*_made_of(info), *_cases(info, cells, missing), *_figures(info, cells)]


def _made_of(info: ExperimentInfo) -> Iterator[str]:
    rules = [name for name in info.models if name in info.rule_based]
    if rules:
        yield (
            f"Rules and no language model answered for {', '.join(rules)}: the figures say whether "
            "nets and memories work, and nothing about the quality of answers."
        )
    if info.unknown:
        shown = ", ".join(info.unknown[:_SHOWN])
        more = len(info.unknown) - _SHOWN
        yield (
            f"A change of what some code finds while it runs is not noticed: {shown}"
            f"{f', and {more} more' if more > 0 else ''}. Name a version= of your own, and another "
            "one when it changes: then the cases are run again."
        )


def _cases(info: ExperimentInfo, cells: Sequence[CellReport], missing: int) -> Iterator[str]:
    names = short_names([one.cell for one in cells])
    if missing:
        all_cases = len(cells) * len(info.tasks) * info.repeat
        yield f"{missing} of {all_cases} cases were not run: run the experiment again to continue."
    empty = [names[one.cell] for one in cells if not one.cases]
    if empty:
        yield f"No case was run of {', '.join(empty)}."
    refused = sum(one.outcomes[Outcome.RATE_LIMITED] for one in cells)
    if refused:
        yield (
            f"The rate limits of models ended {count_of(refused, 'case')}, which count as failed "
            "and say nothing about nets and memories: do them again with fresh='rate-limited', or "
            "--again rate-limited."
        )
    if len({one.passed.n for one in cells if one.cases}) > 1:
        yield (
            "The cells have different numbers of cases: their rates are of different tasks. "
            "Comparisons count only the tasks that both cells did."
        )
    tasks = max((len({case.task for case in one.cases}) for one in cells), default=0)
    partial = any(case.score not in {0, 1} for one in cells for case in one.cases)
    if 0 < tasks < FEW_TASKS:
        scores = ", and there is no interval of mean scores: they do not show what is rare"
        yield (
            f"{count_of(tasks, 'task')}: fewer than {FEW_TASKS} show only large differences"
            f"{scores if partial else ''}. Intervals of differences are rather wider than 95 % "
            "needs."
        )
    elif partial and tasks < 2 * FEW_TASKS:
        yield (
            f"{count_of(tasks, 'task')}: where few tasks fail, intervals of mean scores are wider "
            "than 95 % needs."
        )


def _figures(info: ExperimentInfo, cells: Sequence[CellReport]) -> Iterator[str]:
    judged = sum(one.judged for one in cells)
    if judged:
        cost = sum(case.judge_cost for one in cells for case in one.cases)
        yield (
            f"A model judged {count_of(judged, 'case')}, for ${cost:.4f} that the costs leave out: "
            "check some of its verdicts by hand."
        )
    unpriced = {case.model for one in cells for case in one.cases if case.cost is None}
    if unpriced:
        names = ", ".join(name for name in info.models if name in unpriced)
        yield f"The price of {names} is unknown: the costs of these cells are left out."
