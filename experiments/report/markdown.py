"""The report as Markdown, for a pull request or a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agent_brain.common.text import count_of
from agent_brain.experiments.report.words import (
    NOTHING,
    conclusions,
    made_with,
    row_of,
    why,
)

if TYPE_CHECKING:
    from agent_brain.experiments.report.figures import CellReport
    from agent_brain.experiments.report.report import Report

_FAILURES = 30  # more are counted and not listed


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    parts = [
        [f"## {_text(report.info.name)}"],
        [f"> **Note:** {_text(one)}" for one in report.warnings],
        _cells(report),
        ["### What can be concluded", "", *(f"- {_text(one)}" for one in conclusions(report))],
        _tags(report),
        _failures(report),
        ["### Made with", "", *(f"- {name}: {_text(value)}" for name, value in made_with(report))],
    ]
    return "\n\n".join("\n".join(_spaced(part)) for part in parts if part) + "\n"


def _cells(report: Report) -> list[str]:
    rows = [_row(report, one) for one in report.cells]
    head = dict.fromkeys(title for row in rows for title in row)
    if all(case.score in {0, 1} for case in report.cases):
        head.pop("score", None)  # it is the rate
    return _table([*head], [[row.get(title, NOTHING) for title in head] for row in rows], left=1)


def _row(report: Report, one: CellReport) -> dict[str, str]:
    row = row_of(report, one)
    name = _text(row["cell"])
    return {**row, "cell": f"**{name}** (base)" if one.cases and one.cell == report.base else name}


def _tags(report: Report) -> list[str]:
    tags = report.by_tag()
    if not tags:
        return []
    names = report.names
    rows = [
        [
            _text(names[cell]),
            *(str(rates[cell]) if rates[cell].n else NOTHING for rates in tags.values()),
        ]
        for cell in names
    ]
    return ["### By tag", "", *_table(("cell", *map(_text, tags)), rows, left=1)]


def _failures(report: Report) -> list[str]:
    failures = report.failures
    if not failures:
        return []
    names = report.names
    several = report.info.repeat > 1
    rows = [
        [
            _text(names[case.cell]),
            _text(case.task) + (f" #{case.repeat + 1}" if several else ""),
            case.outcome.value,
            _text(why(case)),
        ]
        for case in failures[:_FAILURES]
    ]
    left_out = len(failures) - len(rows)
    return [
        "<details>",
        f"<summary>{count_of(len(failures), 'case')} failed</summary>",
        "",
        *_table(("cell", "task", "outcome", "why"), rows, left=4),
        *(["", f"And {left_out} more."] if left_out else []),
        "",
        "</details>",
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int) -> list[str]:
    marks = [":--" if index < left else "--:" for index in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, marks, *rows)]


def _text(text: str) -> str:
    """Return a text that Markdown shows as it is, also in a table."""
    for sign in "\\`*_[]<>|#&~":
        text = text.replace(sign, f"\\{sign}")
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in " ".join(text.split()))


def _spaced(lines: Sequence[str]) -> list[str]:
    """Separate notes, which would run together."""
    if lines[0].startswith("> "):
        return [line for note in lines for line in (note, ">")][:-1]
    return list(lines)
