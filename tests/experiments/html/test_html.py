"""The HTML of reports: of any size, finished or not, with and without sessions."""

from __future__ import annotations

import json
import re
import runpy
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from agent_brain.experiments.case import Outcome
from agent_brain.experiments.report.html.page import html_page
from agent_brain.experiments.report.html.steps import LONGEST, cut
from agent_brain.experiments.report.report import Report
from tests.experiments.html.kept import HOSTILE
from tests.experiments.report.made import MESSAGES, VECTOR, case, info_of, report_of


class Reader(HTMLParser):
    """What of a page tests look at: links, IDs, data, and the text of elements that are shown."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.data: dict[str, Any] = {}
        self.text = ""
        self._inside: list[tuple[str, str | None]] = []
        self.feed(page)
        self.text = " ".join(self.text.split())
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag not in ("meta", "wbr"):
            self._inside.append((tag, given.get("id")))

    def handle_endtag(self, tag):
        assert self._inside.pop()[0] == tag

    def handle_data(self, data):
        tag, name = self._inside[-1] if self._inside else ("", None)
        if tag == "script" and name is not None:
            self.data[name] = json.loads(data)
        elif tag not in ("script", "style"):
            self.text += data if tag in ("b", "text") else f" {data}"


def test_every_case_has_a_link_and_data(report):
    page = Reader(html_page(report))

    assert len(page.ids) == len(set(page.ids))
    for each in report.cases:
        assert f"#case-{each.id}" in page.links
        assert page.data[f"data-{each.id}"]["outcome"] == each.outcome


def test_what_an_agent_says_is_no_markup(report):
    text = html_page(report)
    page = Reader(text)

    assert "<img" not in text
    assert page.tags.count("script") == len(report.cases) + 2
    assert page.data["data-messageshostile"]["answer"] == HOSTILE


def test_the_page_asks_for_nothing(report):
    text = html_page(report)

    assert "default-src 'none'" in unescape(text)
    assert re.findall(r'(?:src|href)="(?![#$])[^"]*"', text) == []


def test_the_test_of_a_case_passes_as_it_is(report, tmp_path):
    data = Reader(html_page(report)).data["data-messagesnothing"]
    path = tmp_path / "test_it.py"
    path.write_text(data["test"])

    runpy.run_path(str(path))["test_nothing_react"]()

    assert "# The experiment expected: contains '42'" in data["test"]
    assert any("sessions show 1 --journal sessions.db" in one for one in data["commands"])


def test_the_test_of_a_case_whose_check_raised_an_error_passes_too(report, tmp_path):
    cases = [
        case.model_copy(update={"outcome": Outcome.CRASHED, "error": "ValueError: no number"})
        for case in report.cases
        if case.task == "nothing"
    ]
    page = Reader(html_page(Report(report.info, cases, report.folder)))
    path = tmp_path / "test_it.py"
    path.write_text(page.data["data-messagesnothing"]["test"])

    runpy.run_path(str(path))["test_nothing_react"]()


def test_messages_are_in_the_file_once(report):
    data = Reader(html_page(report)).data
    found = data["data-messagesnothing"]
    first, second = (
        call for step in found["sessions"][0]["steps"] for call in step.get("models", ())
    )

    assert second["prompt"][: len(first["prompt"])] == first["prompt"]
    assert data["shared"][int(first["prompt"][0])]["role"] == "system"
    assert data["shared"][first["tools"][0]]["name"] == "look"


def test_failures_come_first_when_the_file_would_be_too_large(report):
    text = html_page(report, most_bytes=1)
    page = Reader(text)

    assert "sessions" in page.data["data-messageshostile"]
    assert "left out" in page.data["data-messagesseen"]["missing"]
    assert "9 cases are in this file without their steps" in page.text


def test_secrets_are_hidden(report, monkeypatch):
    monkeypatch.setattr("agent_brain.common.secrets._values", ())  # it stays hidden otherwise
    monkeypatch.setenv("SOME_API_KEY", "there is nothing")

    page = html_page(report)

    assert "there is nothing" not in page
    assert "[hidden]" in page


@pytest.mark.parametrize("signs", ["+", "-"])
def test_one_case_is_a_report(signs):
    page = Reader(report_of({MESSAGES: signs}, memories=["messages"]).to_html())

    assert "There is nothing to compare" in page.text
    assert "1 cell × 1 task ·" in page.text
    assert [link for link in page.links if link.startswith("#case-")]
    assert "were not kept" in page.data["data-react/messages/small-t0-0"]["missing"]


def test_a_report_without_cases_says_what_was_not_run():
    page = Reader(report_of({MESSAGES: "   "}).to_html())

    assert "6 of 6 cases were not run" in page.text
    assert "picture" not in page.ids
    assert page.links == []


def test_cases_that_were_not_run_are_told_from_failures():
    page = Reader(report_of({MESSAGES: "+- ", VECTOR: "  +"}).to_html())

    assert "3 of 6 cases were not run" in page.text
    assert page.text.count("not run") >= 3
    assert len([link for link in page.links if link.startswith("#case-")]) == 3


def test_a_report_without_failures():
    page = Reader(report_of({MESSAGES: "+++", VECTOR: "+++"}).to_html())

    assert "Wrong" not in page.text.split("Passed", 1)[0]
    assert "Accuracy by cost" in page.text


@pytest.mark.parametrize("cost, why", [(None, "No cost is known"), (0.0, "Nothing was paid")])
def test_without_costs_the_picture_is_by_tokens(cost, why):
    info = info_of(tasks=2)
    cases = [case(cell, f"t{n}", cost=cost) for cell in (MESSAGES, VECTOR) for n in (0, 1)]

    page = Reader(Report(info, cases).to_html())

    assert "Accuracy by tokens" in page.text
    assert f"{why}, so this is by tokens" in page.text


def test_cells_without_a_price_are_not_in_the_picture_and_are_named():
    info = info_of(tasks=1)
    cases = [case(MESSAGES, "t0"), case(VECTOR, "t0", cost=None)]

    page = Reader(Report(info, cases).to_html())

    assert "Accuracy by cost" in page.text
    assert "Left out, as their cost is not known: vector." in page.text


def test_two_hundred_tasks_and_many_cells():
    memories = [f"memory{n}" for n in range(9)]
    cells = [MESSAGES._replace(memory=name) for name in memories]
    report = report_of(dict.fromkeys(cells, "+-" * 100), memories=memories)

    page = Reader(report.to_html())

    assert len(page.data) == 1 + 9 * 200
    assert page.text.count("repeated itself") == 1


def test_labels_of_equal_cells_do_not_meet():
    memories = [f"memory{n}" for n in range(9)]
    cells = [MESSAGES._replace(memory=name) for name in memories]

    text = report_of(dict.fromkeys(cells, "+-"), memories=memories).to_html()

    places = re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>\d memory', text)
    assert len({*places}) == len(memories)


def test_each_repeat_has_a_sign():
    info = info_of(memories=["messages"], tasks=1, repeat=2)
    cases = [case(MESSAGES, "t0", repeat=n, passed=bool(n)) for n in (0, 1)]

    text = Report(info, cases).to_html()

    assert 'aria-label="react, t0: wrong"' in text
    assert 'aria-label="react, t0: passed, repeat 2"' in text


def test_sessions_that_are_gone_or_damaged_are_said(tmp_path):
    info = info_of(memories=["messages"], tasks=1)
    report = Report(info, [case(MESSAGES, "t0", sessions=("1",))], tmp_path)

    gone = Reader(report.to_html()).data["data-react/messages/small-t0-0"]
    (tmp_path / "sessions.db").write_bytes(b"not a database" * 100)
    damaged = Reader(report.to_html()).data["data-react/messages/small-t0-0"]

    assert "not kept any more" in gone["missing"]
    assert gone["commands"] == []
    assert "cannot be read" in damaged["missing"]


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_its_sign(outcome):
    report = Report(
        info_of(memories=["messages"], tasks=1), [case(MESSAGES, "t0", outcome=outcome)]
    )

    assert f'class="sign {outcome.value}" href=' in report.to_html()


def test_long_texts_are_cut_and_say_so():
    assert cut("a" * LONGEST) == "a" * LONGEST
    assert cut("a" * (LONGEST + 7)).endswith("[… 7 more characters are not in this file]")
