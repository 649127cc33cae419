"""A server that is told to stop, and connections that it drops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn

from agent_brain import Brain
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app, server
from tests.serving.web.agents import brain_server

PROGRAM = """
import anyio
from agent_brain import Action, Brain, tool
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app, serve_http
from agent_brain.testing import ScriptedLLM

class Closing(Brain):
    async def aclose(self):
        print("closed", flush=True)
        await super().aclose()

@tool
async def wait() -> str:
    "Wait for ever."
    print("waiting", flush=True)
    await anyio.sleep_forever()

sessions = Sessions(Closing(tools=[wait], llm=ScriptedLLM([[Action(name="wait")]])))
app = make_app(sessions, user="ann")
serve_http(
    app, sessions, port=0, shutdown_timeout=60, on_ready=lambda url: print(url, flush=True)
)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


@contextmanager
def program() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server in a process of its own; yield it and its URL."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_brain_is_closed_when_a_signal_ends_the_server(number):
    with program() as (process, _):
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)

    assert said == "closed\n"
    assert process.returncode == 0


def test_a_second_interrupt_cancels_the_runs_at_once():
    with program() as (process, url):
        httpx.post(f"{url}/sessions/a/runs", json={"task": "Wait.", "detached": True})
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)  # the step goes on
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)

    assert said.endswith("closed\n")


@pytest.mark.anyio
@pytest.mark.parametrize(("asks", "dropped"), [(True, False), (False, True)])
async def test_only_connections_that_ask_nothing_are_dropped(monkeypatch, asks, dropped):
    sessions, dropping = Sessions(Brain()), []
    config = uvicorn.Config(make_app(sessions))
    watched = server.Server(config, sessions, 1.0, lambda: None)
    transport = SimpleNamespace(is_closing=lambda: False, abort=lambda: dropping.append(1))
    connection: Any = _Connection(transport)
    watched.server_state.connections.add(connection)
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: next(clock)))

    for _ in range(3):
        if asks:
            connection.cycle = SimpleNamespace(response_complete=True)  # of another request
        await watched.on_tick(0)

    assert bool(dropping) is dropped


class _Connection:
    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.cycle: Any = None


def test_a_connection_can_be_used_again_after_an_error_of_the_server():
    def fails(caller: object) -> object:
        raise ValueError("a bug")

    with (
        brain_server(Brain(), user="ann", make_deps=fails) as agent,
        httpx.Client(base_url=agent.url) as client,
    ):
        for _ in range(3):
            answer = client.post("/sessions/a/runs", json={"task": "Hello!"})
            assert answer.status_code == 500
