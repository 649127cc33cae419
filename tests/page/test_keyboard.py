"""Everything can be done without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from agent_brain import Brain, tool
from agent_brain.tools import Action
from tests.page.model import Script

pytestmark = pytest.mark.thorough

PHONE = {"width": 390, "height": 800}


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press Tab until an element with this name has the focus."""
    seen = []
    for _ in range(40):
        page.keyboard.press(key)
        seen.append(
            page.evaluate(
                "document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()"
            )
        )
        if seen[-1].startswith(name):
            return
    raise AssertionError(f"{name!r} cannot be reached: {seen}")


def test_ask_approve_and_read_with_the_keyboard_alone(serve, open_chat):
    @tool(requires_approval=True)
    def wipe(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    llm = Script([Action(name="wipe", args={"path": "/a"})], ["Done."])
    chat = open_chat(serve(Brain(llm=llm, tools=[wipe])).url)
    keyboard = chat.page.keyboard

    expect(chat.input).to_be_focused()
    keyboard.type("Delete")
    keyboard.press("Shift+Enter")
    keyboard.type("it.")
    keyboard.press("Enter")
    expect(chat.button("Approve")).to_be_enabled()
    tab_to(chat.page, "Approve", "Shift+Tab")
    keyboard.press("Enter")

    expect(chat.answers).to_have_text("Done.")
    expect(chat.log.get_by_role("article", name="You")).to_have_text("Delete\nit.")


def test_escape_stops_the_run(serve, open_chat, pauses):
    pause = pauses()

    @tool
    async def search() -> str:
        """Search."""
        await pause.wait()
        return "found"

    chat = open_chat(serve(Brain(llm=Script([Action(name="search")], ["No."]), tools=[search])).url)

    chat.ask("Where?")
    pause.wait_until_reached()
    with chat.page.expect_response("**/stop"):
        chat.page.keyboard.press("Escape")
    pause.release()

    expect(chat.log.get_by_text("Stopped.")).to_be_visible()


def test_sessions_are_changed_and_deleted_with_the_keyboard(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["One."], ["Two."]))).url)
    keyboard = chat.page.keyboard

    chat.ask("First")
    expect(chat.answers).to_have_text("One.")
    chat.wait_until_idle()
    tab_to(chat.page, "New chat", "Shift+Tab")
    keyboard.press("Enter")
    expect(chat.input).to_be_focused()
    chat.ask("Second")
    expect(chat.answers).to_have_text("Two.")
    chat.wait_until_idle()
    tab_to(chat.page, "First", "Shift+Tab")
    keyboard.press("Enter")
    expect(chat.answers).to_have_text("One.")
    tab_to(chat.page, "Delete First", "Shift+Tab")
    keyboard.press("Enter")
    tab_to(chat.page, "Delete")
    keyboard.press("Enter")

    expect(chat.button("Delete First")).to_have_count(0)
    expect(chat.button("Delete Second")).to_be_visible()


def test_the_skip_link_leads_to_the_message(serve, open_chat):
    chat = open_chat(serve(Brain()).url)

    tab_to(chat.page, "Skip to the message", "Shift+Tab")
    expect(chat.page.get_by_role("link", name="Skip to the message")).to_be_in_viewport()
    chat.page.keyboard.press("Enter")

    expect(chat.input).to_be_focused()


def test_the_focus_is_always_visible(serve, open_chat):
    chat = open_chat(serve(Brain()).url)
    hidden = "e => getComputedStyle(e).outlineStyle === 'none'"

    for _ in range(8):
        chat.page.keyboard.press("Tab")
        focused = chat.page.locator(":focus")
        if focused.count():
            assert not focused.evaluate(hidden), focused.evaluate("e => e.outerHTML")


def test_a_panel_of_a_narrow_screen_opens_and_closes_with_the_keyboard(serve, open_chat):
    chat = open_chat(serve(Brain()).url, viewport=PHONE)
    opener = chat.button("Chats")

    expect(chat.button("New chat")).to_be_hidden()
    opener.press("Enter")
    expect(chat.button("New chat")).to_be_visible()
    expect(chat.page.get_by_role("navigation").get_by_role("button", name="Close")).to_be_focused()
    chat.page.keyboard.press("Escape")

    expect(chat.button("New chat")).to_be_hidden()
    expect(opener).to_be_focused()
    expect(opener).to_have_attribute("aria-expanded", "false")


def test_a_panel_of_a_narrow_screen_stays_open_while_a_chat_is_renamed(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Oslo."]))).url, viewport=PHONE)
    chat.ask("The capital?")
    chat.wait_until_idle()

    chat.button("Chats").click()
    chat.button("Rename The capital?").click()
    dialog = chat.page.get_by_role("dialog")
    dialog.get_by_role("textbox").click()
    dialog.get_by_role("textbox").fill("Norway")
    dialog.get_by_role("button", name="Rename").click()

    expect(chat.button("Rename Norway")).to_be_visible()
