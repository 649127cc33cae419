"""The command: who may use it over HTTP, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from agent_brain import Brain
from agent_brain.cli.app import mcp as mcp_command
from agent_brain.errors import BrainDefinitionError
from agent_brain.serving import serve
from agent_brain.serving.access import is_loopback
from tests.serving.test_mcp_server import COMMAND, WAITING, python
from tests.tools.mcp.support import SERVERS

TOKEN = "a-token-of-20-letters"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    import os

    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    env = {**os.environ, **environment}
    with subprocess.Popen([*python(), *arguments], text=True, env=env, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "http://" in line, line + process.stderr.read()
    return line.split()[-1]


def post(url: str, **headers: str) -> int:
    accept = {"accept": "application/json, text/event-stream"}
    return httpx.post(url, json=INITIALIZE, headers={**accept, **headers}, timeout=60).status_code


def test_on_loopback_only_its_own_names_may_ask():
    with started(*COMMAND, "--http", "0", "--model", "demo") as process:
        url = url_of(process)
        port = url.split(":")[2].split("/")[0]
        told = {
            "nothing": post(url),
            "localhost": post(url, host=f"localhost:{port}", origin=f"http://localhost:{port}"),
            "rebound": post(url, host=f"evil.example:{port}"),
            "a page": post(url, origin="http://evil.example"),
        }
    assert told == {"nothing": 200, "localhost": 200, "rebound": 421, "a page": 403}


@pytest.mark.parametrize(("host", "given"), [("127.0.0.1", "option"), ("0.0.0.0", "environment")])
def test_with_a_token_only_who_has_it_may_ask(given, host):
    option = ["--token", TOKEN] if given == "option" else []
    environment = {"AGENT_BRAIN_MCP_TOKEN": TOKEN} if given == "environment" else {}
    command = [*COMMAND, "--http", f"{host}:0", "--model", "demo", *option]
    with started(*command, **environment) as process:
        url = url_of(process).replace("0.0.0.0", "127.0.0.1")
        told = [
            post(url, **headers)
            for headers in (
                {},
                {"authorization": f"Bearer {TOKEN}x"},
                {"authorization": TOKEN},
                {"authorization": "Bearer"},
                {"authorization": f"Bearer {TOKEN}"},
                {"authorization": f"bearer {TOKEN}"},
            )
        ]
    assert told == [401, 401, 401, 401, 200, 200]


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "example.org", "192.168.1.7"])
def test_beyond_this_computer_a_token_is_asked_for(host, capsys, monkeypatch):
    monkeypatch.delenv("AGENT_BRAIN_MCP_TOKEN", raising=False)
    with pytest.raises(SystemExit) as ending:
        mcp_command(["--http", f"{host}:0", "--model", "demo"])
    assert ending.value.code == 2
    assert "give a token" in capsys.readouterr().err
    with pytest.raises(BrainDefinitionError, match="give a token"):
        serve(Brain, address=(host.strip("[]"), 0))


@pytest.mark.parametrize("token", ["", " ", "line\nbreak", "ümlaut"])
def test_a_token_that_no_header_carries_is_refused(token):
    with pytest.raises(BrainDefinitionError, match="printable ASCII"):
        serve(Brain, address=("127.0.0.1", 0), token=token)


def test_which_addresses_are_this_computers_own():
    own = ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"]
    others = ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "example.org"]
    assert [host for host in [*own, *others] if is_loopback(host)] == own


def test_a_taken_port_is_named(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as ending:
        mcp_command(["--http", str(taken.getsockname()[1]), "--model", "demo"])
    said = " ".join(capsys.readouterr().err.split())
    assert ending.value.code == 2
    assert "the port is taken" in said
    assert "not foreseen" not in said


def test_a_server_that_cannot_be_started_is_named_at_once(tmp_path, capsys):
    config = tmp_path / "servers.json"
    dying = {"command": sys.executable, "args": [str(SERVERS / "odd.py"), "dies"]}
    config.write_text(json.dumps({"mcpServers": {"dying": dying}}))
    with pytest.raises(SystemExit) as ending:
        mcp_command(["--http", "0", "--model", "demo", "--mcp", str(config)])
    assert ending.value.code == 2
    assert "cannot open the database" in capsys.readouterr().err


def say(process: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def test_one_interrupt_ends_it_over_stdio():
    with started(*COMMAND, "--model", "demo") as process:
        say(process, INITIALIZE)
        assert process.stdout is not None
        assert "serverInfo" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_one_interrupt_ends_a_run_over_stdio():
    with started(WAITING) as process:
        say(process, INITIALIZE)
        assert process.stdout is not None
        process.stdout.readline()
        say(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        ask = {"name": "ask", "arguments": {"question": "Wait."}, "_meta": {"progressToken": 7}}
        say(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": ask})
        while "ACTION" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (1, 130, -signal.SIGINT)


@pytest.mark.thorough
def test_one_interrupt_ends_it_over_http_with_a_client_connected():
    with started(*COMMAND, "--http", "0", "--model", "demo") as process:
        url = url_of(process)
        accept = {"accept": "application/json, text/event-stream"}
        with httpx.Client(headers=accept, timeout=60) as client:
            answer = client.post(url, json=INITIALIZE)
            session = {"mcp-session-id": answer.headers["mcp-session-id"]}
            with client.stream("GET", url, headers=session):
                process.send_signal(signal.SIGINT)
                assert process.wait(60) == 130


def test_it_ends_when_its_client_closes_stdin():
    with started(*COMMAND, "--model", "demo") as process:
        say(process, INITIALIZE)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def test_the_url_is_announced_once_the_server_has_started(monkeypatch):
    happened = []
    start = uvicorn.Server.startup

    async def startup(self, sockets=None):
        await start(self, sockets)
        happened.append("started")

    def on_ready(url):
        happened.append("announced")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(uvicorn.Server, "startup", startup)
    with pytest.raises(KeyboardInterrupt):
        serve(Brain, address=("127.0.0.1", 0), on_ready=on_ready)
    assert happened == ["started", "announced"]


@pytest.mark.parametrize(
    "address", [("127.0.0.1", 99_999), ("127.0.0.1", -1), ("127.0.0.1", "8000"), "127.0.0.1:8000"]
)
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(BrainDefinitionError, match="give a host and a port from 0"):
        serve(Brain, address=address)
