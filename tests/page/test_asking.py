"""A person asks, and watches the answer, the thoughts and the tool calls."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from enum import Enum

import pytest
from playwright.sync_api import expect
from pydantic import JsonValue

from agent_brain import Brain, Net, tool
from agent_brain.demo import demo_tools
from agent_brain.memories import Message, VectorMemory
from agent_brain.nets import ParallelState
from agent_brain.states import LiteLLM, Usage
from agent_brain.states.models.llm import Finish, Thought
from agent_brain.tools import Action, Media, ToolContext, ToolResult
from tests.page.model import Script
from tests.support.openai_server import OpenAIServer, Reply, Stall, tool_calls
from tests.support.own_events import reading_net


def small_picture() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress((b"\0" + b"\x40\x80\xc0" * 3) * 2))
    return b"\x89PNG\r\n\x1a\n" + head + rows + chunk(b"IEND", b"")


def test_the_answer_streams_as_markdown(serve, open_chat, pauses):
    pause = pauses()
    llm = Script(
        ["Prices in **eu", "ros**:\n\n| kg | price |\n", pause, "|--|--|\n| 3 | 8.1 |\n\nDone."]
    )
    chat = open_chat(serve(Brain(llm=llm)).url)

    chat.ask("What does it cost?")
    expect(chat.answers.locator("strong")).to_have_text("euros")
    expect(chat.status).to_have_text("Working")
    expect(chat.answers).not_to_contain_text("Done.")
    pause.release()

    expect(chat.answers.get_by_role("columnheader")).to_have_text(["kg", "price"])
    expect(chat.answers.get_by_role("cell")).to_have_text(["3", "8.1"])
    expect(chat.answers.locator("p").last).to_have_text("Done.")
    chat.wait_until_idle()


@pytest.mark.thorough
def test_the_demo_model_calculates_offline(serve, open_chat):
    chat = open_chat(serve(Brain(tools=demo_tools())).url)

    chat.ask("What is 17 times 23?")

    expect(chat.tool("calculate")).to_contain_text("391")
    expect(chat.answers.last).to_have_text("17 * 23 = 391.")
    expect(chat.log.get_by_role("article", name="You")).to_have_text("What is 17 times 23?")


@pytest.mark.thorough
def test_a_model_behind_litellm_streams_and_calls_a_tool(serve, open_chat):
    call = tool_calls(("c1", "calculate", '{"expression": "6 * 7"}'))
    with OpenAIServer([Reply(*call), Reply("It is ", "**42**", Stall(), ".")]) as provider:
        llm = LiteLLM("openai/gpt-x", api_base=provider.url, api_key="some-key", retries=0)
        chat = open_chat(serve(Brain(llm=llm, tools=demo_tools())).url)

        chat.ask("What is 6 times 7?")
        expect(chat.answers.last).to_have_text("It is 42")
        provider.release()

        expect(chat.answers.last).to_have_text("It is 42.")
        chat.wait_until_idle()


def test_thoughts_are_folded(serve, open_chat):
    chat = open_chat(
        serve(Brain(llm=Script([Thought("Hm, "), Thought("let me see."), "Yes."]))).url
    )

    chat.ask("Well?")

    thoughts = chat.log.get_by_text("Hm, let me see.")
    expect(chat.answers).to_have_text("Yes.")
    expect(thoughts).to_be_hidden()
    chat.log.get_by_text("Thinking").click()
    expect(thoughts).to_be_visible()


def test_a_tool_call_is_seen_while_it_runs(serve, open_chat, pauses):
    pause = pauses()

    @tool
    async def convert(files: int, context: ToolContext) -> str:
        """Convert files."""
        context.progress(2, files, "picture 2")
        await pause.wait()
        return "all converted"

    llm = Script([Action(name="convert", args={"files": 5})], ["Done."])
    chat = open_chat(serve(Brain(llm=llm, tools=[convert])).url)

    chat.ask("Convert them.")
    card = chat.tool("convert")
    expect(card.locator(".tool-status")).to_have_text("running")
    expect(card.get_by_label("Arguments")).to_have_text('{"files":5}')
    expect(card.get_by_role("progressbar")).to_have_js_property("position", 0.4)
    expect(card).to_contain_text("picture 2")
    expect(chat.page.locator("#state-ACTION")).to_have_class(re.compile(r"\bnow\b"))
    expect(chat.page.locator("#state-REASONING")).to_have_class(re.compile(r"\bvisited\b"))
    expect(chat.page.locator("#net-state")).to_have_text("In ACTION")
    pause.release()

    expect(card.locator(".tool-status")).to_have_text("done")
    expect(card.get_by_label("Result")).to_have_text("all converted")
    chat.wait_until_idle()
    expect(chat.page.locator(".now")).to_have_count(0)


def test_an_error_of_a_tool_is_shown_as_one(serve, open_chat):
    @tool
    def save() -> str:
        """Save."""
        raise OSError("the disk is full")

    chat = open_chat(serve(Brain(llm=Script([Action(name="save")], ["Sorry."]), tools=[save])).url)

    chat.ask("Save it.")

    expect(chat.tool("save").locator(".tool-status")).to_have_text("failed")
    expect(chat.tool("save").get_by_label("Error")).to_contain_text("the disk is full")
    expect(chat.answers).to_have_text("Sorry.")


@pytest.mark.thorough
def test_an_answer_that_its_model_did_not_finish_says_so_also_later(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Half an", Finish("length")]))).url)

    chat.ask("Well?")

    told = chat.log.get_by_text("This answer was cut off at the limit of its length.")
    expect(told).to_be_visible()
    chat.wait_until_idle()
    chat.page.reload()
    expect(told).to_be_visible()
    expect(chat.button("Continue the run")).to_have_count(0)


def test_a_run_that_fails_says_why_and_can_be_continued(serve, open_chat):
    llm = Script(["Let me", RuntimeError("the model is gone")], ["Here I am again."])
    chat = open_chat(serve(Brain(llm=llm)).url)

    chat.ask("Hello?")
    expect(chat.log.get_by_role("alert")).to_contain_text("the model is gone")
    chat.button("Continue the run").click()

    expect(chat.answers.last).to_have_text("Here I am again.")
    expect(chat.button("Continue the run")).to_have_count(0)


@pytest.mark.thorough
def test_pictures_of_tools_are_shown_and_remote_ones_are_links(serve, open_chat):
    encoded = base64.b64encode(small_picture()).decode()

    @tool
    def chart() -> ToolResult:
        """Draw a chart."""
        return ToolResult("A chart", media=(Media("image/png", encoded, "sales.png"),))

    chat = open_chat(
        serve(
            Brain(
                llm=Script([Action(name="chart")], ["![map](https://x.test/m.png)"]), tools=[chart]
            )
        ).url
    )

    chat.ask("Draw.")

    picture = chat.tool("chart").get_by_role("img", name="sales.png")
    expect(picture).to_have_js_property("naturalWidth", 3)
    expect(chat.answers.get_by_role("link", name="map")).to_have_attribute(
        "href", "https://x.test/m.png"
    )
    assert all(host.startswith("127.0.0.1:") for host in chat.hosts)


def test_a_picture_is_sent_with_a_message(serve, open_chat):
    llm = Script(["Blue."])
    chat = open_chat(serve(Brain(llm=llm)).url)

    picture = {"name": "sea.png", "mimeType": "image/png", "buffer": small_picture()}
    long = {**picture, "name": f"{'long ' * 60}.png"}
    chat.page.locator("#files").set_input_files([picture, long])
    expect(chat.page.get_by_role("list", name="Attached files")).to_contain_text("sea.png")
    assert chat.page.evaluate("innerWidth >= document.documentElement.scrollWidth")
    chip = chat.page.get_by_role("listitem").filter(has_text=long["name"])
    assert (box := chip.bounding_box())
    assert box["height"] < 60  # on one line
    chat.button(f"Remove {long['name']}").click()
    chat.ask("Which colour?")

    expect(chat.log.get_by_role("img", name="sea.png")).to_have_js_property("naturalWidth", 3)
    expect(chat.answers).to_have_text("Blue.")
    assert llm.asked[0][-1].attachments[0].name == "sea.png"
    expect(chat.page.get_by_role("listitem").filter(has_text="sea.png")).to_have_count(0)


def test_tokens_and_cost_of_the_run_and_of_the_session_are_shown(serve, open_chat, tmp_path):
    usage = Usage(input_tokens=1381, output_tokens=16, cached_tokens=1024, cost=0.0042, requests=1)
    brain = Brain(llm=Script(["Hi.", usage], ["Bye.", usage]))
    chat = open_chat(serve(brain, journal=tmp_path / "chats.db").url)

    chat.ask("Hello!")
    line = "1,381 tokens in, 16 out, 1,024 cached, 1 request, $0.0042"
    expect(chat.log.get_by_text(line)).to_be_visible()
    chat.wait_until_idle()
    chat.ask("Bye!")
    expect(chat.log.get_by_text(line)).to_have_count(2)

    expect(chat.page.locator("[data-run=input_tokens]")).to_have_text("1,381")
    expect(chat.page.locator("[data-chat=input_tokens]")).to_have_text("2,762")
    expect(chat.page.locator("[data-run=cost]")).to_have_text("$0.0042")
    expect(chat.page.locator("[data-chat=cost]")).to_have_text("$0.0084")


def test_a_net_inside_is_shown_with_its_states_and_its_notes_are_folded(serve, open_chat, pauses):
    pause = pauses()

    @tool
    async def look_up() -> str:
        """Look something up."""
        await pause.wait()
        return "391"

    chat = open_chat(serve(Brain("plan_execute", tools=[look_up])).url)

    chat.ask("Please look up the price")
    pause.wait_until_reached()
    expect(chat.page.locator("#state-EXECUTION")).to_have_class(re.compile(r"\bnow\b"))
    expect(chat.page.locator("#state-EXECUTION-ACTION")).to_have_class(re.compile(r"\bnow\b"))
    expect(chat.page.locator("#net-state")).to_have_text("In EXECUTION › ACTION")
    expect(chat.log.locator("details.branch").locator(".tool-name")).to_have_text("look_up")
    pause.release()
    chat.wait_until_idle()
    chat.page.reload()

    expect(chat.log.get_by_role("article", name="You")).to_have_text("Please look up the price")
    expect(chat.log.get_by_text("Note for the model").first).to_be_visible()
    expect(chat.tool("look_up").locator(".tool-status").first).to_have_text("done")


def test_the_end_stays_in_sight_unless_the_person_has_scrolled_away(serve, open_chat, pauses):
    first, second = pauses(), pauses()
    lines = [f"line {number}\n\n" for number in range(90)]
    llm = Script([*lines[:30], first, *lines[30:60], second, *lines[60:]])
    chat = open_chat(serve(Brain(llm=llm)).url)

    chat.ask("Many lines, please.")
    expect(chat.log.get_by_text("line 29")).to_be_in_viewport()
    first.release()
    expect(chat.log.get_by_text("line 59")).to_be_in_viewport()
    chat.log.focus()
    chat.page.keyboard.press("Home")
    expect(chat.log.get_by_text("line 0", exact=True)).to_be_in_viewport()
    second.release()
    chat.wait_until_idle()
    expect(chat.log.get_by_text("line 89")).to_have_count(1)
    expect(chat.log.get_by_text("line 0", exact=True)).to_be_in_viewport()
    log, button = chat.log.bounding_box(), chat.button("Go to the end").bounding_box()
    assert log
    assert button
    assert log["y"] + log["height"] <= button["y"]  # it covers nothing
    chat.button("Go to the end").click()

    expect(chat.log.get_by_text("line 89")).to_be_in_viewport()


@pytest.mark.thorough
def test_a_model_that_uses_an_id_again_makes_another_call(serve, open_chat):
    @tool
    def double(number: int) -> str:
        """Double a number."""
        return str(2 * number)

    def call(number: int) -> Action:
        return Action(name="double", args={"number": number}, id="call_0")

    llm = Script([call(1)], [call(2)], ["2 and 4."], [call(3)], ["It is 6."])
    chat = open_chat(serve(Brain(llm=llm, tools=[double])).url)

    chat.ask("Double 1 and 2.")
    expect(chat.answers).to_have_text("2 and 4.")
    chat.ask("And 3.")
    expect(chat.answers.last).to_have_text("It is 6.")

    expect(chat.tool("double").get_by_label("Result")).to_have_text(["2", "4", "6"])


def test_the_answer_of_a_net_inside_is_shown_once(serve, open_chat):
    chat = open_chat(serve(Brain("router")).url)

    chat.ask("What is 17 times 23?")
    chat.wait_until_idle()

    expect(chat.answers).to_have_text(["17 * 23 = 391."])
    expect(chat.page.locator("#announcer")).to_have_text("The agent says: 17 * 23 = 391.")
    expect(chat.page.locator("#state-ROUTE-react-REASONING")).to_have_class(
        re.compile(r"\bvisited\b")
    )


@pytest.mark.thorough
def test_the_tab_is_named_after_the_chat(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Oslo."]))).url)

    chat.ask("The capital?")
    expect(chat.page).to_have_title("The capital? – Agent Brain")
    chat.button("New chat").click()

    expect(chat.page).to_have_title("Agent Brain")


def test_an_event_of_a_class_of_its_own_is_a_line(serve, open_chat):
    chat = open_chat(serve(Brain(reading_net())).url)

    chat.ask("Read.")

    expect(chat.log.locator(".note.event")).to_have_text(
        "pages_read: done: 3, total: 7, note: é <b>"
    )
    expect(chat.answers.last).to_have_text("Three of seven.")


def test_an_event_of_a_branch_stands_below_its_name(serve, open_chat):
    step = Enum("step", "BOTH")
    branches = ParallelState({"reader": reading_net()})
    chat = open_chat(serve(Brain(Net({step.BOTH: branches}))).url)

    chat.ask("Read.")

    reader = chat.log.locator("details.branch details.branch", has_text="reader")
    expect(reader.locator(".note.event")).to_contain_text("pages_read: done: 3")


def test_what_the_memory_does_is_told_in_small_lines(serve, open_chat):
    async def make(_: object) -> VectorMemory:
        memory = VectorMemory(recent=1)
        await memory.update([Message.user("Ines lives in Porto."), Message.user("Other talk")])
        return memory

    chat = open_chat(serve(Brain(llm=Script(["Porto."])), memory=make).url)

    chat.ask("Where does Ines live?")
    chat.wait_until_idle()

    lines = chat.log.locator(".memory-note summary")
    expect(lines).to_have_text(
        ["1 message left the window.", re.compile(r"^Recalled 2 messages: \d+ tokens\.$")]
    )
    lines.nth(1).click()
    details = chat.log.locator(".memory-note").nth(1).get_by_role("listitem")
    expect(details.first).to_have_text("Looked for: Where does Ines live?")
    expect(details.filter(has_text="Ines lives in Porto.")).to_have_count(1)


def test_what_an_answer_cites_is_listed_below_it(serve, open_chat):
    cited: list[JsonValue] = [
        {"type": "url_citation", "url_citation": {"url": "https://e.org/a", "title": "Oslo <b>"}},
        {"url": "https://e.org/a", "cited_text": "Oslo"},
        "https://e.org/b",
        {"url": "javascript:alert(1)", "title": "bad"},
        {"file_id": "f1"},
    ]
    llm = Script(["It is Oslo.", Finish("stop", metadata={"citations": cited})])
    chat = open_chat(serve(Brain(llm=llm)).url)
    sources = chat.log.get_by_role("list", name="Sources")

    chat.ask("Which city?")
    for _ in range(2):
        expect(sources.get_by_role("listitem")).to_have_text(["Oslo <b> e.org", "https://e.org/b"])
        expect(sources.get_by_role("link").first).to_have_attribute("href", "https://e.org/a")
        expect(sources).to_have_count(1)
        chat.page.reload()
