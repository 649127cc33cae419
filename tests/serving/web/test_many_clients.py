"""Many clients at once: some leave, some are slow, some stop reading."""

from __future__ import annotations

import gc
import json
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from agent_brain import LLM, Brain, Message, react
from agent_brain.serving import Sessions
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.web import ServerLimits, make_app
from agent_brain.tools import BaseTool
from tests.support.web_server import served

pytestmark = pytest.mark.anyio

CHUNKS = 30
MORE_THAN_SOCKETS_HOLD = 65_536
PATIENCE = 60.0
PIECE = re.compile(rb'"text": "<(\w+ \d+):(\d+)>')
KINDS = ["leaves", "slow", "stalls", *["reads"] * 7]


class Marked(LLM):
    """Repeats the task; for ever to a reader that stalls, and not to the end to one that leaves."""

    def __init__(self) -> None:
        self.ended: dict[str, str] = {}
        self.cut_off = threading.Semaphore(0)

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Any]:
        marker = messages[-1].content
        kind = marker.split()[0]
        self.ended[marker] = "cut off"
        try:
            for number in range(CHUNKS if kind != "stalls" else 1_000_000):
                await anyio.lowlevel.checkpoint()
                if kind == "leaves" and number == 3:
                    await anyio.sleep_forever()
                size = MORE_THAN_SOCKETS_HOLD if kind == "stalls" else 0
                yield f"<{marker}:{number}>".ljust(size, ".")
            self.ended[marker] = "whole"
        finally:
            if self.ended[marker] == "cut off":
                self.cut_off.release()


async def send(stream: SocketStream, method: str, path: str, body: object) -> None:
    content = json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    await stream.send(head.encode() + content)


async def everything(stream: SocketStream, size: int = 65_536) -> bytes:
    parts = []
    while True:
        try:
            parts.append(await stream.receive(size))
        except anyio.EndOfStream:
            return b"".join(parts)


class Crowd:
    """Clients of a server, each with a session of its own, and what they have read."""

    def __init__(self, url: str) -> None:
        self.port = int(url.rpartition(":")[2])
        self.sessions: list[str] = []
        self.read: dict[str, bytes] = {}
        self.stalled: list[SocketStream] = []

    async def ask(self, method: str, path: str) -> bytes:
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await send(stream, method, path, {})
            return (await everything(stream)).partition(b"\r\n\r\n")[2]

    async def client(self, marker: str) -> None:
        session = json.loads(await self.ask("POST", "/sessions"))["id"]
        self.sessions.append(session)
        stream = await anyio.connect_tcp("127.0.0.1", self.port)
        await send(stream, "POST", f"/sessions/{session}/runs", {"task": marker})
        kind = marker.split(maxsplit=1)[0]
        if kind in ("leaves", "stalls"):
            seen = b""
            while len(PIECE.findall(seen)) < 2:
                seen += await stream.receive(4096)
            self.read[marker] = seen
        else:
            self.read[marker] = await everything(stream, 64 if kind == "slow" else 65_536)
        if kind == "stalls":
            self.stalled.append(stream)
        else:
            await stream.aclose()

    async def come(self, clients: int) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(clients):
                tasks.start_soon(self.client, f"{KINDS[number % len(KINDS)]} {number}")

    async def go(self) -> None:
        for stream in self.stalled:
            await stream.aclose()
        for session in self.sessions:
            await self.ask("DELETE", f"/sessions/{session}")


def alive(*kinds: type) -> Counter[str]:
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in kinds)


@pytest.mark.thorough
@pytest.mark.parametrize("clients", [1, 2, 3, 60])
async def test_each_gets_its_own_text_whole_and_the_runs_of_the_others_are_cancelled(clients):
    llm = Marked()
    app = make_app(Sessions(Brain(react(llm))), limits=ServerLimits(per_minute=None, stall=0.5))
    markers = [f"{KINDS[number % len(KINDS)]} {number}" for number in range(clients)]
    cut_off = {each for each in markers if each.split()[0] in ("leaves", "stalls")}
    before = alive(Session, SessionRun)
    with served(app) as url, anyio.fail_after(PATIENCE):
        crowd = Crowd(url)
        await crowd.come(clients)
        for _ in cut_off:
            await anyio.to_thread.run_sync(llm.cut_off.acquire, True, PATIENCE)
        await crowd.go()
        after = alive(Session, SessionRun)

    assert llm.ended == {each: "cut off" if each in cut_off else "whole" for each in markers}
    for marker in markers:
        pieces = PIECE.findall(crowd.read[marker])
        assert {name.decode() for name, _ in pieces} == {marker}
        if marker not in cut_off:
            assert [int(number) for _, number in pieces] == [*range(CHUNKS)]
            assert crowd.read[marker].count(b"event: run_finished") == 1
    assert after == before
