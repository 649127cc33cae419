"""The report as a table for a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len

from agent_brain.common.text import count_of
from agent_brain.experiments.report.words import (
    NOTHING,
    conclusions,
    failed_by,
    made_with,
    row_of,
)

if TYPE_CHECKING:
    from agent_brain.experiments.report.figures import CellReport
    from agent_brain.experiments.report.report import Report

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
    rows = [dict(zip(_HEAD, _HEAD, strict=True)), *(_row(report, one) for one in report.cells)]
    more = len(said) - _CONCLUSIONS
    blocks = [
        said[:_CONCLUSIONS] + ([f"And {count_of(more, 'more comparison')}."] if more > 0 else []),
        [
            *(f"Note: {one}" for one in report.warnings),
            "; ".join(f"{name}: {value}" for name, value in made_with(report)),
        ],
    ]
    if failed := _failed(report):
        blocks.insert(0, [failed])
    texts = [
        "\n".join(line for text in block for line in _paragraph(text, width)) for block in blocks
    ]
    return "\n\n".join(["\n".join(_table(rows, width)), *texts])


def _terminal_width() -> int:
    is_terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
    return shutil.get_terminal_size((_WIDTH, 24)).columns if is_terminal else _WIDTH


def _table(rows: Sequence[Mapping[str, str]], width: int) -> Iterator[str]:
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


def _row(report: Report, one: CellReport) -> dict[str, str]:
    """Return what the table says of a cell, by the headings of the columns."""
    row = row_of(report, one)
    if not one.cases:
        return row
    counts = "base" if one.cell == report.base else f"{row['gained']} {row['lost']}"
    return row | {"95 %": row["95 % interval"], "+/−": counts, "per pass": row["cost per pass"]}


def _failed(report: Report) -> str:
    how = {report.names[one.cell]: failed_by(one.outcomes) for one in report.cells}
    parts = [f"{name} {text}" for name, text in how.items() if text != NOTHING]
    return f"Counted as failed: {'; '.join(parts)}." if parts else ""


def _shortened(text: str, columns: int) -> str:
    """Return a name without its middle, if it is too long: names differ at their ends."""
    left = len(text)
    short = text
    while left > 1 and cell_len(short) > columns:
        left -= 1
        short = f"{text[: left // 2]}…{text[len(text) - (left - left // 2) + 1 :]}"
    return short


def _paragraph(text: str, width: int) -> list[str]:
    indent = "  " if width > 2 else ""
    return wrap(text, min(width, _READABLE), subsequent_indent=indent, break_long_words=True)
