"""The connection is lost in the middle of an answer, and no character is missing or doubled."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from agent_brain import Brain
from tests.page.model import Script, words
from tests.page.server import Proxy

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


@pytest.mark.parametrize("times", [1, 3])
def test_an_event_that_arrives_in_part_is_read_again(serve, open_chat, times):
    server = serve(Brain(llm=Script(words(0, 120))))
    with Proxy(server.port) as proxy:
        chat = open_chat(proxy.url)
        chat.tolerate("net::ERR_")
        proxy.cut_behind(*[b'"text":"w11', b'"text":"w5', b'"text":"w9'][:times])
        chat.ask("Count.")

        expect(chat.answers).to_have_text(WHOLE)
        chat.wait_until_idle()
        chat.page.close()


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
