"""What a person has read stays on the page when a run ends early, and the run can be continued."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from playwright.sync_api import expect

from agent_brain import Brain, Limits
from agent_brain.memories import PostgresJournal
from agent_brain.serving.web import ServerLimits
from tests.cli.test_serve import serve as serve_process
from tests.page.conftest import Chat
from tests.page.model import Pause, Script, words
from tests.page.server import PageServer
from tests.serving.web.support import eventually
from tests.support.openai_server import OpenAIServer, Reply, Stall
from tests.support.postgres_server import URL, new_schema

pytestmark = pytest.mark.thorough

READ = "".join(words(0, 40)).strip()
WHOLE = "".join(words(0, 80)).strip()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: Any, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Return where the sessions are kept, for each server that uses it."""
    if request.param == "sqlite":
        yield lambda: tmp_path / "chats.db"
        return
    journals: list[PostgresJournal] = []
    with new_schema() as schema:

        def make() -> PostgresJournal:
            journals.append(PostgresJournal(URL, schema=schema))
            return journals[-1]

        yield make
        with start_blocking_portal() as portal:  # the browser's event loop is this thread's
            for journal in journals:
                portal.call(journal.aclose)


def ask_and_read(chat: Chat) -> None:
    chat.ask("Count.")
    expect(chat.answers).to_have_text(READ)


def shows_what_was_read(chat: Chat) -> None:
    """The page, newly loaded, has the partial answer, and gives the whole one when told to."""
    expect(chat.log.get_by_role("article", name="You")).to_have_text(["Count."])
    expect(chat.answers).to_have_text([READ])
    expect(chat.log.get_by_text("This answer was cut off.")).to_be_visible()
    chat.button("Continue the run").click()
    expect(chat.answers).to_have_text([WHOLE])
    chat.wait_until_idle()
    chat.page.reload()
    expect(chat.answers).to_have_text([WHOLE])
    expect(chat.button("Continue the run")).to_have_count(0)


def cancel(chat: Chat) -> None:
    chat.button("Cancel now").click()
    chat.wait_until_idle()


def leave(chat: Chat) -> None:
    chat.page.close()


def wait_until_ended(address: str) -> None:
    """Wait until the run has ended, without a page: one that reads the run keeps it alive."""
    url, _, session = address.partition("#/")
    with httpx.Client(base_url=url) as client:
        eventually(lambda: client.get(f"sessions/{session}").json()["status"] != "running")


@pytest.mark.parametrize("end", [cancel, leave], ids=lambda end: end.__name__)
def test_text_that_was_read_stays_and_is_completed(
    end: Callable[[Chat], None], place, serve, open_chat, pauses
):
    llm = Script([*words(0, 40), pauses()], words(0, 80))
    asked_often = ServerLimits(per_minute=None)
    server = serve(Brain(llm=llm), journal=place(), grace=0.5, limits=asked_often)
    chat = open_chat(server.url)
    ask_and_read(chat)
    address = chat.page.url
    end(chat)
    wait_until_ended(address)
    shows_what_was_read(open_chat(address))


def test_text_that_was_read_stays_at_a_limit_of_time(place, serve, open_chat, pauses):
    brain = Brain(llm=Script([*words(0, 40), pauses()]), limits=Limits(timeout=5))
    chat = open_chat(serve(brain, journal=place()).url)
    ask_and_read(chat)
    limit = chat.log.get_by_text("The run has reached its limit of time.")
    expect(limit).to_be_visible()
    for _ in range(2):  # its seconds count on, so it reaches the limit again
        chat.page.reload()
        expect(chat.answers).to_have_text([READ])
        chat.button("Continue the run").click()
        expect(limit).to_be_visible()
        expect(chat.answers).to_have_text([READ])


def test_text_that_was_read_stays_when_the_server_ends_in_order(place, open_chat):
    llm = Script([*words(0, 40), Pause()], words(0, 80))
    with PageServer(Brain(llm=llm), journal=place()) as server:
        chat = open_chat(server.url)
        ask_and_read(chat)
        session = chat.page.url.partition("#")[2]
        chat.page.close()
    with PageServer(Brain(llm=llm), journal=place()) as again:
        chat = open_chat(f"{again.url}#{session}")
        shows_what_was_read(chat)
        chat.page.close()


PROGRAM = """
import uvicorn
from agent_brain import Brain
from agent_brain.memories import PostgresJournal, SQLiteJournal
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app
from tests.cli.plain_model import net

journal = {journal}
app = make_app(Sessions(Brain(net(None)), journal=journal), user="ann")
uvicorn.run(app, port=0, http="h11", ws="none", timeout_graceful_shutdown=5)
"""


@pytest.fixture(params=["the command", "uvicorn and sqlite", "uvicorn and postgres"])
def processes(request: Any, tmp_path: Path) -> Iterator[Callable[[OpenAIServer], Any]]:
    """Return how to start a server in a process of its own."""
    if request.param == "the command":
        yield lambda model: serve_process("--folder", str(tmp_path), model=model)
        return
    with new_schema() as schema:
        journal = f"PostgresJournal({URL!r}, schema={schema!r})"
        if request.param == "uvicorn and sqlite":
            journal = f"SQLiteJournal({str(tmp_path / 'chats.db')!r})"
        program = PROGRAM.format(journal=journal)
        yield lambda model: serve_process(model=model, program=program)


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGKILL], ids=lambda which: which.name)
def test_the_page_offers_to_continue_after_the_end_of_the_process(which, processes, open_chat):
    script = [Reply(*words(0, 40), Stall()), Reply(*words(0, 80))]
    with ExitStack() as stack:
        model = stack.enter_context(OpenAIServer(script))
        server = stack.enter_context(processes(model))
        chat = open_chat(server.url)
        ask_and_read(chat)
        session = chat.page.url.partition("#")[2]
        chat.page.close()
        server.end(which)
        again = stack.enter_context(processes(model))
        (listed,) = httpx.get(f"{again.url}/sessions").json()["sessions"]
        status = "closed" if which is signal.SIGTERM else "interrupted"
        assert (listed["status"], listed["resumable"]) == (status, True)
        chat = open_chat(f"{again.url}/#{session}")
        if which is signal.SIGTERM:
            shows_what_was_read(chat)
        else:
            expect(chat.log.get_by_text("The run was interrupted.")).to_be_visible()
            chat.button("Continue the run").click()
            expect(chat.answers).to_have_text([WHOLE])
        chat.page.close()
