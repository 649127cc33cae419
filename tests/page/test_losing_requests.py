"""Requests fail, are slow, or lose their responses: nothing is lost, doubled, or sent elsewhere."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from agent_brain import Brain, tool
from agent_brain.tools import Action
from tests.page.model import Pause, Script
from tests.page.server import PageServer, Proxy

pytestmark = pytest.mark.thorough

LOST = "The connection is lost. Trying again…"
SESSION = re.compile(r"/sessions/[^/]+$")


def test_a_session_that_cannot_be_loaded_is_loaded_later(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Hello."], ["Bye."]))).url)
    chat.tolerate("net::ERR_")
    chat.ask("Hi!")
    chat.wait_until_idle()

    chat.page.route(SESSION, lambda route: route.abort())
    chat.page.reload()
    expect(chat.page.get_by_text(LOST)).to_be_visible()
    chat.page.unroute(SESSION)

    expect(chat.answers).to_have_text("Hello.")
    expect(chat.page.get_by_text(LOST)).to_be_hidden()
    chat.ask("Bye!")
    expect(chat.answers).to_have_text(["Hello.", "Bye."])


def test_a_page_that_is_opened_too_early_comes_up_later(serve, open_chat):
    server = serve(Brain(llm=Script(["Hello."])))
    chat = open_chat(server.url)
    chat.tolerate("net::ERR_")

    chat.page.route("**/info", lambda route: route.abort())
    chat.page.reload()
    expect(chat.page.get_by_text(LOST)).to_be_visible()
    chat.page.unroute("**/info")

    expect(chat.page.locator("#about")).not_to_be_empty()
    expect(chat.page.get_by_text(LOST)).to_be_hidden()


def test_the_first_message_is_sent_once_its_session_could_be_opened(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Hello."]))).url)
    chat.tolerate("net::ERR_")
    failed: list[str] = []

    def fail_once(route: Route) -> None:
        if failed:
            route.continue_()
        else:
            failed.append(route.request.url)
            route.abort()

    chat.page.route(SESSION, fail_once)
    chat.ask("Hi!")

    expect(chat.answers).to_have_text("Hello.")
    chat.wait_until_idle()
    assert failed


def test_a_message_whose_response_is_lost_is_not_offered_again(serve, open_chat):
    llm = Script(["Hello."], ["Bye."])
    chat = open_chat(serve(Brain(llm=llm)).url)
    chat.tolerate("net::ERR_")
    chat.ask("Hi!")
    chat.wait_until_idle()

    def lose_response(route: Route) -> None:
        route.fetch()
        route.abort()

    chat.page.route("**/runs", lose_response)
    chat.ask("Bye!")

    expect(chat.answers).to_have_text(["Hello.", "Bye."])
    expect(chat.page.locator("#problem")).to_be_empty()
    assert len(llm.asked) == 2


def test_a_message_that_does_not_arrive_can_be_sent_again(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Hello."], ["Bye."]))).url)
    chat.tolerate("net::ERR_")
    chat.ask("Hi!")
    chat.wait_until_idle()

    chat.page.route("**/runs", lambda route: route.abort())
    chat.input.fill("Bye!")
    chat.input.press("Enter")
    expect(chat.page.locator("#problem")).to_have_text("The server cannot be reached.")
    expect(chat.input).to_have_value("Bye!")
    chat.page.unroute("**/runs")
    chat.input.press("Enter")

    expect(chat.answers).to_have_text(["Hello.", "Bye."])


def test_a_message_never_goes_to_a_chat_that_is_opened_while_it_is_sent(serve, open_chat):
    llm = Script(["Hello."], ["Noted."])
    chat = open_chat(serve(Brain(llm=llm)).url)
    chat.ask("Hi!")
    chat.wait_until_idle()
    chat.button("New chat").click()
    expect(chat.page.get_by_text("What can I do for you?")).to_be_visible()
    held: list[Route] = []
    chat.page.route("**/sessions", lambda route: _hold(route, held, "POST"))

    chat.input.fill("For the new one")
    with chat.page.expect_request("**/sessions"):
        chat.input.press("Enter")
    chat.page.get_by_role("link", name="Hi!").click()
    expect(chat.answers).to_have_text("Hello.")
    for route in held:
        route.continue_()

    expect(chat.page.locator("#problem")).to_contain_text("you have opened another chat")
    expect(chat.input).to_have_value("For the new one")
    expect(chat.log.get_by_role("article", name="You")).to_have_text(["Hi!"])
    assert len(llm.asked) == 1


def _hold(route: Route, held: list[Route], method: str) -> None:
    if route.request.method == method:
        held.append(route)
    else:
        route.continue_()


def test_what_is_written_while_a_message_is_sent_stays(serve, open_chat):
    chat = open_chat(serve(Brain(llm=Script(["Hello."], ["Bye."]))).url)
    held: list[Route] = []
    chat.page.route("**/runs", lambda route: held.append(route))

    chat.input.fill("Hi!")
    with chat.page.expect_request("**/runs"):
        chat.input.press("Enter")
    expect(chat.button("Sending…")).to_be_visible()
    chat.input.press_sequentially(" And bye")
    for route in held:
        route.continue_()

    expect(chat.answers).to_have_text("Hello.")
    expect(chat.input).to_have_value("And bye")
    expect(chat.button("Send")).to_be_visible()


def test_a_message_is_read_though_its_response_is_late(serve, open_chat, pauses):
    pause: Pause = pauses()

    @tool
    async def search() -> str:
        """Search."""
        await pause.wait()
        return "found"

    chat = open_chat(
        serve(Brain(llm=Script([Action(name="search")], ["Here."]), tools=[search])).url
    )
    chat.ask("Where?")
    pause.wait_until_reached()

    def answer_late(route: Route) -> None:
        response = route.fetch()
        pause.release()
        expect(chat.answers).to_have_text("Here.")
        route.fulfill(response=response)

    held: list[Route] = []
    chat.page.route("**/messages", lambda route: held.append(route))
    chat.input.fill("In Oslo.")
    with chat.page.expect_request("**/messages"):
        chat.input.press("Enter")
    answer_late(held[0])

    expect(chat.input).to_have_value("")
    expect(chat.log.get_by_role("article", name="You", exact=True)).to_have_text(
        ["Where?", "In Oslo."]
    )
    expect(chat.log.locator(".queued")).to_have_count(0)


def test_a_server_that_has_forgotten_the_chat_is_told(serve, open_chat):
    first = serve(Brain(llm=Script(["Hello."])))
    with Proxy(first.port) as proxy, PageServer(Brain(llm=Script(["Again."]))) as second:
        chat = open_chat(proxy.url)
        chat.tolerate("net::ERR_")
        chat.ask("Hi!")
        chat.wait_until_idle()
        proxy.cut()
        proxy.lead_to(second.port)
        proxy.mend()
        expect(chat.page.locator("#problem")).to_contain_text("no messages of this chat any more")
        chat.ask("Hi again!")

        expect(chat.answers).to_have_text("Again.")
        chat.page.close()
