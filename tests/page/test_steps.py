"""The steps of a session: why a run failed, what a model saw, and going on from a step in a copy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from agent_brain import Brain, tool
from agent_brain.tools import Action
from tests.page.conftest import Chat
from tests.page.model import Script
from tests.page.test_accessibility import LOOKS, axe_findings


@tool
def find_order(number: int) -> str:
    """Find an order."""
    if number == 41:
        raise LookupError("there is no order 41")
    return f"Order {number} arrives on Monday"


def failing_then(*later: list) -> Brain:
    """Return a brain whose first run fails after a failed call."""
    script = Script(
        [Action(name="find_order", args={"number": 41})],
        [ConnectionError("the model cannot be reached")],
        *later,
    )
    return Brain("react", tools=[find_order], llm=script)


def fail(chat: Chat) -> None:
    """Ask what fails."""
    chat.ask("Where is order 41?")
    expect(chat.log.get_by_text("The run failed.")).to_be_visible()
    chat.tolerate("the model cannot be reached")


def steps(chat: Chat) -> Locator:
    return chat.page.get_by_role("list", name="Steps").get_by_role("link")


def step(chat: Chat) -> Locator:
    return chat.page.get_by_role("region", name="Step", exact=True)


def shoot(chat: Chat, name: str) -> None:
    """Save a screenshot to the folder PAGE_SHOTS, if it is set."""
    if folder := os.environ.get("PAGE_SHOTS"):
        chat.page.screenshot(path=Path(folder, f"steps-{name}.png"))


def test_a_failed_run_is_understood_and_goes_on_in_a_copy(serve, open_chat, tmp_path):
    brain = failing_then(
        [Action(name="find_order", args={"number": 42})], ["It arrives on Monday."]
    )
    chat = open_chat(serve(brain, journal=tmp_path / "chats.db").url)
    fail(chat)
    chat.page.reload()
    failed = chat.log.get_by_role("alert")
    expect(failed).to_contain_text("The run failed. ConnectionError: the model cannot be reached")
    chats = chat.page.get_by_role("navigation", name="Chats")

    expect(chats.get_by_text("failed")).to_be_visible()
    shoot(chat, "1-list")
    chats.get_by_role("link", name="Steps of Where is order 41?").click()

    expect(steps(chat)).to_contain_text(
        ["A run begins", "REASONING → ACTION", "find_order: failed", "The run failed"]
    )
    expect(step(chat).locator(".note.failed")).to_contain_text("the model cannot be reached")
    seen = step(chat).get_by_role("list", name="Messages that the memory shows")
    expect(seen.get_by_role("listitem")).to_contain_text(
        ["Where is order 41?", 'find_order({"number":41})', "there is no order 41"]
    )
    shoot(chat, "2-failure")
    steps(chat).nth(2).click()
    expect(step(chat).locator(".tool[data-state=failed]")).to_contain_text("there is no order 41")
    expect(step(chat).get_by_role("group", name="Changed values")).to_be_visible()
    expect(step(chat).locator("[role=region]")).to_have_count(0)  # landmarks are few
    shoot(chat, "3-call")
    steps(chat).nth(0).click()
    expect(step(chat).get_by_role("heading", name="A run begins")).to_be_focused()

    step(chat).get_by_role("button", name="Fork from here…").click()
    step(chat).get_by_label("Goal").fill("Where is order 42?")
    shoot(chat, "4-fork")
    step(chat).get_by_role("button", name="Fork and continue").click()

    expect(chat.answers).to_have_text("It arrives on Monday.")
    expect(chat.log.get_by_role("article", name="You")).to_have_text("Where is order 42?")
    expect(chat.log.locator(".origin")).to_contain_text("A copy as of step 3 of Where is order 41?")
    expect(chats.get_by_role("listitem")).to_have_count(2)
    chat.wait_until_idle()
    shoot(chat, "5-answer")
    chat.log.get_by_role("link", name="Compare").click()
    expect(step(chat)).to_contain_text("0 messages in common")
    shoot(chat, "6-comparison")
    step(chat).get_by_role("link", name="Where is order 41?").click()
    expect(chat.log.get_by_role("article", name="You")).to_have_text("Where is order 41?")


def traced(*turns: list) -> Brain:
    return Brain("react", tools=[find_order], llm=Script(*turns), trace=True)


def see(chat: Chat, title: str = "Where is order 41?") -> None:
    """Open the steps of a chat."""
    chats = chat.page.get_by_role("navigation", name="Chats")
    chats.get_by_role("link", name=f"Steps of {title}").click()
    expect(steps(chat).first).to_be_visible()


def test_a_recorded_model_call_shows_what_was_sent_and_what_came_back(serve, open_chat, tmp_path):
    brain = traced([Action(name="find_order", args={"number": 42})], ["On Monday."])
    chat = open_chat(serve(brain, journal=tmp_path / "chats.db").url)
    chat.ask("Where is order 42?")
    chat.wait_until_idle()

    see(chat, "Where is order 42?")
    steps(chat).nth(3).click()
    call = step(chat).get_by_role("article", name="Call of scripted/model")

    sent = call.get_by_role("list", name="Messages that were sent").get_by_role("listitem")
    expect(sent.last).to_contain_text("Order 42 arrives on Monday")
    returned = call.get_by_role("list", name="What the model returned")
    expect(returned).to_contain_text("On Monday.")
    call.get_by_text("Tools and parameters").click()
    expect(call.get_by_role("group", name="Tools and parameters")).to_contain_text("find_order")
    shoot(chat, "7-model-call")


@pytest.mark.thorough
@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_in_the_steps(serve, open_chat, tmp_path, look):
    brain = failing_then([Action(name="find_order", args={"number": 42})], ["On Monday."])
    chat = open_chat(serve(brain, journal=tmp_path / "chats.db").url, **LOOKS[look])
    fail(chat)

    chat.page.evaluate("location.hash += '/steps'")
    expect(steps(chat)).to_have_count(4)
    shoot(chat, f"{look}-list")
    findings = axe_findings(chat) if look == "narrow" else []  # elsewhere it is beside the step
    steps(chat).nth(2).click()
    expect(step(chat).get_by_role("heading", name="ACTION → REASONING")).to_be_focused()
    chat.button("Fork from here…").click()
    expect(step(chat).get_by_role("heading", name="Fork from step 8")).to_be_focused()
    shoot(chat, f"{look}-fork")
    findings += axe_findings(chat, "best-practice")
    chat.button("Fork only").click()
    chat.log.get_by_role("link", name="Compare").click()
    expect(step(chat).get_by_role("heading", name="Comparison")).to_be_focused()
    shoot(chat, f"{look}-comparison")
    findings += axe_findings(chat)

    assert findings == []


@pytest.mark.thorough
@pytest.mark.parametrize("width", [320, 768, 1024])
def test_the_steps_fit_the_screen(serve, open_chat, tmp_path, width):
    brain = Brain("react", llm=Script(["x" * 400]))
    size = {"width": width, "height": 700}
    chat = open_chat(serve(brain, journal=tmp_path / "chats.db").url, viewport=size)
    chat.ask("y" * 400)
    chat.wait_until_idle()

    chat.page.evaluate("location.hash += '/steps'")
    for number in (0, 1):
        if width < 900 and number:
            chat.page.get_by_role("link", name="All steps").click()
        steps(chat).nth(number).click()
        expect(step(chat).get_by_role("heading", level=3)).to_be_focused()
        assert step(chat).evaluate("e => e.scrollWidth - e.clientWidth") == 0
        assert chat.page.evaluate("document.scrollingElement.scrollWidth") == width


def test_a_running_session_shows_what_is_there_and_what_comes(serve, open_chat, tmp_path, pauses):
    pause, end = pauses(), pauses()
    script = [[Action(name="find_order", args={"number": 42})], [pause, "On Monday.", end]]
    brain = Brain("react", tools=[find_order], llm=Script(*script))
    chat = open_chat(serve(brain, journal=tmp_path / "chats.db").url)
    chat.ask("Where is order 42?")
    pause.wait_until_reached()

    see(chat, "Where is order 42?")
    expect(steps(chat)).to_have_count(3)
    expect(chat.status).to_have_text("Working")
    pause.release()
    end.release()

    expect(steps(chat)).to_have_count(6)
    expect(steps(chat).last).to_contain_text("The run is done")
    expect(chat.status).to_be_empty()


def test_the_steps_are_reached_with_the_keyboard(serve, open_chat, tmp_path):
    chat = open_chat(serve(failing_then(), journal=tmp_path / "chats.db").url)
    fail(chat)
    see(chat)
    expect(step(chat).get_by_role("heading", level=3)).to_be_focused()

    steps(chat).last.focus()
    chat.page.keyboard.press("ArrowUp")
    chat.page.keyboard.press("ArrowUp")
    expect(steps(chat).nth(1)).to_be_focused()
    chat.page.keyboard.press("Enter")

    expect(step(chat).get_by_role("heading", name="REASONING → ACTION")).to_be_focused()
    expect(steps(chat).nth(1)).to_have_attribute("aria-current", "step")
    chat.page.keyboard.press("Tab")
    chat.page.keyboard.press("Enter")
    expect(step(chat).get_by_role("heading", name="Fork from step 5")).to_be_focused()


@pytest.mark.thorough
def test_earlier_steps_are_loaded_when_they_are_asked_for(serve, open_chat, tmp_path):
    turns = [["Yes."] for _ in range(15)]
    chat = open_chat(serve(Brain(llm=Script(*turns)), journal=tmp_path / "chats.db").url)
    for number in range(15):
        chat.ask(f"Question {number}")
        chat.wait_until_idle()

    see(chat, "Question 0")
    expect(steps(chat)).to_have_count(50)
    chat.button("Earlier steps").click()

    expect(steps(chat)).to_have_count(60)
    expect(steps(chat).first).to_contain_text("Question 0")
    expect(chat.button("Earlier steps")).to_be_hidden()


def test_the_arguments_of_a_call_are_changed_in_a_copy(serve, open_chat, tmp_path):
    chat = open_chat(serve(failing_then(["On Monday."]), journal=tmp_path / "chats.db").url)
    fail(chat)
    see(chat)
    steps(chat).nth(1).click()
    expect(step(chat).get_by_role("heading", name="REASONING → ACTION")).to_be_focused()
    chat.button("Fork from here…").click()
    args = step(chat).get_by_label("Arguments of find_order")

    args.fill("{number")
    chat.button("Fork and continue").click()
    expect(step(chat).get_by_role("alert")).to_contain_text("are not JSON")
    args.fill('{"number": 42}')
    chat.button("Fork and continue").click()

    expect(chat.answers).to_have_text("On Monday.")
    expect(chat.tool("find_order")).to_contain_text("Order 42 arrives on Monday")


@pytest.mark.thorough
def test_without_a_journal_the_page_says_that_no_steps_are_kept(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Hi."]))).url)
    chat.tolerate("409")
    chat.ask("Hello")
    chat.wait_until_idle()

    expect(chat.page.get_by_role("link", name="Steps")).to_have_count(0)
    chat.page.evaluate("location.hash += '/steps'")

    expect(step(chat).get_by_role("alert")).to_contain_text("keeps no steps")
    chat.page.get_by_role("link", name="To the chat").click()
    expect(chat.answers).to_have_text("Hi.")


def test_what_a_step_says_is_shown_as_text(serve, open_chat, tmp_path):
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    chat = open_chat(serve(Brain(llm=Script([evil])), journal=tmp_path / "chats.db").url)
    chat.ask(evil)
    chat.wait_until_idle()

    chat.page.evaluate("location.hash += '/steps'")
    steps(chat).nth(1).click()

    expect(step(chat).get_by_role("list", name="Messages that the memory shows")).to_contain_text(
        evil
    )
    assert step(chat).locator("img, script").count() == 0
