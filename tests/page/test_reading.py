"""What is done with an answer: it is copied, its formulas are read, its pictures and sounds are there."""

from __future__ import annotations

import base64
import wave
from dataclasses import asdict
from io import BytesIO
from typing import Any

import pytest
from playwright.sync_api import expect

from agent_brain import Brain
from agent_brain.nets import HandoffAgent, handoff
from agent_brain.states import Finish, ProviderCall
from agent_brain.tools import Action, Media, ToolResult, tool
from tests.page.model import Script
from tests.support.thorough import thorough

CODE = "Run **this**:\n\n```py\nx = 1\nprint(x)\n```"
FORMULAS = r"""So $a_1^2$ and \(b \times c\) cost from $5 to $6 in $HOME:$PATH.

$$
\frac{1}{2}
- \sqrt{x}
$$

\[ \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix} \] `$not$`

$\nosuch{x}$ and $\href{https://evil.example}{x}$"""


@tool
def listen() -> ToolResult:
    """Listen."""
    return ToolResult("A bird.", media=(Media("audio/wav", silence(), "bird.wav"),))


def silence() -> str:
    """Return a short sound without a sound, in base64."""
    with BytesIO() as file:
        with wave.open(file, "wb") as sound:
            sound.setparams((1, 1, 8000, 0, "NONE", ""))
            sound.writeframes(b"\x80" * 800)
        return base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize("secure", [True, *thorough([False])])
def test_answers_and_code_are_copied(serve, open_chat, secure):
    without = "delete Navigator.prototype.clipboard"  # as on a page without https
    permissions = ["clipboard-read", "clipboard-write"]
    chat = open_chat(
        serve(Brain(llm=Script([CODE]))).url,
        script=None if secure else without,
        permissions=permissions,
    )
    chat.ask("How?")
    chat.wait_until_idle()
    copied = []
    for name in ("Copy the message", "Copy the code", "Copy the answer"):
        chat.button(name).click()
        expect(chat.button("Copied").last).to_be_visible()
        reader = chat.page.context.new_page()
        reader.goto(chat.page.url)
        copied.append(reader.evaluate("navigator.clipboard?.readText() ?? null"))
        reader.close()

    assert copied == (["How?", "x = 1\nprint(x)", CODE] if secure else [None] * 3)


def test_formulas_are_drawn_and_money_is_not(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script([*FORMULAS]))).url)
    chat.ask("Prove it.")
    chat.wait_until_idle()

    drawn = chat.answers.locator("math")
    expect(drawn).to_have_count(4)
    expect(chat.answers.locator(".formula.display math")).to_have_count(2)
    expect(chat.answers.locator("msubsup")).to_have_text("a12")
    expect(chat.answers.locator("mfrac")).to_have_text("12")
    expect(chat.answers).to_contain_text("cost from $5 to $6 in $HOME:$PATH.")
    expect(chat.answers.locator("code")).to_have_text("$not$")
    expect(chat.answers.locator(".unread").first).to_have_text(r"\nosuch{x}")
    expect(chat.answers.locator("a")).to_have_count(0)
    assert chat.hosts == {chat.page.url.split("/")[2]}


def test_a_file_is_dropped_and_a_sound_of_a_tool_is_played(serve, open_chat):
    llm = Script([Action(name="listen", args={}, id="c1")], ["A bird."])
    chat = open_chat(serve(Brain(llm=llm, tools=[listen])).url)
    chat.page.locator("#main").evaluate("""(main) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File(["a,b"], "table.csv", { type: "text/csv" }));
        for (const type of ["dragover", "drop"])
            main.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }""")
    expect(chat.page.get_by_role("list", name="Attached files")).to_contain_text("table.csv")
    chat.ask("What is it?")
    chat.wait_until_idle()

    assert llm.asked[0][-1].attachments[0].media_type == "text/csv"
    expect(chat.log.get_by_role("link", name="Download table.csv")).to_be_visible()
    sound = chat.tool("listen").locator("audio")
    expect(sound).to_have_attribute("aria-label", "bird.wav")
    expect(sound).to_have_js_property("duration", 0.1)


def test_tools_of_a_provider_and_its_pictures_are_shown(serve, open_chat):
    image: Any = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    call = ProviderCall("p1", "web_search", {"query": "oslo"}, [{"title": "The answer"}])
    kept: Any = {"images": [image], "provider_calls": [asdict(call)]}
    turn: Any = [call, "It is Oslo.", Finish("stop", metadata=kept)]
    chat = open_chat(serve(Brain(llm=Script(turn))).url)
    chat.ask("Where?")
    chat.wait_until_idle()
    for again in range(2):
        expect(chat.page.locator(".attachments img")).to_be_visible()
        expect(chat.page.get_by_text("It is Oslo.", exact=True)).to_be_visible()
        expect(chat.page.locator(".tool")).to_contain_text("The answer")
        if not again:
            chat.page.reload()


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def test_an_agent_that_gets_the_conversation_back_stands_below_the_other_one(serve, open_chat):
    def hand_over(to: str) -> Action:
        return Action(name=f"transfer_to_{to}", args={"reason": "They want it."})

    llm = Script(
        ["Let me ask. ", hand_over("sales")], ["It costs 5. ", hand_over("desk")], ["5 euros."]
    )
    agents = {"desk": HandoffAgent(prompt="Ask."), "sales": HandoffAgent(prompt="Sell.")}
    chat = open_chat(serve(Brain(handoff(llm, agents))).url)

    chat.ask("What does it cost?")

    expect(chat.log.locator("details.branch > summary")).to_have_text(["desk", "sales", "desk"])
    expect(chat.answers).to_have_text(["Let me ask.", "It costs 5.", "5 euros."])
    chat.wait_until_idle()
