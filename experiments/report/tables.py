"""The report as text: as Markdown, and as a table for a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import TextWrapper
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_brain.common.text import count_of
from agent_brain.experiments.report.words import (
    NOTHING,
    conclusions,
    failed_by,
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
    rows = [row_of(report, one) for one in report.cells]
    head = dict.fromkeys(title for row in rows for title in row)
    for row, one in zip(rows, report.cells, strict=True):
        name, is_base = _text(row["cell"]), one.cell == report.base
        row["cell"] = f"**{name}** (base)" if one.cases and is_base else name
    if all(case.score in {0, 1} for case in report.cases):
        head.pop("score", None)  # it is the rate
    return _table([*head], [[row.get(title, NOTHING) for title in head] for row in rows], left=1)


def _tags(report: Report) -> list[str]:
    tags = report.by_tag()
    if not tags:
        return []
    rows = []
    for cell, name in report.names.items():
        rates = [of_cell[cell] for of_cell in tags.values()]
        rows.append([_text(name), *(str(rate) if rate.n else NOTHING for rate in rates)])
    return ["### By tag", "", *_table(("cell", *map(_text, tags)), rows, left=1)]


def _failures(report: Report) -> list[str]:
    failures = report.failures
    if not failures:
        return []
    rows = []
    for case in failures[:_FAILURES]:
        name, task = _text(report.names[case.cell]), _text(case.task)
        repeat = f" #{case.repeat + 1}" if report.info.repeat > 1 else ""
        rows.append([name, f"{task}{repeat}", case.outcome.value, _text(why(case))])
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


_WIDTH = 80  # columns, if there is no terminal
_READABLE = 100  # columns of a text at most
_NAME = 16  # columns of the names of cells, before others are left out
_HEAD = ("cell", "passed", "95 %", "+/−", "steps", "per pass", "median")
_LEFT_OUT = ("median", "steps", "per pass", "95 %", "+/−")  # in this order, if there is no room
_CONCLUSIONS = 5  # more are in the Markdown and HTML


def terminal(report: Report, width: int | None = None) -> str:
    """Return the report as text.

    Args:
        report: The report.
        width: Columns; None for those of the terminal, or 80 if stdout is none.
    """
    width = max(_terminal_width() if width is None else width, 1)
    said = list(conclusions(report))
    rows = [
        dict(zip(_HEAD, _HEAD, strict=True)),
        *(_columns_of(report, one) for one in report.cells),
    ]
    more = len(said) - _CONCLUSIONS
    blocks = [
        said[:_CONCLUSIONS] + ([f"And {count_of(more, 'more comparison')}."] if more > 0 else []),
        [
            *(f"Note: {one}" for one in report.warnings),
            "; ".join(f"{name}: {value}" for name, value in made_with(report)),
        ],
    ]
    how = {report.names[one.cell]: failed_by(one.outcomes) for one in report.cells}
    if failed := [f"{name} {text}" for name, text in how.items() if text != NOTHING]:
        blocks.insert(0, [f"Counted as failed: {'; '.join(failed)}."])
    fill = TextWrapper(min(width, _READABLE), subsequent_indent="  " if width > 2 else "").fill
    texts = ["\n".join(map(fill, block)) for block in blocks]
    return "\n\n".join(["\n".join(_lines_of(rows, width)), *texts])


def _terminal_width() -> int:
    is_terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
    return shutil.get_terminal_size((_WIDTH, 24)).columns if is_terminal else _WIDTH


def _lines_of(rows: Sequence[Mapping[str, str]], width: int) -> Iterator[str]:
    """Yield the lines of a table, without the columns that there is no room for."""
    widths = {title: max(cell_len(row.get(title, "")) for row in rows) for title in _HEAD}
    shown = [*_HEAD[1:]]
    for title in _LEFT_OUT:
        if min(widths["cell"], _NAME) + sum(2 + widths[one] for one in shown) <= width:
            break
        shown.remove(title)
    room = max(width - sum(2 + widths[title] for title in shown), 1)
    for row in rows:
        name = _shortened(row["cell"], room)
        cells = [name + " " * (min(widths["cell"], room) - cell_len(name))]
        cells += [row.get(title, "").rjust(widths[title]) for title in shown]
        yield "  ".join(cells).rstrip()


def _columns_of(report: Report, one: CellReport) -> dict[str, str]:
    """Return what the table says of a cell, by the headings of the columns."""
    row = row_of(report, one)
    if not one.cases:
        return row
    counts = "base" if one.cell == report.base else f"{row['gained']} {row['lost']}"
    return row | {"95 %": row["95 % interval"], "+/−": counts, "per pass": row["cost per pass"]}


def _shortened(text: str, columns: int) -> str:
    """Return a name without its middle, if it is too long: names differ at their ends."""
    left = len(text)
    short = text
    while left > 1 and cell_len(short) > columns:
        left -= 1
        short = f"{text[: left // 2]}…{text[len(text) - (left - left // 2) + 1 :]}"
    return short
