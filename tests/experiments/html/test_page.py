"""The report in a browser: from the matrix to the step, safe, readable, usable by all."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from agent_brain.experiments.report.report import Report
from tests.experiments.report.made import MESSAGES, case, info_of
from tests.page.test_accessibility import WCAG

LOOKS: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1400, "height": 900}},
    "narrow": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
}


def case_link(page, name):
    return page.locator("#matrix").get_by_role("link", name=name, exact=True)


def test_two_clicks_lead_from_the_matrix_to_the_step_that_went_wrong(file, open_file):
    page = open_file(file)

    case_link(page, "messages, nothing: wrong").click()
    page.get_by_role("link", name="Step 4: REASONING.").click()

    step = page.locator(".step.chosen")
    expect(step).to_have_attribute("data-look", "wrong")
    expect(step).to_be_in_viewport()
    expect(step).to_contain_text("This step gave the answer that a check did not pass.")
    expect(step).to_contain_text("It is gone.")
    expect(page.locator("#report")).to_be_hidden()


def test_a_long_text_has_the_whole_width(tmp_path, open_file):
    failed = case(MESSAGES, "t0", False, reason="a word " * 200)
    path = tmp_path / "report.html"
    path.write_text(Report(info_of(memories=["messages"], tasks=1), [failed]).to_html())
    page = open_file(path)

    case_link(page, "react, t0: wrong").click()

    whole = page.locator(".verdict").bounding_box()
    assert page.locator(".verdict > div").last.bounding_box()["width"] == whole["width"]


def test_a_step_shows_what_was_sent_offered_called_and_returned(file, open_file):
    page = open_file(file)
    case_link(page, "messages, nothing: wrong").click()
    first, called, last = (page.locator(f"#step-{number}") for number in (2, 3, 4))

    last.get_by_text("Prompt as sent (4 messages, 2 new)").click()
    first.get_by_text("Tools offered (look)").click()

    expect(first).to_contain_text("Look something up.")
    expect(first).to_contain_text("120 tokens in, 8 out")
    expect(called).to_contain_text("Tool look: failed")
    expect(called).to_contain_text("there is nothing")
    expect(called).to_have_attribute("data-look", "trouble")
    expect(last.locator(".block.new")).to_have_count(2)
    expect(page.get_by_role("link", name="Step 3: The call of look failed.")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("contains '42'")
    expect(page.locator(".verdict")).to_contain_text("the answer lacks 42")


@pytest.mark.parametrize(
    "name, step, why",
    [
        ("messages, short: limit", 3, "A limit was reached here."),
        ("messages, broken: crashed", 2, "An error ended the case here."),
    ],
)
def test_the_step_at_which_a_case_ended_is_marked(file, open_file, name, step, why):
    page = open_file(file)

    case_link(page, name).click()

    expect(page.locator(f"#step-{step}")).to_have_attribute("data-look", "wrong")
    expect(page.locator(".went-wrong")).to_contain_text(why)


def test_nothing_that_an_agent_says_is_run(file, open_file):
    page = open_file(file)

    case_link(page, "messages, hostile: wrong").click()

    expect(page.locator(".verdict")).to_contain_text("onerror=")
    expect(page).to_have_title("hostile · messages")
    assert page.locator("img").count() == 0


def test_the_way_back_leads_to_the_place_in_the_matrix(file, open_file):
    page = open_file(file)
    case_link(page, "other, short: limit").click()
    expect(page.get_by_label("The same task in all cells").get_by_role("link")).to_have_count(2)

    page.get_by_role("link", name="← Report").click()

    expect(case_link(page, "other, short: limit")).to_be_focused()
    expect(page.locator("#run")).to_be_hidden()


def test_tables_sort_and_the_matrix_is_filtered(file, open_file):
    page = open_file(file)
    rows = page.locator("#matrix tbody tr")

    page.get_by_label("that a cell failed (4)").check()
    page.locator("#cells").get_by_role("button", name="Cell", exact=True).click()

    expect(rows.filter(visible=True)).to_have_count(4)
    expect(page.locator("#cells tbody th").first).to_contain_text("other")


@pytest.mark.thorough
@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing(file, open_file, look):
    page = open_file(file, **LOOKS[look])

    found = findings(page)
    case_link(page, "messages, nothing: wrong").click()
    for summary in page.locator("summary").all():
        summary.click()
    found += findings(page)

    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth") == LOOKS[look]["viewport"]["width"]


def findings(page):
    rules = {"runOnly": [*WCAG, "best-practice"]}
    found = Axe().run(page, options=rules).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def test_without_javascript_the_tables_can_be_read(file, open_file):
    page = open_file(file, java_script_enabled=False)

    expect(page.get_by_text("Without JavaScript")).to_be_visible()
    expect(page.locator("#cells")).to_contain_text("1/5 · 20 %")
    expect(case_link(page, "messages, broken: crashed")).to_be_visible()
    expect(page.locator("#picture svg")).to_be_visible()
