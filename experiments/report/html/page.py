"""The report of an experiment as one HTML file."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import anyio
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from agent_brain.common.secrets import scrub
from agent_brain.common.text import count_of, cut_line
from agent_brain.experiments.case import CaseResult
from agent_brain.experiments.cells import Cell
from agent_brain.experiments.report.html.case_data import MOST_BYTES, CaseData
from agent_brain.experiments.report.html.outcomes import LOOKS
from agent_brain.experiments.report.html.picture import make_picture
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.report.words import (
    AMOUNTS,
    NOTHING,
    conclusions,
    interval,
    made_with,
    percent,
    why,
)

_KEPT = "!*'()"  # by encodeURIComponent, too


def html_page(report: Report, *, most_bytes: int = MOST_BYTES) -> str:
    """Return a report as one page of HTML that needs no other file and no network.

    The page of each run is inside it: of those that failed first, of the others as long as there is
    room. What is left out is said where it would be. Without JavaScript the tables can be read.

    Args:
        report: The report. The sessions of its cases are read from its folder, if it has one.
        most_bytes: About how large the pages of runs may be together.
    """
    data = CaseData(report, most_bytes=most_bytes)
    with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
        thread.submit(anyio.run, data.read).result()
    style, script = _file("page.css"), _file("page.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            _values(report),
            warnings=[*report.warnings, *_left_out(data.left_out)],
            data={name: _as_json(value) for name, value in data.blocks().items()},
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
        )
    )


def _values(report: Report) -> Mapping[str, Any]:
    """Return what the template shows of a report, beside the pages of its cases."""
    cells, groups = report.info.cells, report.groups

    def cases_of(cell: Cell, task: str) -> list[CaseResult]:
        return groups[cell].get(task, [])

    def failed_or_first(cell: Cell, task: str) -> CaseResult:
        cases = cases_of(cell, task)
        return next((case for case in cases if not case.passed), cases[0])

    def look_of(task: str) -> str:
        """Return whether all cells passed a task alike."""
        done = [cases for cell in cells if (cases := cases_of(cell, task))]
        rates = {sum(case.passed for case in cases) / len(cases) for cases in done}
        return "passed" if rates == {1.0} else "differs" if len(rates) > 1 else "failed"

    shown = [outcome for outcome, look in LOOKS.items() if look.heading]
    return {
        "report": report,
        "info": report.info,
        "names": report.names,
        "conclusions": [*conclusions(report)],
        "outcomes": [one for one in shown if any(each.outcomes.get(one) for each in report.cells)],
        "picture": make_picture(report),
        "tags": report.by_tag(),
        "made_with": made_with(report),
        "loop_number": lambda cell: cells.index(cell) + 1,
        "cases_of": cases_of,
        "failed_or_first": failed_or_first,
        "look_of": look_of,
    }


def _left_out(cases: int) -> Iterator[str]:
    if cases:
        yield (
            f"{cases} cases are in this file without their steps, to keep it small: their pages "
            "say how to look at them."
        )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, auto_reload=False
    )
    made.globals |= {
        "looks": LOOKS, "amounts": AMOUNTS, "nothing": NOTHING, "interval": interval
    }  # fmt: skip
    made.filters |= {
        "address": lambda name: quote(name, safe=_KEPT),
        "cut_line": cut_line,
        "count_of": count_of,
        "percent": percent,
        "place": "{:.1f}".format,
        "value": lambda number: "" if number is None else f"{number:.6g}",
        "why": lambda case: cut_line(scrub(why(case, 2_000)), 120),
    }
    return made


def _file(name: str) -> str:
    return files("agent_brain.experiments.report.html").joinpath(name).read_text(encoding="utf-8")


def _as_json(value: Any) -> Markup:
    """Return JSON that a script reads, and that cannot end the element it is in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _policy(style: str, script: str) -> str:
    """Return the policy that lets a browser load nothing, and run only the script of the page."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
