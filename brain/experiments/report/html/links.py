"""Links to the pages of cases. Private."""

from __future__ import annotations

from urllib.parse import quote

from agent_brain.experiments.case import CaseResult, Cell, Outcome
from agent_brain.experiments.report.html.markup import Markup, tag
from agent_brain.experiments.report.html.texts import cut_line
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.report.words import why
from agent_brain.tools.secrets import scrub

SIGNS = {
    Outcome.PASSED: "✓",
    Outcome.WRONG: "✗",
    Outcome.CRASHED: "!",
    Outcome.RATE_LIMITED: "R",
    Outcome.LIMIT: "L",
    Outcome.STUCK: "∞",
    Outcome.WAITING: "?",
}
"""What stands for an outcome: a failure is told by more than its colour."""

_KEPT = "!*'()"  # by encodeURIComponent, too


def address(case: CaseResult) -> str:
    """Return the address of a case's page in the file."""
    return f"#case-{quote(case.id, safe=_KEPT)}"


def sign_link(case: CaseResult, name: str) -> Markup:
    """Return a link to a case that is the sign of its outcome; ``name`` is that of its cell."""
    told = f"{name}, {case.task}: {case.outcome.value}"
    return tag(
        "a",
        SIGNS[case.outcome],
        class_=f"sign {case.outcome.value}",
        href=address(case),
        title=told if case.passed else f"{told}. {cut_line(scrub(why(case, 2_000)))}",
        aria_label=f"{told}, repeat {case.repeat + 1}" if case.repeat else told,
    )


class CaseLinks:
    """The cases of a report by cell and task."""

    def __init__(self, report: Report) -> None:
        self._cases: dict[tuple[Cell, str], list[CaseResult]] = {}
        for case in report.cases:
            self._cases.setdefault((case.cell, case.task), []).append(case)

    def cases(self, cell: Cell, task: str) -> list[CaseResult]:
        """Return the cases of a task that a cell did."""
        return self._cases.get((cell, task), [])

    def task_link(self, cell: Cell, task: str) -> Markup:
        """Return a link with the name of a task to a case of it: to one that failed, if any did."""
        cases = self.cases(cell, task)
        case = next((case for case in cases if not case.passed), cases[0])
        return tag("a", task, href=address(case))
