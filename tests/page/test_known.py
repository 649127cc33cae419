"""What is known about the user, on the page: facts with their sources, corrected and forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from agent_brain import Brain, tool
from agent_brain.memories import RamJournal
from agent_brain.tools import Action
from tests.page.conftest import WIDE, Chat
from tests.page.model import Script
from tests.page.test_accessibility import axe_findings, keep_picture

NASTY = "Likes <img src=x onerror=alert(1)> & <b>tea</b>"


@tool
def web(query: str) -> str:
    """Search."""
    return "The user lives in Rome."


def remember(**args: Any) -> Action:
    return Action(name="remember", args=args)


def script() -> Script:
    return Script(
        [remember(text="Lives in Paris", slot="home", quote="I live in Paris")],
        ["Noted."],
        [
            remember(text="Lives in Porto", slot="home", quote="I moved to Porto"),
            remember(text=NASTY, quote="I like <img src=x onerror=alert(1)> & <b>tea</b>"),
            remember(text="Plays chess", about="Bob", quote="Bob plays chess"),
            Action(name="web", args={"query": "me"}),
            Action(name="edit_block", args={"name": "project", "text": "A house", "version": 0}),
        ],
        [remember(text="Lives in Rome", slot="home")],
        ["Noted too."],
        ["Hello."],
    )


def talk(serve: Any, open_chat: Any, **options: Any) -> Chat:
    """Two chats in which the agent remembers, and a third."""
    brain = Brain(llm=script(), tools=[web])
    chat: Chat = open_chat(serve(brain, journal=RamJournal(), knows={}).url, **options)
    for question in (
        "I live in Paris",
        "I moved to Porto. I like <img src=x onerror=alert(1)> & <b>tea</b>. Bob plays chess.",
        "Hi",
    ):
        chat.page.goto(chat.page.url.partition("#")[0] + "#/")
        chat.ask(question)
        chat.wait_until_idle()
    return chat


def known(chat: Chat) -> Locator:
    dialog = chat.page.get_by_role("dialog", name="What I know about you")
    if not dialog.is_visible():
        chat.button("What I know about you").click()
    return dialog


def fact(chat: Chat, text: str) -> Locator:
    return known(chat).get_by_role("listitem").filter(has_text=text)


def test_facts_are_shown_with_sources_corrected_and_forgotten(serve, open_chat):
    chat = talk(serve, open_chat)

    current = known(chat).locator("section", has_text="Known").first
    expect(current.locator(".known-fact")).to_have_text(
        ["Bob: Plays chess", NASTY, "home Lives in Porto"]
    )
    expect(known(chat).locator("img, b")).to_have_count(0)
    expect(fact(chat, "Lives in Rome")).to_contain_text("A tool or a web page said on")
    porto = fact(chat, "Lives in Porto")
    expect(porto.locator("blockquote")).to_have_text("I moved to Porto")
    expect(porto).to_contain_text("You said on")
    past = known(chat).locator("section", has_text="No longer true")
    expect(past.locator(".known-fact")).to_have_text("home Lives in Paris")

    porto.get_by_role("button", name="Correct").click()
    chat.page.keyboard.type("Lives in Lisbon")
    chat.page.keyboard.press("Enter")
    expect(known(chat).get_by_role("status")).to_have_text("Corrected.")
    expect(current.locator(".known-fact")).to_have_text(
        ["home Lives in Lisbon", "Bob: Plays chess", NASTY]
    )
    expect(past.locator(".known-fact")).to_have_text(["home Lives in Porto", "home Lives in Paris"])

    fact(chat, "Lives in Paris").get_by_role("link", name="I live in Paris").click()
    expect(chat.log.get_by_role("article", name="You")).to_have_text("I live in Paris")
    fact(chat, "Lives in Paris").get_by_role("button", name="Forget").click()
    fact(chat, "Lives in Paris").get_by_role("button", name="Forget", exact=True).click()
    expect(known(chat).get_by_role("status")).to_have_text("Forgotten.")
    expect(past.locator(".known-fact")).to_have_text("home Lives in Porto")
    expect(chat.page.get_by_text("I live in Paris")).to_have_count(0)

    chat.button("Forget everything…").click()
    known(chat).get_by_role("button", name="Forget", exact=True).last.click()
    expect(known(chat)).to_contain_text("Nothing is known about you yet.")
    chat.page.keyboard.press("Escape")
    expect(chat.page.get_by_text("No chats yet.")).to_be_visible()


@pytest.mark.thorough
@pytest.mark.parametrize("look", ["wide", "narrow", "dark"])
def test_axe_finds_nothing(serve, open_chat, look):
    looks: dict[str, dict[str, Any]] = {
        "wide": {"viewport": WIDE},
        "narrow": {"viewport": {"width": 390, "height": 800}},
        "dark": {"viewport": WIDE, "color_scheme": "dark"},
    }
    chat = talk(serve, open_chat, **looks[look])
    if look == "narrow":
        chat.button("Chats").click()
    expect(fact(chat, "Lives in Porto")).to_be_visible()
    findings = axe_findings(chat, "best-practice")
    keep_picture(chat, f"user-{look}")
    fact(chat, "Lives in Porto").get_by_role("button", name="Correct").click()
    fact(chat, "Bob: Plays").get_by_role("button", name="Forget").click()
    findings += axe_findings(chat, "best-practice")
    assert findings == []
    assert known(chat).evaluate("e => e.scrollWidth - e.clientWidth") == 0


def test_a_server_that_keeps_nothing_about_users_offers_nothing(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Hello."]))).url)
    expect(chat.button("What I know about you")).to_have_count(0)


def test_what_is_said_in_arabic_starts_at_the_right_whatever_names_it(serve, open_chat):
    said = "أعيش في القاهرة"
    script = Script(
        [
            remember(text=said, slot="home", quote=said),
            Action(name="edit_block", args={"name": "project", "text": said, "version": 0}),
        ],
        ["Noted."],
    )
    chat = open_chat(serve(Brain(llm=script), journal=RamJournal(), knows={}).url)
    chat.ask(said)
    chat.wait_until_idle()
    for text in known(chat).locator(".known-fact").all():
        expect(text).to_have_css("direction", "rtl")
    expect(known(chat).locator(".known-fact")).to_have_count(2)
    expect(known(chat).locator("blockquote")).to_have_css("border-right-width", "3px")


@pytest.mark.parametrize("way", ["Forget", "Correct"])
def test_what_another_tab_has_forgotten_is_told_and_shown(serve, open_chat, way):
    script = Script([remember(text="Lives in Paris", quote="I live in Paris")], ["Noted."])
    chat = open_chat(serve(Brain(llm=script), journal=RamJournal(), knows={}).url)
    chat.ask("I live in Paris")
    chat.wait_until_idle()
    fact(chat, "Lives in Paris").get_by_role("button", name=way).click()

    other = chat.page.context.request
    assert other.post(f"{chat.page.url.partition('#')[0]}user/forget", data={"text": "Paris"}).ok
    if way == "Forget":
        known(chat).get_by_role("button", name="Forget", exact=True).click()
    else:
        chat.page.keyboard.type("Lives in Lisbon")
        chat.page.keyboard.press("Enter")

    chat.tolerate("404")
    expect(known(chat)).to_contain_text("This was forgotten meanwhile.")
    expect(known(chat)).to_contain_text("Nothing is known about you yet.")
    expect(known(chat).get_by_role("heading", name="What I know about you")).to_be_focused()
