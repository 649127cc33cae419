"""The report as a table for a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from agent_brain.experiments.report.words import (
    NOTHING,
    conclusions,
    dollars,
    failed_by,
    interval,
    made_with,
    many,
    seconds,
)

if TYPE_CHECKING:
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
    more = len(said) - _CONCLUSIONS
    blocks = [
        said[:_CONCLUSIONS] + ([f"And {many(more, 'more comparison')}."] if more > 0 else []),
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
    return "\n\n".join(["\n".join(_table([_HEAD, *_rows(report)], width)), *texts])


def _terminal_width() -> int:
    is_terminal = sys.stdout is not None and not sys.stdout.closed and sys.stdout.isatty()
    return shutil.get_terminal_size((_WIDTH, 24)).columns if is_terminal else _WIDTH


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table, without the columns that there is no room for."""
    widths = [max(_columns(row[index]) for row in rows) for index in range(len(_HEAD))]
    shown = [*range(1, len(_HEAD))]
    for name in _LEFT_OUT:
        if min(widths[0], _NAME) + sum(2 + widths[index] for index in shown) <= width:
            break
        shown.remove(_HEAD.index(name))
    room = max(width - sum(2 + widths[index] for index in shown), 1)
    for row in rows:
        name = _shortened(row[0], room)
        cells = [name + " " * (min(widths[0], room) - _columns(name))]
        cells += [row[index].rjust(widths[index]) for index in shown]
        yield "  ".join(cells).rstrip()


def _rows(report: Report) -> Iterator[Sequence[str]]:
    names = report.names
    for one in report.cells:
        if not one.cases:
            yield (names[one.cell], "not run", *[""] * 5)
            continue
        base = one.cell == report.base
        yield (
            names[one.cell],
            str(one.passed),
            interval(one.passed),
            "base" if base else f"+{len(one.gained)} −{len(one.lost)}",
            f"{one.steps:.1f}",
            dollars(one.cost_per_pass),
            seconds(one.median_seconds),
        )


def _failed(report: Report) -> str:
    how = {report.names[one.cell]: failed_by(one.outcomes) for one in report.cells}
    parts = [f"{name} {text}" for name, text in how.items() if text != NOTHING]
    return f"Counted as failed: {'; '.join(parts)}." if parts else ""


def _shortened(text: str, columns: int) -> str:
    """Return a name without its middle, if it is too long: names differ at their ends."""
    left = len(text)
    short = text
    while left > 1 and _columns(short) > columns:
        left -= 1
        short = f"{text[: left // 2]}…{text[len(text) - (left - left // 2) + 1 :]}"
    return short


def _columns(text: str) -> int:
    """Return how many columns a terminal shows a text in."""
    return sum(
        0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text
    )


def _paragraph(text: str, width: int) -> list[str]:
    indent = "  " if width > 2 else ""
    return wrap(text, min(width, _READABLE), subsequent_indent=indent, break_long_words=True)
