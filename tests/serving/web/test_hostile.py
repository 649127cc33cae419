"""Hostile input over HTTP: a clear status, nothing leaked, bounded memory, others not affected."""

# ruff: noqa: SIM117 - a server around its clients reads well when nested

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from contextlib import ExitStack
from itertools import product
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from agent_brain import Brain
from agent_brain.serving import Sessions
from agent_brain.serving.web import ServerLimits, make_app, server
from tests.serving.models import EchoLLM
from tests.serving.web.support import RawClient, RemoteGate, eventually
from tests.support.live_server import live_server

JSON = {"content-type": "application/json", "accept": "application/json"}


def sessions(*parts: Any, **options: Any) -> Sessions:
    return Sessions(Brain(llm=EchoLLM(*parts)), **options)


def still_answers(url: str) -> bool:
    answer = httpx.post(f"{url}/sessions/well/runs", json={"task": "Hello"}, headers=JSON)
    return answer.status_code == 200 and answer.json()["answer"] == "You said: Hello"


def is_clean_error(answer: httpx.Response) -> bool:
    """Whether an error has a type and a short message, without what the server should not tell."""
    error = answer.json()["error"]
    text = error["message"]
    told = any(
        word in answer.text
        for word in ("Traceback", "site-packages", ".py", "/work", "/root", "0x")
    )
    return set(error) == {"type", "message", "request_id"} and len(text) < 3000 and not told


# Heads


REQUEST = "GET /sessions HTTP/1.1\nHost: HOST\n"
WEBSOCKET = (
    "GET /sessions/s/ws HTTP/1.1\nHost: HOST\nConnection: Upgrade\nUpgrade: websocket\n"
    "Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n"
)
TRAILERS = (
    "POST /sessions HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked\n"
    "Content-Type: application/json\n\n2\n{}\n0\n"
)
LINES = b"".join(b"x-%d: %s\r\n" % (n, b"y" * 1000) for n in range(1000))
HEADS = {
    "headers": (REQUEST, LINES),
    "empty headers": (REQUEST, b"a:\r\n" * 250_000),
    "a value": (REQUEST + "x: ", b"y" * 1_000_000),
    "a name": (REQUEST, b"y" * 1_000_000),
    "an address": ("GET /sessions?", b"y" * 1_000_000),
    "headers of a WebSocket": (WEBSOCKET, LINES),
    "trailers": (TRAILERS, LINES),
    "a trailer": (TRAILERS + "x: ", b"y" * 1_000_000),
    "the extension of a chunk": (TRAILERS[:-3] + "2;", b"y" * 1_000_000),
}


@pytest.fixture(scope="module", params=["httptools", "h11"])
def any_parser(request):
    """The URL of a server whose clients send no token, with each parser of HTTP."""
    with ExitStack() as servers:
        with pytest.MonkeyPatch.context() as patch:
            if request.param == "h11":  # as where httptools is not installed
                patch.setitem(sys.modules, "agent_brain.serving.bounded_http", None)
            address = servers.enter_context(live_server(sessions(), token="secret"))
        yield address


@pytest.mark.parametrize("form", HEADS)
def test_an_endless_head_is_refused_before_it_is_kept(any_parser, form):
    begin, more = HEADS[form]
    with RawClient(any_parser) as client:
        client.send(begin)
        with pytest.raises(ConnectionError):  # noqa: PT012
            for _ in range(20):  # the system's buffers take some
                client.send(more)
    assert httpx.get(f"{any_parser}/healthz").status_code == 200


@pytest.mark.parametrize(
    "head",
    [REQUEST + "x: " + "y" * 70_000, REQUEST + "x: y\n" * 101, "GET /sessions?" + "y" * 70_000],
    ids=["bytes", "count", "address"],
)
def test_a_head_that_is_too_large_is_answered_with_431(head):
    with live_server(sessions(), token="secret") as url, RawClient(url) as client:
        client.send(head)
        assert client.answer()[0] == 431
        assert client.closed()


@pytest.mark.parametrize(
    "headers,status",
    [
        ([], 200),
        ([("x", "y")] * 10, 200),
        ([("x", "y")] * 21, 431),
        ([("x", "y" * 1000)], 200),
        ([("x", "y" * 2000)], 431),
    ],
    ids=str,
)
def test_heads_are_limited_also_where_another_server_reads_them(headers, status):
    limits = ServerLimits(max_head=2000, max_headers=20)
    with live_server(sessions(), user="ann", limits=limits) as url:
        assert httpx.get(f"{url}/sessions", headers=headers).status_code == status
    with TestClient(make_app(sessions(), limits=limits)) as client:  # takes heads of any size
        answer = client.get("/healthz", headers=headers)
    assert answer.status_code == status
    assert status == 200 or answer.json()["error"]["type"] == "head_too_large"


# Bodies


@pytest.mark.parametrize(
    "path", ["/sessions", "/sessions/s/runs", "/sessions/s/resume", "/sessions/s/messages"]
)
def test_a_body_that_is_said_to_be_too_large_is_refused_before_it_is_read(path):
    with live_server(sessions(), user="ann", limits=ServerLimits(max_body=1000)) as url:
        with RawClient(url) as client:
            client.send(
                f"POST {path} HTTP/1.1\nHost: HOST\nContent-Type: application/json\nContent-Length: 1001\n\n"
            )
            assert client.answer()[0] == 413
        assert still_answers(url)


@pytest.mark.parametrize("length", ["9" * 30, "9" * 5000])
def test_a_length_beyond_all_bounds_is_refused(length):
    with live_server(sessions(), user="ann") as url, RawClient(url) as client:
        client.send(f"POST /sessions HTTP/1.1\nHost: HOST\nContent-Length: {length}\n\n")
        assert client.answer()[0] in (400, 413)


def test_an_endless_chunked_body_is_refused_and_the_connection_dropped(monkeypatch):
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.5)
    with live_server(sessions(), user="ann", limits=ServerLimits(max_body=100_000)) as url:
        with RawClient(url) as client:
            client.send(
                "POST /sessions/s/runs HTTP/1.1\nHost: HOST\nContent-Type: application/json\n"
                "Transfer-Encoding: chunked\n\n"
            )
            chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
            with pytest.raises(ConnectionError):  # noqa: PT012
                for _ in range(1_000_000):
                    client.send(chunk)
        monkeypatch.undo()
        assert still_answers(url)


def test_a_slow_body_is_given_up_after_its_time():
    with live_server(sessions(), user="ann", limits=ServerLimits(body_timeout=1.5)) as url:
        with RawClient(url) as client:
            client.send(
                "POST /sessions/s/runs HTTP/1.1\nHost: HOST\nContent-Type: application/json\nContent-Length: 99\n\n{"
            )
            status, headers, body = client.answer()
            assert (status, headers["connection"]) == (408, "close")
            assert b"1.5 seconds" in body
            assert client.closed()
        assert still_answers(url)


def test_slow_headers_are_given_up_after_their_time(monkeypatch):
    with live_server(sessions(), user="ann") as url:
        clients = [RawClient(url) for _ in range(50)]
        for n, client in enumerate(clients):
            client.send("GET /sessions HTTP/1.1\nHost: HOST\nX-Slow:"[: n * 2])
        assert still_answers(url)
        monkeypatch.setattr(server, "HEADER_SECONDS", 0.0)
        for client in clients:
            assert client.closed()
            client.socket.close()


def test_a_body_that_is_cut_off_does_nothing():
    served = sessions()
    with live_server(served, user="ann") as url:
        with RawClient(url) as client:
            client.send(
                'POST /sessions/s/runs HTTP/1.1\nHost: HOST\nContent-Type: application/json\nContent-Length: 99\n\n{"task"'
            )
        assert still_answers(url)
        assert [s["id"] for s in httpx.get(f"{url}/sessions").json()["sessions"]] == ["well"]


BODIES = [
    (b"", 400), (b"{", 400), (b"null", 422), (b"[]", 422), (b"1", 422), (b'"x"', 422), (b"{}", 422), (b"\xff\xfe", 400),
    (b'{"task": "\xff"}', 400), (b'{"task": "\xed\xa0\x80"}', 400), (b'{"task": "\\ud800"}', 400), (b"{'task': 1}", 400),
    (b'{"task": NaN}', 422), (b'{"task": 1e999}', 422), (b'{"task": ' + b"9" * 100_000 + b"}", 400), (b"[" * 100_000, 400),
    (b'{"task":' * 100_000, 400), (b'{"task": ""}', 400), (b'{"task": " \\n"}', 400), (b'{"task": null}', 422),
    (b'{"task": "x", "admin": true}', 422), (b'{"task": "x", "deps": {}}', 422), (b'{"task": "x", "detached": "maybe"}', 422),
    (b'{"task": "x", "when_busy": "never"}', 422), (b'{"task": {}}', 400), (b'{"task": {"content": 1}}', 422),
    (b'{"task": {"content": "x", "role": "system"}}', 422), (b'{"task": {"content": "x", "id": "other"}}', 422),
    (b'{"task": {"attachments": [{"media_type": "image/png", "path": "/etc/passwd"}]}}', 422),
    (b'{"task": {"attachments": [{"media_type": "x", "url": "y"}]}}', 422),
    (b"{" + b",".join(b'"%d": 1' % n for n in range(100_000)) + b"}", 422),
    (b'{"task": {"attachments": [' + b",".join([b"{}"] * 100_000) + b"]}}", 422),
    (b"\x00", 400), (b"\xef\xbb\xbf{}", 400), (b'{"task": "x"} {"task": "y"}', 400),
]  # fmt: skip


@pytest.fixture(scope="module")
def url():
    with live_server(sessions(), user="ann", limits=ServerLimits(per_minute=None)) as address:
        yield address


@pytest.mark.parametrize("body,status", BODIES, ids=lambda value: repr(value)[:40])
def test_a_body_that_is_no_task_is_refused(url, body, status):
    answer = httpx.post(f"{url}/sessions/s/runs", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert is_clean_error(answer)


@pytest.mark.parametrize(
    "name,problem",
    [("notes.txt", "The file 'notes.txt' is empty"), (None, "An attached file is empty")],
)
def test_an_empty_file_is_refused_in_plain_words(url, name, problem):
    empty = {"media_type": "text/plain", "data": "", "name": name}
    full = {"media_type": "text/plain", "data": "SGk=", "name": "full.txt"}
    body = {"task": {"content": "Read.", "attachments": [full, empty]}}
    answer = httpx.post(f"{url}/sessions/s/runs", json=body)
    assert (answer.status_code, answer.json()["error"]["message"]) == (422, problem)


@pytest.mark.parametrize("body", [
    b'{"approve": "all"}', b'{"approve": [1]}', b'{"deny": {"a": 1}}', b'{"edit": {"a": "b"}}', b"[]",
    b'{"approve": [' + b",".join([b"1"] * 500_000) + b"]}", b'{"edit": {"a": {"b": ' + b"[" * 5000 + b"]" * 5000 + b"}}}",
    b'{"deny": {' + b",".join(b'"%d": 1' % n for n in range(200_000)) + b"}}",
], ids=lambda value: repr(value)[:40])  # fmt: skip
def test_a_body_that_is_no_decision_is_refused(url, body):
    answer = httpx.post(f"{url}/sessions/s/resume", content=body, headers=JSON, timeout=60)
    assert answer.status_code in (400, 422)
    assert is_clean_error(answer)


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"{}", b'{"title": ""}', b'{"title": 3}', b'{"title": null}', b'{"title": "x", "owner": "bob"}',
    b'{"title": "\\ud800"}', b'{"title": "' + b"x" * 1001 + b'"}',
], ids=lambda value: repr(value)[:40])  # fmt: skip
def test_a_body_that_is_no_title_is_refused_and_starts_no_session(url, body):
    answer = httpx.patch(f"{url}/sessions/untitled", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert is_clean_error(answer)
    assert "untitled" not in [
        each["id"] for each in httpx.get(f"{url}/sessions").json()["sessions"]
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "json",
    ],
)
def test_a_body_of_another_content_type_is_refused(url, kind):
    """Web pages could send these to the server of somebody who needs no token."""
    answer = httpx.post(
        f"{url}/sessions/s/runs", content=b'{"task": "x"}', headers={"content-type": kind}
    )
    assert answer.status_code == 415


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "\x1b[2J",
        "\u202e",
        "\u2028",
        "😀" * 1000,
        "</script><script>alert(1)</script>",
        "a\r\nb",
        "\x7f",
        "\ufeff\ufffe",
    ],
)
def test_any_text_comes_back_as_it_was(url, text):
    task = f"a{text}b"
    answer = httpx.post(f"{url}/sessions/texts/runs", json={"task": task}, headers=JSON)
    assert answer.json()["answer"] == f"You said: {task}"
    view = httpx.get(f"{url}/sessions/texts").json()
    assert any(message["content"] == f"You said: {task}" for message in view["messages"])
    assert httpx.get(f"{url}/sessions").status_code == 200


def test_a_text_of_the_model_that_is_no_unicode_is_mended():
    with live_server(sessions("a\ud800b"), user="ann") as address:
        for accept in ("text/event-stream", "application/x-ndjson", "application/json"):
            answer = httpx.post(
                f"{address}/sessions/s/runs", json={"task": "x"}, headers={"accept": accept}
            )
            assert answer.status_code == 200
            answer.content.decode("utf-8")
        assert httpx.get(f"{address}/sessions/s").status_code == 200
        assert httpx.get(f"{address}/sessions").status_code == 200


# Paths and names

NAMES = ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "a%2fb", "a%00b", "%ff", "%ed%a0%80", "x" * 128, "x" * 129, "x" * 10_000, "%0d%0aX-Evil:%201",
         "%0aevil", "a b", "a%20b", "'", '%22]', "%5B%22", "*", "%", "%zz", "%e2%80%ae", "{session}", "<script>", "-", "0", "null", "%25252e"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:20])
def test_strange_names_of_sessions_are_sessions_or_errors(url, name):
    for path, status in [("", 200), ("/stop", 409), ("/nothing", 404)]:
        with RawClient(url) as client:
            method = "POST" if path == "/stop" else "GET"
            request = f"{method} /sessions/{name}{path} HTTP/1.1\nHost: {client.host}\nConnection: close\n\n"
            client.send(request.replace("\n", "\r\n").encode("latin-1"))
            got, headers, body = client.answer()
        assert got in (status, 400, 404), body
        assert "x-evil" not in headers
        assert b"Traceback" not in body
        if got == 200:
            json.loads(body)


@pytest.mark.parametrize("request_line", [
    "GET /sessions HTTP/9.9", "GET sessions HTTP/1.1", "GET  HTTP/1.1", "GET /sess\x00ions HTTP/1.1", "G\x01T / HTTP/1.1",
    "GET http://evil.example/sessions HTTP/1.1", "CONNECT evil:80 HTTP/1.1", "TRACE / HTTP/1.1", "OPTIONS * HTTP/1.1",
    "GET /" + "x" * 100_000 + " HTTP/1.1", "PRI * HTTP/2.0", "\xff\xfe",
])  # fmt: skip
def test_strange_request_lines_are_refused(url, request_line):
    with RawClient(url) as client:
        client.send(f"{request_line}\nHost: HOST\nConnection: close\n\n")
        data = b""
        try:
            while more := client.socket.recv(65536):
                data += more
        except ConnectionError:
            pass
    assert b"Traceback" not in data
    assert not data or int(data.split()[1]) in (200, 400, 404, 405, 414, 431)
    assert still_answers(url)


@pytest.mark.parametrize("header", ["X: " + "y" * 200_000, "\n".join(f"X-{n}: y" for n in range(20_000)), "Bad Header: x", "X: a\x00b",
                                    "Content-Length: -1", "Content-Length: 1\nContent-Length: 2", "Transfer-Encoding: evil",
                                    "Content-Length: 5\nTransfer-Encoding: chunked", "Expect: 100-continue\nContent-Length: 0"])  # fmt: skip
def test_strange_headers_do_no_harm(url, header):
    with RawClient(url) as client:
        try:
            client.send(
                f"POST /sessions HTTP/1.1\nHost: HOST\n{header}\nConnection: close\n\n0\n\n"
            )
            assert client.closed()
        except ConnectionError:
            pass
    assert still_answers(url)


METHODS = ["PUT", "PATCH", "TRACE", "HEAD", "OPTIONS"]
PATHS = ["/sessions/s/runs", "/sessions/s/events", "/sessions/s", "/sessions", "/healthz"]
TITLED = ("/sessions/s", "PATCH")  # changes its title


@pytest.mark.parametrize(
    ("path", "method"), [each for each in product(PATHS, METHODS) if each != TITLED]
)
def test_other_methods_are_answered_and_start_nothing(url, method, path):
    answer = httpx.request(method, url + path, timeout=60)
    assert answer.status_code in ((200, 405) if method == "HEAD" else (405,))
    assert method == "HEAD" or is_clean_error(answer)
    assert method != "HEAD" or not answer.content


def test_the_head_of_a_stream_is_complete_at_once():
    served = sessions()
    with live_server(served, user="ann") as address, httpx.Client(base_url=address) as client:
        client.get("/sessions/s")
        assert (
            client.head("/sessions/s/events")
            .headers["content-type"]
            .startswith("text/event-stream")
        )
        (session,) = served._pool.values()
        assert session.log.readers == 0
        assert client.get("/healthz").status_code == 200


def test_a_path_that_is_unknown_is_not_found(url):
    answer = httpx.get(f"{url}/nothing/here", headers={"x-request-id": "r1"})
    assert answer.status_code == 404
    told = {"type": "not_found", "message": "Not Found", "request_id": "r1"}
    assert answer.json() == {"error": told}


# Many


@pytest.mark.thorough
def test_thousands_of_sessions_of_one_client_are_bounded_and_others_go_on():
    served = sessions(max_sessions=30, max_per_user=10)
    with (
        live_server(
            served, token={"a": "ann", "b": "bob"}, limits=ServerLimits(per_minute=None)
        ) as address,
        httpx.Client(base_url=address, headers={"authorization": "Bearer a"}) as ann,
        httpx.Client(base_url=address, headers={"authorization": "Bearer b"}) as bob,
    ):
        bob.post("/sessions/his/runs", json={"task": "Remember"}, headers=JSON)
        for _ in range(2000):
            assert ann.post("/sessions").status_code == 201
        assert served.open_sessions == 11
        assert len(bob.get("/sessions/his").json()["messages"]) == 2


def test_hundreds_that_wait_for_one_session_are_bounded_and_others_go_on():
    gate = RemoteGate()
    served = sessions(gate)
    limits = ServerLimits(at_once_each=100, per_minute=None)
    with live_server(served, token={"a": "ann", "b": "bob"}, limits=limits) as address:
        body = '{"task": "One"}'
        clients = []
        for _ in range(300):
            client = RawClient(address)
            client.send(
                "POST /sessions/s/runs HTTP/1.1\nHost: HOST\nAuthorization: Bearer a\n"
                f"Content-Type: application/json\nContent-Length: {len(body)}\n\n{body}"
            )
            clients.append(client)
        gate.until_reached()
        refused = [client.answer()[0] for client in clients[-100:]]
        assert refused == [429] * 100
        assert (
            httpx.get(f"{address}/sessions", headers={"authorization": "Bearer b"}).status_code
            == 200
        )
        for client in clients:
            client.socket.close()
        assert gate.left.wait(60)
        eventually(lambda: served.active_runs == 0)
        (session,) = served._pool.values()
        eventually(lambda: not served._pool.used)
        assert session.run is None


def test_messages_to_a_run_are_bounded():
    gate = RemoteGate()
    with live_server(sessions(gate), user="ann", limits=ServerLimits(per_minute=None)) as address:
        with httpx.Client(base_url=address) as client:
            client.post("/sessions/s/runs", json={"task": "x", "detached": True})
            gate.until_reached()
            answers = [
                client.post("/sessions/s/messages", json={"content": "More"}).status_code
                for _ in range(150)
            ]
            assert answers == [202] * 100 + [409] * 50
            client.post("/sessions/s/cancel")


@pytest.mark.thorough
def test_memory_is_bounded_under_hostile_requests():
    served = sessions(max_sessions=20, max_per_user=5)
    with live_server(served, user="ann", limits=ServerLimits(per_minute=None)) as address:
        with httpx.Client(base_url=address) as client:

            def attack(times: int) -> None:
                for n in range(times):
                    client.post(f"/sessions/{n}/runs", content=b"[" * 50_000, headers=JSON)
                    client.post(f"/sessions/{n}/runs", json={"task": "x" * 1000}, headers=JSON)
                    client.get(f"/sessions/{'y' * 5000}{n}")
                    client.get(f"/sessions/new{n}", headers={"authorization": f"Bearer {n}"})
                    client.delete(f"/sessions/{n}")

            attack(30)
            tracemalloc.start()
            try:
                attack(10)
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
                attack(100)
                gc.collect()
                grown = tracemalloc.get_traced_memory()[0] - before
            finally:
                tracemalloc.stop()
    assert grown < 1_000_000
