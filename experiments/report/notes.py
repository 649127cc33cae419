"""What a reader of a report must know before believing its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_brain.common.text import count_of
from agent_brain.experiments.case import ExperimentInfo, Outcome
from agent_brain.experiments.cells import short_names
from agent_brain.experiments.report.figures import FEW_TASKS, CellReport

_SHOWN = 3  # of what cannot be known


def warnings_of(info: ExperimentInfo, cells: Sequence[CellReport], missing: int) -> list[str]:
    """Return the warnings, each a sentence or two."""
    return [*_models(info), *_code(info), *_cases(info, cells, missing), *_figures(info, cells)]


def _models(info: ExperimentInfo) -> Iterator[str]:
    rules = [name for name in info.models if name in info.rule_based]
    if rules:
        yield (
            f"Rules and no language model answered for {', '.join(rules)}: the figures say whether "
            "nets and memories work, and nothing about the quality of answers."
        )


def _code(info: ExperimentInfo) -> Iterator[str]:
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
