"""A browser that opens reports, and a report of real runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from agent_brain.experiments.report.report import Report
from tests.experiments.html.kept import make_report
from tests.page import conftest

browser = conftest.browser


@pytest.fixture(scope="package")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return make_report(tmp_path_factory.mktemp("experiment"))


@pytest.fixture(scope="package")
def file(report: Report) -> Path:
    assert report.folder is not None
    path = report.folder / "report.html"
    path.write_text(report.to_html(), encoding="utf-8")
    return path


@pytest.fixture
def open_file(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open files in a browser; none may ask for anything else, or log an error."""
    seen: list[str] = []
    asked: set[str] = set()
    with ExitStack() as stack:

        def open_it(path: Path, **options: Any) -> Page:
            context = browser.new_context(**options)
            stack.callback(context.close)
            page = context.new_page()
            page.on("console", lambda message: seen.append(message.text))
            page.on("pageerror", lambda error: seen.append(str(error)))
            page.on("request", lambda request: asked.add(request.url.partition("#")[0]))
            page.goto(path.as_uri())
            assert asked == {path.as_uri()}
            return page

        yield open_it
    assert seen == []
    assert len(asked) <= 1
