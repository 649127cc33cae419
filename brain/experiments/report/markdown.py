"""The report as Markdown, for a pull request or a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agent_brain.experiments.report.words import (
    NOTHING,
    conclusions,
    dollars,
    failed_by,
    interval,
    made_with,
    many,
    percent,
    seconds,
    why,
)

if TYPE_CHECKING:
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


_HEAD = (
    "cell", "passed", "rate", "95 % interval", "score", "gained", "lost", "failed otherwise",
    "steps", "tokens", "cost", "cost per pass", "median", "p95",
)  # fmt: skip
_SCORE = _HEAD.index("score")


def _cells(report: Report) -> list[str]:
    rows = [list(_HEAD), *_rows(report)]
    if all(case.score in {0, 1} for case in report.cases):
        for row in rows:
            del row[_SCORE]  # it is the rate
    return _table(rows[0], rows[1:], left=1)


def _rows(report: Report) -> Iterator[list[str]]:
    names = report.names
    for one in report.cells:
        name = _text(names[one.cell])
        if not one.cases:
            yield [name, "not run", *[NOTHING] * (len(_HEAD) - 2)]
            continue
        base = one.cell == report.base
        yield [
            f"**{name}** (base)" if base else name,
            str(one.passed),
            percent(one.passed.rate),
            interval(one.passed),
            f"{one.score.mean:.2f} ({one.score.low:.2f}–{one.score.high:.2f})",
            NOTHING if base else f"+{len(one.gained)}",
            NOTHING if base else f"−{len(one.lost)}",
            failed_by(one.outcomes),
            f"{one.steps:.1f}",
            f"{one.tokens:,.0f}",
            dollars(one.cost),
            dollars(one.cost_per_pass),
            seconds(one.median_seconds),
            seconds(one.p95_seconds),
        ]


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
        f"<summary>{many(len(failures), 'case')} failed</summary>",
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
