"""A session over a WebSocket, with a client of others, and with one that misbehaves."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agent_brain import Brain
from agent_brain.serving import Sessions
from agent_brain.serving.web import ServerLimits
from tests.serving.models import EchoLLM
from tests.serving.web.support import RawClient, RemoteGate, eventually
from tests.support.live_server import live_server


def sessions(*parts: Any) -> Sessions:
    return Sessions(Brain(llm=EchoLLM(*parts)))


@contextmanager
def socket(
    url: str, session: str = "s", query: str = "", **options: Any
) -> Iterator[ClientConnection]:
    address = f"{url.replace('http', 'ws')}/sessions/{session}/ws{query}"
    with connect(address, open_timeout=60, **options) as connection:
        yield connection


def send(connection: ClientConnection, **command: Any) -> None:
    connection.send(json.dumps(command))


def receive(connection: ClientConnection) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(connection.recv(timeout=60))
    return data


def error(connection: ClientConnection) -> str:
    """The type of the next error, after events."""
    while "error" not in (item := receive(connection)):
        pass
    kind: str = item["error"]["type"]
    return kind


def until(connection: ClientConnection, kind: str) -> list[dict[str, Any]]:
    items = [receive(connection)]
    while items[-1]["event"]["kind"] != kind:
        items.append(receive(connection))
    return items


def test_a_run_over_a_websocket():
    with live_server(sessions(), user="ann") as url, socket(url) as connection:
        send(connection, type="run", task="Hello")
        items = until(connection, "run_finished")
    assert "".join(i["event"].get("text", "") for i in items) == "You said: Hello"
    assert [int(i["id"].partition("-")[2]) for i in items] == [*range(1, len(items) + 1)]


def test_leaving_does_not_end_the_run_and_events_are_read_again():
    gate = RemoteGate()
    with live_server(sessions("One ", gate, "Two "), user="ann") as url:
        with socket(url) as connection:
            send(connection, type="run", task="Hello")
            last = until(connection, "text_delta")[-1]["id"]
            gate.until_reached()
        gate.open()
        with socket(url, query=f"?after={last}") as connection:
            items = until(connection, "run_finished")
    assert "".join(i["event"].get("text", "") for i in items) == "Two You said: Hello"


def test_two_sockets_of_a_session_see_the_same():
    with live_server(sessions(), user="ann") as url, socket(url) as one, socket(url) as other:
        send(one, type="run", task="Hello")
        assert until(one, "run_finished") == until(other, "run_finished")


def test_steering_over_a_websocket():
    gate = RemoteGate()
    with live_server(sessions(gate), user="ann") as url, socket(url) as connection:
        for command in ("stop", "cancel"):
            send(connection, type=command)
            assert error(connection) == "no_run"
        send(connection, type="message", content="x")
        assert error(connection) == "no_run"
        send(connection, type="resume")
        assert error(connection) == "nothing_to_resume"
        send(connection, type="run", task="Hello")
        until(connection, "state_entered")
        gate.until_reached()
        send(connection, type="run", task="Again")
        assert error(connection) == "session_busy"
        send(connection, type="cancel")
        assert until(connection, "run_finished")[-1]["event"]["stop_reason"] == "cancelled"


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "1", '"run"', "{}", '{"type": "run"}', '{"type": "run", "task": 5}', '{"type": "what"}',
     '{"type": "run", "task": "x", "extra": 1}', '{"type": "run", "task": "\\ud800"}', "[" * 100_000,
     '{"type": "run", "task": ' + "9" * 100_000 + "}", '{"type": "run", "task": " "}', '{"type": "stop", "x": 1}',
     '{"type": "run", "task": "x", "when_busy": "wait"}', '{"type": "run", "task": {"content": "x", "role": "system"}}',
     '{"type": "run", "task": {"attachments": [{"media_type": "image/png", "path": "/etc/passwd"}]}}',
     "{" + ",".join(f'"k{n}": 1' for n in range(5000)) + "}"],
)  # fmt: skip
def test_garbage_is_answered_and_the_socket_goes_on(text):
    with live_server(sessions(), user="ann") as url, socket(url) as connection:
        connection.send(text)
        answer = connection.recv(timeout=60)
        assert json.loads(answer)["error"]["type"] in ("invalid_json", "invalid_request")
        assert len(answer) < 5000
        send(connection, type="run", task="Hello")
        assert until(connection, "run_finished")


def test_bytes_close_the_socket_with_the_code_for_it():
    with live_server(sessions(), user="ann") as url, socket(url) as connection:
        connection.send(b"\x00\x01")
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=60)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1003


@pytest.mark.parametrize("parts", [1, 10])
def test_a_huge_message_closes_the_socket(parts):
    served = sessions()
    with live_server(served, user="ann") as url, socket(url, max_size=None) as connection:
        with pytest.raises((ConnectionClosed, OSError)):  # noqa: PT012
            connection.send(["x" * (6_000_000 // parts)] * parts if parts > 1 else "x" * 6_000_000)
            connection.recv(timeout=60)
        eventually(lambda: next(served._pool.values()).log.readers == 0)
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_flood_of_commands_is_answered_one_by_one():
    gate = RemoteGate()
    with live_server(sessions(gate), user="ann") as url, socket(url) as connection:
        send(connection, type="run", task="Hello")
        gate.until_reached()
        for n in range(300):
            send(connection, type="message", content=f"More {n}")
        errors: list[str] = []
        while len(errors) < 200:
            item = receive(connection)
            errors += [item["error"]["type"]] if "error" in item else []
        assert set(errors) == {"session_busy"}  # 100 are kept for the run
        send(connection, type="cancel")
        until(connection, "run_finished")


def test_closing_in_the_middle_leaves_nothing_and_logs_no_error(caplog):
    served = sessions(*["x" * 1000] * 2000)
    with live_server(served, user="ann") as url:
        for _ in range(5):
            with socket(url) as connection:
                send(connection, type="run", task="Hello")
                receive(connection)
                connection.socket.close()
        eventually(lambda: next(served._pool.values()).log.readers == 0)
        eventually(lambda: served.active_runs == 0)
    assert "Exception in ASGI" not in caplog.text


def test_a_socket_that_takes_no_data_is_closed_after_the_stated_time():
    gate = RemoteGate()
    served = sessions(gate, *["x" * 100_000] * 300)
    limits = ServerLimits(stall=1.0)
    with (
        live_server(served, user="ann", limits=limits) as url,
        RawClient(url, buffer=4096) as client,
    ):
        client.send(
            "GET /sessions/s/ws HTTP/1.1\nHost: HOST\nUpgrade: websocket\nConnection: Upgrade\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13\n\n"
        )
        client.read_head()
        httpx.post(f"{url}/sessions/s/runs", json={"task": "Hello", "detached": True}, timeout=60)
        gate.until_reached()
        (session,) = served._pool.values()
        assert session.log.readers == 1
        gate.open()
        eventually(lambda: session.run is None)
        httpx.post(f"{url}/sessions/s/runs", json={"task": "More", "detached": True}, timeout=60)
        eventually(lambda: session.log.readers == 0, within=15)


def test_the_socket_of_a_deleted_session_is_closed():
    with live_server(sessions(), user="ann") as url, socket(url) as connection:
        assert httpx.delete(f"{url}/sessions/s").status_code == 204
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv(timeout=60)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001


@pytest.mark.parametrize(
    "options,allowed",
    [
        ({}, False),
        ({"additional_headers": {"Authorization": "Bearer wrong"}}, False),
        ({"additional_headers": {"Authorization": "Bearer secret"}}, True),
        ({"subprotocols": ["bearer.secret"]}, True),
        ({"subprotocols": ["chat", "bearer.secret"]}, True),
        ({"subprotocols": ["bearer.wrong"]}, False),
        ({"subprotocols": ["bearer."]}, False),
        (
            {
                "additional_headers": {"Authorization": "Bearer secret"},
                "subprotocols": ["bearer.wrong"],
            },
            False,
        ),
    ],
)
def test_a_socket_needs_the_token(options, allowed):
    with live_server(sessions(), token={"secret": "ann"}) as url:
        if allowed:
            with socket(url, **options) as connection:
                send(connection, type="run", task="Hello")
                until(connection, "run_finished")
        else:
            with pytest.raises(InvalidStatus) as refused, socket(url, **options):
                pass
            assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://[", "http://127.0.0.1:1", "file://", ""]
)
def test_a_page_of_another_origin_opens_no_socket(origin):
    """A page could else use the browser of somebody whose server needs no token."""
    with live_server(sessions(), user="ann") as url:
        with pytest.raises(InvalidStatus), socket(url, additional_headers={"Origin": origin}):
            pass
        with socket(url, origin=url):
            pass


@pytest.mark.parametrize("name", ["日本" * 60, "x" * 129, "a%00b", "%0d%0aX-Evil:%201", "unknown"])
def test_a_session_that_cannot_be_opened_closes_the_socket(name):
    with live_server(sessions()) as url, pytest.raises(InvalidStatus), socket(url, name):
        pass


def test_a_hundred_sockets_come_and_go():
    served = sessions()
    with live_server(served, user="ann") as url:
        began = time.monotonic()
        for n in range(100):
            with socket(url, str(n % 3)):
                pass
        assert time.monotonic() - began < 60
        eventually(lambda: sum(s.log.readers for s in served._pool.values()) == 0)
