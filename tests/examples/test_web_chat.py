"""The chat example, over a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import uvicorn

from agent_brain import LLM, Brain, Message, react
from agent_brain.errors import LLMServerError
from agent_brain.states import Piece
from agent_brain.testing import ScriptedLLM
from examples.web_chat import make_app

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


@asynccontextmanager
async def client(journal: Path, brain: Brain | None = None) -> AsyncIterator[httpx.AsyncClient]:
    config = uvicorn.Config(make_app(str(journal), brain), port=0, log_level="error", ws="none")
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        with anyio.fail_after(60):
            while not server.started:
                await anyio.lowlevel.checkpoint()
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            yield http
        server.should_exit = True


async def events_in(lines: AsyncIterator[str]) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) async for line in lines if line.startswith("data: ")]


async def ask(http: httpx.AsyncClient, chat: str, message: str) -> list[dict[str, Any]]:
    async with http.stream("POST", f"/chats/{chat}", json={"message": message}) as reply:
        assert reply.status_code == 200
        return await events_in(reply.aiter_lines())


def text(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["kind"] == "text_delta")


async def test_an_answer_streams_in_pieces_and_ends_with_its_reason(tmp_path: Path) -> None:
    async with client(tmp_path / "chats.db") as http:
        events = await ask(http, "ann", "What is 17 times 23?")
    assert "391" in text(events)
    assert len(events) > 2
    assert events[-1]["stop_reason"] == "done"


async def test_a_conversation_outlives_the_server_and_is_nobody_elses(tmp_path: Path) -> None:
    llm = ScriptedLLM(["Hello Ann."])
    async with client(tmp_path / "chats.db", Brain(react(llm))) as http:
        await ask(http, "ann", "I am Ann.")

    llm = ScriptedLLM(["You are Ann.", "I do not know."])
    async with client(tmp_path / "chats.db", Brain(react(llm))) as http:
        await ask(http, "ann", "Who am I?")
        await ask(http, "bob", "Who am I?")
    known, unknown = ([m.content for m in call.messages] for call in llm.calls)
    assert "I am Ann." in known
    assert "I am Ann." not in unknown


async def test_a_failing_model_is_reported_in_the_stream(tmp_path: Path) -> None:
    llm = ScriptedLLM([LLMServerError("down", provider="test", model="test")])
    async with client(tmp_path / "chats.db", Brain(react(llm))) as http:
        events = await ask(http, "ann", "Hello?")
    assert "down" in events[-1]["error"]["message"]


async def test_a_message_to_a_chat_that_answers_is_refused_in_plain_words(tmp_path: Path) -> None:
    llm = Endless()
    async with (
        client(tmp_path / "chats.db", Brain(react(llm))) as http,
        http.stream("POST", "/chats/ann", json={"message": "Talk."}) as reply,
    ):
        await anext(reply.aiter_lines())
        second = await http.post("/chats/ann", json={"message": "Hello?"})
    assert second.status_code == 409
    assert second.json()["error"]["type"] == "session_busy"


class Waits(LLM):
    """Says one word, and the rest when it may."""

    def __init__(self) -> None:
        self.may = anyio.Event()

    async def stream(self, messages: Sequence[Message], **options: object) -> AsyncIterator[Piece]:
        yield "one "
        await self.may.wait()
        yield "two"


async def test_another_server_is_told_that_a_session_is_in_use(tmp_path: Path) -> None:
    llm, path = Waits(), tmp_path / "chats.db"
    async with (
        client(path, Brain(react(llm))) as here,
        client(path) as there,
        here.stream("POST", "/chats/ann", json={"message": "Count."}) as reply,
    ):
        lines = reply.aiter_lines()
        await anext(lines)
        refused = await there.post("/chats/ann", json={"message": "Hello?"})
        llm.may.set()
        events = await events_in(lines)
        afterwards = await ask(there, "ann", "Hello?")
    assert refused.status_code == 409
    assert "in use by process" in refused.json()["error"]["message"]
    assert events[-1]["stop_reason"] == afterwards[-1]["stop_reason"] == "done"


class Endless(LLM):
    """Talks until its stream is closed."""

    def __init__(self) -> None:
        self.closed = anyio.Event()

    async def stream(self, messages: Sequence[Message], **options: object) -> AsyncIterator[Piece]:
        try:
            while True:
                await anyio.lowlevel.checkpoint()
                yield "more "
        finally:
            self.closed.set()


async def test_the_whole_server_is_mounted_beside_it(tmp_path: Path) -> None:
    async with client(tmp_path / "chats.db") as http:
        await ask(http, "ann", "What is 17 times 23?")
        page = await http.get("/agent/")
        listed = await http.get("/agent/sessions")
    assert page.status_code == 200
    assert [session["id"] for session in listed.json()["sessions"]] == ["ann"]


async def test_a_client_that_leaves_ends_the_model_call(tmp_path: Path) -> None:
    llm = Endless()
    async with client(tmp_path / "chats.db", Brain(react(llm))) as http:
        async with http.stream("POST", "/chats/ann", json={"message": "Talk."}) as reply:
            await anext(reply.aiter_lines())
        with anyio.fail_after(60):
            await llm.closed.wait()


@pytest.mark.parametrize(
    ("name", "message"), [("../etc", "hi"), ("ann", ""), ("a" * 65, "hi")], ids=str
)
async def test_bad_requests_are_refused(tmp_path: Path, name: str, message: str) -> None:
    async with client(tmp_path / "chats.db") as http:
        reply = await http.post(f"/chats/{name}", json={"message": message})
        page = await http.get("/")
    assert reply.status_code in (404, 422)
    assert "<form>" in page.text
