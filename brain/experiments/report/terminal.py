"""The report as a table for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

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

_WIDTH = 80
_HEAD = ("cell", "passed", "95 %", "+/−", "steps", "per pass", "median")
_CONCLUSIONS = 5  # more are in the Markdown and HTML


def terminal(report: Report) -> str:
    """Return the report as text of at most 80 columns."""
    rows = [_HEAD, *_rows(report)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(_HEAD))]
    widths[0] = min(widths[0], _WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1))
    said = list(conclusions(report))
    lines = [
        *(_line(row, widths) for row in rows),
        "",
        *_failed(report),
        *(line for one in said[:_CONCLUSIONS] for line in _paragraph(one)),
        *(
            [f"And {many(len(said) - _CONCLUSIONS, 'more comparison')}."]
            if len(said) > _CONCLUSIONS
            else []
        ),
        "",
        *(line for one in report.warnings for line in _paragraph(f"Note: {one}")),
        *_paragraph("; ".join(f"{name}: {value}" for name, value in made_with(report))),
    ]
    return "\n".join(lines)


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


def _failed(report: Report) -> Iterator[str]:
    names = report.names
    parts = []
    for one in report.cells:
        others = {key: n for key, n in one.outcomes.items() if key.value != "wrong"}
        if (text := failed_by(others)) != NOTHING:
            parts.append(f"{names[one.cell]} {text}")
    if parts:
        yield from _paragraph(f"Counted as failed: {'; '.join(parts)}.")
        yield ""


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = row
    if len(first) > widths[0]:
        first = f"{first[: widths[0] - 1]}…"
    cells = [first.ljust(widths[0])]
    cells += [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
    return "  ".join(cells).rstrip()


def _paragraph(text: str) -> list[str]:
    return wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=True)
