"""A browser, pages that must not log errors, and servers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect, sync_playwright

from agent_brain import Brain
from tests.page.model import Pause
from tests.page.server import PageServer

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE = {"width": 1360, "height": 860}


class Chat:
    """The chat page in a browser.

    Attributes:
        page: The page.
        errors: What it logged as errors.
        hosts: The hosts that it asked for something.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self._tolerated: list[str] = []
        self.hosts: set[str] = set()
        page.on("console", lambda message: self._log(message.type, message.text))
        page.on("pageerror", lambda error: self._log("error", str(error)))
        page.on("request", self._requested)

    def _log(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.errors.append(text)

    def _requested(self, request: Request) -> None:
        if match := re.match(r"\w+://([^/]+)", request.url):
            self.hosts.add(match[1])

    def tolerate(self, pattern: str) -> None:
        """Let the browser log errors that match ``pattern``."""
        self._tolerated.append(pattern)

    @property
    def problems(self) -> list[str]:
        """The errors that are not tolerated."""
        known = self._tolerated
        return [each for each in self.errors if not any(re.search(one, each) for one in known)]

    def open(self, url: str) -> Chat:
        """Go to ``url`` and wait until the page is ready."""
        self.page.goto(url)
        expect(self.page.locator("#about")).not_to_be_empty()
        return self

    def ask(self, text: str) -> None:
        """Write ``text``, press Enter, and wait until the server has taken it."""
        self.input.fill(text)
        self.input.press("Enter")
        expect(self.input).to_have_value("")

    @property
    def input(self) -> Locator:
        """Where a person writes."""
        return self.page.get_by_label("Message", exact=True)

    @property
    def log(self) -> Locator:
        """The conversation."""
        return self.page.get_by_role("log")

    @property
    def answers(self) -> Locator:
        """What the agent says."""
        return self.log.locator(".markdown")

    @property
    def status(self) -> Locator:
        """What the session does."""
        return self.page.locator("#status")

    def tool(self, name: str) -> Locator:
        """Return the card of a tool call."""
        return self.log.locator("details.tool").filter(
            has=self.page.locator(".tool-name", has_text=re.compile(f"^{re.escape(name)}$"))
        )

    def button(self, name: str) -> Locator:
        """Return a button."""
        return self.page.get_by_role("button", name=name, exact=True)

    def wait_until_idle(self) -> None:
        """Wait until no run goes on."""
        expect(self.button("Stop")).to_be_hidden()
        expect(self.status).to_be_empty()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs the program chromium: apt-get install chromium")
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., PageServer]]:
    """Serve brains until the end of the test."""
    with ExitStack() as stack:

        def start(brain: Brain[Any], **options: Any) -> PageServer:
            return stack.enter_context(PageServer(brain, **options))

        yield start


@pytest.fixture
def pauses(serve: object) -> Iterator[Callable[[], Pause]]:
    """Make pauses that let go at the end of the test, so that the server can stop."""
    made: list[Pause] = []

    def make() -> Pause:
        made.append(Pause())
        return made[-1]

    yield make
    for pause in made:
        pause.release()


@pytest.fixture
def open_chat(browser: Browser, pauses: object) -> Iterator[Callable[..., Chat]]:
    """Open pages, each for itself unless ``beside`` another; none may log an error.

    Waits until a page is ``ready``; ``script`` runs in it first.
    """
    opened: list[Chat] = []
    with ExitStack() as stack:

        def open_page(
            url: str,
            *,
            beside: Chat | None = None,
            ready: bool = True,
            script: str | None = None,
            **options: Any,
        ) -> Chat:
            if beside is not None:
                context = beside.page.context
            else:
                context = browser.new_context(**({"viewport": WIDE} | options))
                stack.callback(context.close)
            context.set_default_timeout(60_000)
            if script is not None:
                context.add_init_script(script)
            chat = Chat(context.new_page())
            opened.append(chat)
            if ready:
                return chat.open(url)
            chat.page.goto(url)
            return chat

        yield open_page
    assert [problem for chat in opened for problem in chat.problems] == []
