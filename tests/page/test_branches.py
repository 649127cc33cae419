"""Answers given again, questions changed, and the branches of a chat to choose from."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from agent_brain import Brain
from tests.page.conftest import Chat
from tests.page.model import Script


@pytest.fixture
def chat(serve, open_chat, tmp_path):
    """A chat in which two questions were answered."""
    answers = [[f"Answer {number}."] for number in range(1, 7)]
    opened = open_chat(serve(Brain(llm=Script(*answers)), journal=tmp_path / "chats.db").url)
    opened.ask("First?")
    opened.wait_until_idle()
    opened.ask("Second?")
    opened.wait_until_idle()
    expect(opened.answers).to_have_text(["Answer 1.", "Answer 2."])
    return opened


def links(chat: Chat) -> Locator:
    return chat.page.get_by_role("navigation", name="Chats").locator("li > a:first-child")


def picker(chat: Chat) -> Locator:
    return chat.page.get_by_role("group", name="Branches")


def edit(chat: Chat, place: int, text: str) -> None:
    chat.page.get_by_role("button", name="Edit").nth(place).click()
    field = chat.page.get_by_label("Edit your message")
    expect(field).to_be_focused()
    field.fill(text)
    chat.button("Send in a branch").click()


def test_an_answer_is_given_again_and_the_earlier_one_is_chosen_again(chat):
    chat.page.get_by_role("button", name="Answer again").last.click()
    expect(chat.answers).to_have_text(["Answer 1.", "Answer 3."])
    chat.wait_until_idle()
    expect(picker(chat)).to_have_text("‹2 of 2›")
    chat.page.get_by_role("link", name="Previous branch").press("Enter")

    expect(chat.answers).to_have_text(["Answer 1.", "Answer 2."])
    expect(picker(chat)).to_have_text("‹1 of 2›")
    expect(picker(chat)).to_be_focused()


def test_a_question_is_changed_and_nothing_is_lost(chat):
    edit(chat, 0, "Another first?")

    expect(chat.answers).to_have_text(["Answer 3."])
    chat.wait_until_idle()
    chat.ask("Its second?")
    chat.wait_until_idle()
    expect(chat.log.get_by_role("article", name="You")).to_have_text(
        ["Another first?", "Its second?"]
    )
    chat.page.reload()
    expect(chat.answers).to_have_text(["Answer 3.", "Answer 4."])
    chat.page.get_by_role("link", name="Previous branch").click()
    expect(chat.log.get_by_role("article")).to_have_text(
        ["First?", "Answer 1.", "Second?", "Answer 2."]
    )
    expect(picker(chat)).to_be_focused()
    chat.page.get_by_role("link", name="Next branch").press("Enter")
    expect(chat.answers).to_have_text(["Answer 3.", "Answer 4."])
    expect(picker(chat)).to_have_text("‹2 of 2›")


def test_a_chat_with_its_branches_is_one_in_the_list(chat):
    chat.page.get_by_role("button", name="Answer again").last.click()
    expect(chat.answers).to_have_text(["Answer 1.", "Answer 3."])
    chat.wait_until_idle()
    edit(chat, 0, "Another?")
    expect(chat.answers).to_have_text(["Answer 4."])
    chat.wait_until_idle()

    expect(links(chat)).to_have_count(1)
    expect(links(chat)).to_contain_text("3 branches")
    expect(links(chat)).to_have_attribute("aria-current", "page")
    chat.button("Rename First?").click()
    chat.page.get_by_role("dialog").get_by_label("Title").fill("Mine")
    chat.page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    chat.page.get_by_role("link", name="Previous branch").click()
    expect(chat.page).to_have_title(re.compile("^Mine"))
    chat.button("Delete Mine").click()
    chat.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(links(chat)).to_have_count(0)
    chat.page.reload()
    expect(chat.page.get_by_text("No chats yet.")).to_be_visible()


def test_enter_sends_an_edit_once(chat):
    chat.page.get_by_role("button", name="Edit").first.click()
    field = chat.page.get_by_label("Edit your message")
    field.fill("Another")
    field.press("Shift+Enter")
    field.press_sequentially("first?\n\n")

    expect(chat.answers).to_have_text(["Answer 3."])
    expect(chat.page.get_by_text("Another\nfirst?")).to_be_visible()
    expect(picker(chat)).to_have_text("‹2 of 2›")


@pytest.mark.thorough
def test_an_edit_that_is_not_sent_changes_nothing(chat):
    chat.page.get_by_role("button", name="Edit").first.click()
    chat.page.get_by_label("Edit your message").press("Escape")
    expect(chat.page.get_by_role("button", name="Edit").first).to_be_focused()
    chat.page.get_by_role("button", name="Edit").first.click()
    chat.tolerate("400")
    chat.page.get_by_label("Edit your message").fill(" ")
    chat.button("Send in a branch").click()
    expect(chat.page.get_by_role("alert").filter(has_text="would be empty")).to_be_visible()
    chat.button("Cancel").click()

    expect(chat.log.get_by_role("article")).to_have_count(4)


@pytest.mark.thorough
def test_without_kept_steps_nothing_is_offered_that_cannot_be_done(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Yes."]))).url)
    chat.ask("Hm?")
    chat.wait_until_idle()

    expect(chat.page.get_by_role("button", name="Copy the answer")).to_have_count(1)
    expect(chat.page.get_by_role("button", name="Edit")).to_have_count(0)
    expect(chat.page.get_by_role("button", name="Answer again")).to_have_count(0)
