"""The report of an experiment as one HTML file. Private."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.resources import files

import anyio

from agent_brain.experiments.report.html.case_data import MOST_BYTES, CaseData
from agent_brain.experiments.report.html.links import CaseLinks
from agent_brain.experiments.report.html.markup import Markup, data_block, single, tag
from agent_brain.experiments.report.html.matrix import matrix
from agent_brain.experiments.report.html.picture import picture
from agent_brain.experiments.report.html.tables import cells_table, tags_table
from agent_brain.experiments.report.report import Report
from agent_brain.experiments.report.words import conclusions, made_with, many

MOST_SENTENCES = 8
"""That are shown at once; the others are a click away."""


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
    links = CaseLinks(report)
    style, script = _file("page.css"), _file("page.js")
    head = [
        single("meta", charset="utf-8"),
        single("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        single("meta", name="viewport", content="width=device-width, initial-scale=1"),
        single("meta", name="color-scheme", content="light dark"),
        tag("title", report.info.name),
        tag("style", Markup(style)),
    ]
    body = [
        tag("main", *_report(report, data, links), id="report"),
        tag("main", id="run", tabindex=-1, hidden=True),
        data_block("shared", data.shared.values),
        *(data_block(f"data-{name}", case) for name, case in data.cases.items()),
        tag("script", Markup(script)),
    ]
    page = tag("html", tag("head", *head), tag("body", *body), lang="en")
    return f"<!doctype html>\n{page}\n"


def _report(report: Report, data: CaseData, links: CaseLinks) -> list[Markup | None]:
    return [
        _head(report),
        _warnings(report, data),
        _conclusions(report),
        cells_table(report, links),
        picture(report),
        tags_table(report),
        matrix(report, links),
        _made_with(report),
    ]


def _head(report: Report) -> Markup:
    info = report.info
    passed = len(report.cases) - len(report.failures)
    facts = [
        " × ".join(
            [
                many(len(info.cells), "cell"),
                many(len(info.tasks), "task"),
                *([str(info.repeat)] if info.repeat > 1 else []),
            ]
        ),
        f"{passed} of {many(len(report.cases), 'case')} passed",
        f"{info.started:%Y-%m-%d %H:%M} UTC",
    ]
    return tag(
        "header",
        tag("h1", info.name),
        tag("p", " · ".join(facts), class_="facts"),
        tag("p", "Without JavaScript the tables can be read, but no run.", id="no-script"),
    )


def _warnings(report: Report, data: CaseData) -> Markup | None:
    """Return the warnings; that a model is made of rules stands out."""
    found = [*report.warnings]
    if data.left_out:
        found.append(
            f"{data.left_out} cases are in this file without their steps, to keep it small: their "
            "pages say how to look at them."
        )
    rules = bool(report.info.rule_based)
    items = [
        tag("li", text, class_="loud" if rules and at == 0 else None)
        for at, text in enumerate(found)
    ]
    return tag("ul", *items, class_="warnings", aria_label="Warnings") if items else None


def _conclusions(report: Report) -> Markup:
    first, rest = (found := [*conclusions(report)])[:MOST_SENTENCES], found[MOST_SENTENCES:]
    more = tag("details", tag("summary", many(len(rest), "more comparison")), _sentences(rest))
    return tag(
        "section",
        tag("h2", "What can be concluded", id="conclusions-title"),
        _sentences(first),
        more if rest else None,
        id="conclusions",
        aria_labelledby="conclusions-title",
    )


def _sentences(sentences: Sequence[str]) -> Markup:
    return tag("ul", *(tag("li", one) for one in sentences), class_="sentences")


def _made_with(report: Report) -> Markup:
    lines = (tag("div", tag("dt", name), tag("dd", value)) for name, value in made_with(report))
    return tag(
        "section",
        tag("h2", "Made with", id="made-title"),
        tag("dl", *lines, class_="made"),
        id="made",
        aria_labelledby="made-title",
    )


def _file(name: str) -> str:
    return files("agent_brain.experiments.report.html").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the policy that lets a browser load nothing, and run only the script of the page."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
