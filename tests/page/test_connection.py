"""The connection is lost in the middle of an answer, and no character is missing or doubled."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agent_brain import Brain
from tests.page.model import Script, words
from tests.page.server import Proxy

pytestmark = pytest.mark.thorough

LOST = "The connection is lost. Trying again…"
WHOLE = "".join(words(0, 120)).strip()


def test_the_page_says_that_the_connection_is_lost_and_comes_back(serve, open_chat, pauses):
    first, second = pauses(), pauses()
    llm = Script([*words(0, 40), first, *words(40, 80), second, *words(80, 120)])
    server = serve(Brain(llm=llm))
    with Proxy(server.port) as proxy:
        chat = open_chat(proxy.url)
        chat.tolerate("net::ERR_")
        chat.ask("Count.")
        expect(chat.answers).to_contain_text("w39")
        proxy.cut()
        expect(chat.page.get_by_text(LOST)).to_be_visible()
        first.release()
        second.wait_until_reached()
        proxy.mend()
        expect(chat.page.get_by_text(LOST)).to_be_hidden()
        expect(chat.answers).to_contain_text("w79")
        second.release()

        expect(chat.answers).to_have_text(WHOLE)
        chat.wait_until_idle()
        chat.page.close()


@pytest.mark.parametrize("cuts", [[b"w11"], [b"w1 ", b"w50", b"w99", b"run_finished"]])
def test_an_event_that_arrives_in_part_is_read_again(serve, open_chat, cuts):
    server = serve(Brain(llm=Script(words(0, 120))))
    with Proxy(server.port) as proxy:
        chat = open_chat(proxy.url)
        chat.tolerate("net::ERR_")
        proxy.cut_behind(*cuts)
        chat.ask("Count.")

        expect(chat.answers).to_have_text([WHOLE])
        chat.wait_until_idle()
        expect(chat.log.get_by_role("article", name="You")).to_have_text(["Count."])
        assert not proxy.cuts
        chat.page.close()


READ = """async ([text, size]) => {
    const { readFrames } = await import(new URL("page/events.js", document.baseURI));
    const bytes = new TextEncoder().encode(text);
    const body = new ReadableStream({ start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
    } });
    const found = [];
    for await (const frame of readFrames(body)) found.push([frame.id, frame.event, frame.data]);
    return found;
}"""


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_events_are_read_whole_however_their_bytes_are_cut(serve, open_chat, size):
    chat = open_chat(serve(Brain()).url)
    sent = (
        ": keepalive\n\nid: a-1\nevent: gap\ndata: {}\n\nid: a-2\r\ndata: é🙂: x\r\n\r\n"
        "data: 1\ndata:2\n\nid: a-9\ndata: cut off"
    )

    assert chat.page.evaluate(READ, [sent, size]) == [
        [None, "message", ""],
        ["a-1", "gap", "{}"],
        ["a-2", "message", "é🙂: x"],
        [None, "message", "1\n2"],
    ]


def test_a_run_whose_beginning_the_server_has_dropped_is_shown_whole_at_its_end(
    serve, open_chat, pauses
):
    many = 10_100  # more events than a log keeps
    first, second = pauses(), pauses()
    llm = Script(["Hello."], [*words(0, 40), first, *words(40, many), second, "end"])
    server = serve(Brain(llm=llm))
    with Proxy(server.port) as proxy:
        chat = open_chat(proxy.url)
        chat.tolerate("net::ERR_")
        chat.ask("Hi")
        chat.wait_until_idle()
        chat.ask("Count.")
        expect(chat.answers.last).to_contain_text("w39")
        proxy.cut()
        first.release()
        second.wait_until_reached()
        proxy.mend()
        expect(chat.log).to_contain_text("The server has not kept the beginning of this step.")
        expect(chat.status).to_have_text("Working")
        second.release()

        expect(chat.answers).to_have_text(["Hello.", "".join(words(0, many)) + "end"])
        expect(chat.log.get_by_role("article", name="You")).to_have_text(["Hi", "Count."])
        chat.wait_until_idle()
        chat.page.close()
