"""axe-core finds nothing serious, and a screen reader is told what happens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from agent_brain import Brain, tool
from agent_brain.states.models.llm import Thought
from agent_brain.tools import Action
from tests.page.conftest import WIDE, Chat
from tests.page.model import Script

pytestmark = pytest.mark.thorough

WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
ANSWER = """# Prices

| kg | price |
|---|---:|
| 3 | 8.10 |

> From *January*, see [the list](https://example.org).

1. one
   - two

```python
price = 8.1
```
"""


@tool
def broken() -> str:
    """Fail."""
    raise OSError("the disk is full")


@tool(requires_approval=True)
def wipe(path: str) -> str:
    """Delete a file."""
    return path


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is there"


def script() -> Script:
    return Script(
        [
            Thought("Hm."),
            Action(name="broken"),
            *(Action(name="look", args={"at": n}) for n in "ab"),
        ],
        [ANSWER, ANSWER],
        ["Let me.", Action(name="wipe", args={"path": "/a"})],
    )


LOOKS: dict[str, dict[str, Any]] = {
    "wide": {"viewport": WIDE},
    "narrow": {"viewport": {"width": 390, "height": 800}},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
}


@pytest.mark.parametrize("look_of_page", LOOKS)
def test_axe_finds_nothing(serve, open_chat, look_of_page):
    chat = open_chat(
        serve(Brain(llm=script(), tools=[broken, look, wipe])).url, **LOOKS[look_of_page]
    )

    findings = axe_findings(chat, "best-practice")
    chat.ask("What does it cost?")
    expect(chat.log.get_by_text("price = 8.1").last).to_be_visible()
    chat.wait_until_idle()
    for card in chat.log.locator("details.tool:not([open]) > summary").all():
        card.click()
    findings += axe_findings(chat, "best-practice")
    chat.ask("Delete it.")
    chat.button("Edit arguments…").click()
    findings += axe_findings(chat, "best-practice")
    if look_of_page == "narrow":
        chat.button("Chats").click()  # what is behind the panel cannot be reached
        findings += axe_findings(chat)

    assert findings == []
    keep_picture(chat, look_of_page)


def axe_findings(chat: Chat, *more_rules: str) -> list[str]:
    found = Axe().run(chat.page, options={"runOnly": [*WCAG, *more_rules]}).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def keep_picture(chat: Chat, name: str) -> None:
    """Save a screenshot to the folder PAGE_SHOTS, if it is set."""
    if folder := os.environ.get("PAGE_SHOTS"):
        chat.page.screenshot(path=Path(folder, f"{name}.png"))


def test_a_screen_reader_hears_the_answer_once_and_not_each_word(serve, open_chat, pauses):
    pause = pauses()
    chat = open_chat(serve(Brain(llm=Script(["It is ", pause, "**8.10**."]))).url)
    spoken = chat.page.locator("#announcer")

    chat.ask("What does it cost?")
    expect(chat.answers).to_have_text("It is")
    expect(spoken).to_have_text("The agent works.")
    pause.release()

    expect(spoken).to_have_text("The agent says: It is 8.10.")
    expect(chat.log).to_have_attribute("aria-live", "off")


def test_nothing_moves_if_the_person_wants_no_motion(serve, open_chat, pauses):
    pause = pauses()
    chat = open_chat(serve(Brain(llm=Script(["a", pause]))).url, reduced_motion="reduce")

    chat.ask("Hello!")
    expect(chat.answers).to_have_text("a")

    assert chat.page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize("width", [320, 390, 768, 1024])
def test_nothing_is_wider_than_the_screen(serve, open_chat, width):
    long = "x" * 300
    llm = Script(
        [
            f"{long} `{long}`\n\n```\n{long}\n```\n\n| {' | '.join('abcdefghijkl' * 3)} |\n|{'--|' * 36}\n"
        ]
    )
    chat = open_chat(serve(Brain(llm=llm)).url, viewport={"width": width, "height": 700})

    chat.ask(long)
    chat.wait_until_idle()

    expect(chat.answers.get_by_role("table")).to_have_count(1)
    assert chat.page.evaluate("document.scrollingElement.scrollWidth") == width
    assert chat.log.evaluate("e => e.scrollWidth - e.clientWidth") == 0


def test_a_page_that_is_enlarged_four_times_can_be_read(serve, open_chat, pauses):
    pause = pauses()
    lines = [f"line {number}\n\n" for number in range(40)]
    chat = open_chat(
        serve(Brain(llm=Script([*lines, pause]))).url, viewport={"width": 320, "height": 200}
    )
    chat.ask("Many lines, please.")
    expect(chat.log.get_by_text("line 39")).to_have_count(1)

    assert chat.log.evaluate("e => e.clientHeight") >= 80  # px
    expect(chat.log.get_by_text("line 39")).to_be_in_viewport()
    assert chat.page.evaluate("document.scrollingElement.scrollWidth") == 320


def test_all_of_a_long_chat_is_printed(serve, open_chat):
    lines = [f"line {number}\n\n" for number in range(120)]
    chat = open_chat(serve(Brain(llm=Script(lines))).url)
    chat.ask("Many lines, please.")
    chat.wait_until_idle()

    chat.page.emulate_media(media="print")

    assert chat.log.evaluate("e => e.scrollHeight - e.clientHeight") == 0
    assert chat.page.evaluate("document.scrollingElement.scrollHeight") > 120 * 16
    expect(chat.input).to_be_hidden()


def test_an_answer_in_arabic_starts_at_the_right(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["مرحبا `x = 1`"]))).url)
    chat.ask("مرحبا")

    expect(chat.answers).to_have_css("direction", "rtl")
    expect(chat.answers.locator("code")).to_have_css("direction", "ltr")
