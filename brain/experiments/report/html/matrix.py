"""The matrix of tasks and cells: a link to the page of every case. Private."""

from __future__ import annotations

from agent_brain.experiments.case import Outcome, TaskInfo
from agent_brain.experiments.report.html.links import SIGNS, CaseLinks, sign_link
from agent_brain.experiments.report.html.markup import Markup, join, tag
from agent_brain.experiments.report.html.tables import scrolling
from agent_brain.experiments.report.html.texts import cut_line
from agent_brain.experiments.report.report import Report

_WORDS = {
    Outcome.PASSED: "passed",
    Outcome.WRONG: "wrong answer",
    Outcome.CRASHED: "crashed",
    Outcome.RATE_LIMITED: "rate limit of the model",
    Outcome.LIMIT: "reached a limit",
    Outcome.STUCK: "repeated itself",
    Outcome.WAITING: "waits for somebody",
}


def matrix(report: Report, links: CaseLinks) -> Markup:
    """Return the matrix with the meaning of its signs."""
    signs = [
        tag("li", tag("span", SIGNS[outcome], class_=f"sign {outcome.value}"), f" {words}")
        for outcome, words in _WORDS.items()
    ]
    heads = [
        tag("th", tag("span", f"{number} {report.names[cell]}"), scope="col")
        for number, cell in enumerate(report.info.cells, 1)
    ]
    rows = [_row(report, task, links) for task in report.info.tasks]
    table = tag(
        "table",
        tag("caption", "The outcome of every case", class_="unseen"),
        tag("thead", tag("tr", tag("th", "Task", scope="col"), *heads)),
        tag("tbody", *rows),
        class_="matrix",
    )
    return tag(
        "section",
        tag("h2", "Tasks and cells", id="matrix-title"),
        tag("p", "Every sign leads to the page of its run.", class_="about"),
        tag("ul", *signs, class_="signs"),
        tag("p", class_="choices", id="choices", hidden=True),
        scrolling("Tasks and cells", table),
        id="matrix",
        aria_labelledby="matrix-title",
    )


def _row(report: Report, task: TaskInfo, links: CaseLinks) -> Markup:
    entries = []
    rates = set()
    for cell in report.info.cells:
        cases = links.cases(cell, task.id)
        if cases:
            rates.add(sum(case.passed for case in cases) / len(cases))
        signs = [sign_link(case, report.names[cell]) for case in cases]
        nothing = tag("span", "not run", class_="unseen")
        entries.append(tag("td", join(*signs) if signs else nothing))
    look = "passed" if rates == {1.0} else "differs" if len(rates) > 1 else "failed"
    asked = cut_line(" / ".join(task.turns), 300)
    name = tag("th", task.id, scope="row", title=asked)
    return tag("tr", name, *entries, data_look=look)
