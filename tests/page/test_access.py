"""A server that needs a token, and a server behind another application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from agent_brain import Brain
from tests.page.model import Script
from tests.support.proxies import from_docs, proxy
from tests.support.thorough import thorough

BARE_NGINX = "server { listen 443 ssl; location / { proxy_pass http://127.0.0.1:8000; } }"
NO_STORAGE = """Object.defineProperty(window, "sessionStorage", {
    get() { throw new DOMException("no", "SecurityError"); }
});"""


def test_the_page_asks_for_the_token_until_it_is_right(serve, open_chat):
    server = serve(Brain(llm=Script(["Welcome."])), token={"a-good-token": "ann"}, user=None)
    chat = open_chat(server.url)
    chat.tolerate("401")
    dialog = chat.page.get_by_role("dialog")

    dialog.get_by_label("Token").fill("a-bad-token")
    dialog.get_by_role("button", name="Continue").click()
    expect(dialog).to_contain_text("The server does not accept this token.")
    dialog.get_by_label("Token").fill("a-good-token")
    dialog.get_by_label("Token").press("Enter")
    expect(dialog).to_be_hidden()
    chat.ask("Hello!")
    expect(chat.answers).to_have_text("Welcome.")
    chat.page.reload()

    expect(chat.answers).to_have_text("Welcome.")
    assert chat.page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


@pytest.mark.thorough
def test_the_page_works_below_a_path_of_another_application(serve, open_chat):
    def mounted(app: Starlette) -> Starlette:
        return Starlette(routes=[Mount("/help/desk", app)])

    server = serve(Brain(llm=Script(["Welcome."])), around=mounted)
    chat = open_chat(server.url + "help/desk/")

    chat.ask("Hello!")

    expect(chat.answers).to_have_text("Welcome.")
    expect(chat.page.locator("#state-REASONING")).to_be_visible()


@pytest.mark.thorough
def test_escape_does_not_leave_the_page_without_a_token(serve, open_chat):
    server = serve(Brain(llm=Script(["Welcome."])), token={"a-good-token": "ann"}, user=None)
    chat = open_chat(server.url, ready=False)
    chat.tolerate("401")
    dialog = chat.page.get_by_role("dialog")

    expect(dialog).to_be_visible()
    for _ in range(4):  # the browser lets a page refuse only the first
        chat.page.keyboard.press("Escape")
    dialog.get_by_label("Token").fill("a-good-token")
    dialog.get_by_label("Token").press("Enter")

    expect(dialog).to_be_hidden()
    expect(chat.page.locator("#about")).not_to_be_empty()


@pytest.mark.thorough
def test_a_browser_that_lets_the_page_keep_nothing_can_use_it(serve, open_chat):
    server = serve(Brain(llm=Script(["Welcome."])), token={"a-good-token": "ann"}, user=None)
    chat = open_chat(server.url, ready=False, script=NO_STORAGE)
    chat.tolerate("401")

    token = chat.page.get_by_role("textbox", name="Token")
    token.fill("a-good-token")
    token.press("Enter")
    expect(chat.page.locator("#about")).not_to_be_empty()
    chat.ask("Hello!")

    expect(chat.answers).to_have_text("Welcome.")


@pytest.fixture
def behind(tmp_path) -> Iterator[Callable[[str, str, int], str]]:
    """Put proxies in front of servers, until the pages are closed."""
    with ExitStack() as stack:

        def start(kind: str, sites: str, port: int) -> str:
            return stack.enter_context(proxy(kind, sites, port, tmp_path))

        yield start


@pytest.mark.parametrize("kind", ["nginx", *thorough(["caddyfile"])])
def test_the_page_works_behind_the_proxies_of_the_docs(behind, serve, open_chat, pauses, kind):
    pause = pauses()
    server = serve(Brain(llm=Script(["Wel", pause, "come."])))
    chat = open_chat(behind(kind, from_docs(kind), server.port))

    chat.ask("Hello!")
    expect(chat.answers).to_have_text("Wel")  # nothing is held back
    pause.release()

    expect(chat.answers).to_have_text("Welcome.")


def test_the_page_works_behind_a_proxy_that_sends_its_own_host(behind, serve, open_chat):
    server = serve(Brain(llm=Script(["Welcome."])))
    chat = open_chat(behind("nginx", BARE_NGINX, server.port))

    chat.ask("Hello!")

    expect(chat.answers).to_have_text("Welcome.")


def test_a_page_that_is_refused_says_which_option_allows_it(behind, serve, open_chat):
    server = serve(Brain(llm=Script(["Welcome."])))
    # over plain HTTP, browsers send this header for names of the local computer only
    plain = BARE_NGINX.replace("proxy_pass", 'proxy_set_header Sec-Fetch-Site ""; proxy_pass')
    chat = open_chat(behind("nginx", plain, server.port))
    chat.tolerate("403")

    chat.input.fill("Hello!")
    chat.input.press("Enter")

    expect(chat.page.get_by_role("alert").filter(has_text="--origin")).to_be_visible()


READ_WITH_EVENTSOURCE = """async ([token, session]) => {
    const headers = { Authorization: `Bearer ${token}` };
    await fetch("login", { method: "POST", headers });
    const source = new EventSource(`sessions/${session}/events?after=0`);
    return await new Promise((resolve, reject) => {
        source.onerror = () => reject(new Error("refused"));
        source.addEventListener("run_finished", (event) => {
            source.close();
            resolve(JSON.parse(event.data).answer);
        });
    });
}"""


def test_an_event_source_of_the_browser_reads_events_after_a_login(serve, open_chat):
    server = serve(Brain(llm=Script(["Welcome."])), token={"a-good-token": "ann"}, user=None)
    chat = open_chat(server.url, ready=False)
    chat.tolerate("401")
    task = {"task": "Hello!"}
    headers = {"authorization": "Bearer a-good-token", "accept": "application/json"}
    httpx.post(f"{server.url}sessions/s/runs", json=task, headers=headers).raise_for_status()

    answer = chat.page.evaluate(READ_WITH_EVENTSOURCE, ["a-good-token", "s"])

    assert answer == "Welcome."
    assert chat.page.evaluate("document.cookie") == ""  # no script can read it
