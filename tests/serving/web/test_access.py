"""Who may ask: tokens, users, hosts, origins, rates, and what others are told."""

# ruff: noqa: SIM117 - a server around its clients reads well when nested

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import httpx
import pytest
from openai import NotFoundError, OpenAI

from agent_brain import Brain
from agent_brain.errors import BrainDefinitionError
from agent_brain.serving import Caller, Sessions
from agent_brain.serving.web import ServerLimits, make_app, settings
from agent_brain.telemetry import RunFilter
from tests.serving.models import EchoLLM
from tests.serving.web.support import RawClient, RemoteGate, eventually
from tests.support.live_server import live_server


def sessions(*parts: object, **options: object) -> Sessions:
    return Sessions(Brain(llm=EchoLLM(*parts)), **options)  # type: ignore[arg-type]


def ask(
    client: httpx.Client, session: str = "s", task: str = "Hello", **options: object
) -> httpx.Response:
    return client.post(
        f"/sessions/{session}/runs",
        json={"task": task, **options},
        headers={"accept": "application/json"},
    )


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "value,status",
    [
        (None, 401),
        ("", 401),
        ("secret", 401),
        ("Bearer", 401),
        ("Bearer wrong", 401),
        ("Bearer secret2", 401),
        ("Bearer secre", 401),
        ("Basic secret", 401),
        ("Bearer s\xe9cret", 401),
        ("Bearer secret, Bearer secret", 401),
        ("Bearer secret", 200),
        ("bearer secret", 200),
        ("Bearer  secret", 200),
    ],
)
def test_the_token_must_be_right(value, status):
    with live_server(sessions(), token="secret") as url:
        headers = [] if value is None else [(b"authorization", value.encode("latin-1"))]
        answer = httpx.get(f"{url}/sessions", headers=headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["type"] == "unauthorized"
        assert "secret" not in answer.text


def test_two_tokens_in_a_request_are_none():
    with live_server(sessions(), token="secret") as url:
        headers = [(b"authorization", b"Bearer secret"), (b"authorization", b"Bearer secret")]
        assert httpx.get(f"{url}/sessions", headers=headers).status_code == 401


def test_each_token_has_its_user_and_users_do_not_see_each_other():
    with live_server(sessions(), token={"a-token": "ann", "b-token": "bob"}) as url:
        with (
            httpx.Client(base_url=url, headers=bearer("a-token")) as ann,
            httpx.Client(base_url=url, headers=bearer("b-token")) as bob,
        ):
            assert ask(ann, task="Ann's secret").status_code == 200
            assert [s["id"] for s in ann.get("/sessions").json()["sessions"]] == ["s"]
            assert bob.get("/sessions").json()["sessions"] == []
            assert bob.get("/sessions/s").json()["messages"] == []
            assert bob.delete("/sessions/s").status_code in (204, 404)  # one of his own, if any
            assert len(ann.get("/sessions/s").json()["messages"]) == 2


def test_another_users_session_and_one_that_never_was_get_the_same_answer():
    with live_server(sessions(), token={"a-token": "ann", "b-token": "bob"}) as url:
        with (
            httpx.Client(base_url=url, headers=bearer("a-token")) as ann,
            httpx.Client(base_url=url, headers=bearer("b-token")) as bob,
        ):
            bob.headers["x-request-id"] = "r1"
            ask(ann, "hers")
            for method, path in [
                ("DELETE", ""), ("GET", ""), ("POST", "/stop"), ("POST", "/cancel"), ("POST", "/resume"),
            ]:  # fmt: skip
                answers = []
                for name in ("hers", "none"):
                    answer = bob.request(
                        method, f"/sessions/{name}{path}", headers={"accept": "application/json"}
                    )
                    body = answer.text.replace(name, "…")
                    headers = {
                        k: v
                        for k, v in answer.headers.items()
                        if k not in ("date", "content-length")
                    }
                    ids = {k: v for k, v in headers.items() if k != "content-type"}
                    if method == "GET":
                        data = answer.json()
                        data.pop("last_event_id")
                        body = str(data).replace(f"'{name}'", "…")
                    answers.append((answer.status_code, body, ids))
                assert answers[0] == answers[1], (method, path)


def test_unknown_callers_reach_only_sessions_that_the_server_made():
    same = {"x-request-id": "r1"}
    with live_server(sessions()) as url, httpx.Client(base_url=url, headers=same) as client:
        answers = {}
        for name in ("guess", "x" * 22):
            for method, path, body in [
                ("GET", "", None), ("DELETE", "", None), ("GET", "/events", None),
                ("POST", "/runs", {"task": "x"}), ("POST", "/stop", None), ("POST", "/messages", {"content": "x"}),
            ]:  # fmt: skip
                answer = client.request(method, f"/sessions/{name}{path}", json=body)
                answers[answer.status_code, answer.text.replace(name, "…")] = 1
        assert [status for status, _ in answers] == [404]
        created = client.post("/sessions")
        assert created.status_code == 201
        name = created.json()["id"]
        assert created.headers["location"] == f"/sessions/{name}"
        assert ask(client, name).status_code == 200
        assert client.get("/sessions").json() == {"sessions": [], "next": None}


def test_a_function_says_who_asks():
    seen: list[Caller] = []

    def identify(connection: object) -> Caller | None:
        name = connection.headers.get("x-user")  # type: ignore[attr-defined]
        if name == "fails":
            raise RuntimeError("the directory at ldap://secret is down")
        return None if name is None else Caller(name, tenant="t")

    def make_deps(caller: Caller) -> Caller:
        seen.append(caller)
        return caller

    with live_server(sessions(), identify=identify, make_deps=make_deps) as url:
        with httpx.Client(base_url=url) as client:
            assert ask(client).status_code == 401
            client.headers["x-user"] = "fails"
            answer = ask(client)
            assert answer.status_code == 500
            assert "ldap" not in answer.text
            client.headers["x-user"] = "ann"
            assert ask(client).status_code == 200
    assert [(caller.user, caller.tenant) for caller in seen] == [("ann", "t")]


def test_dependencies_hold_no_secrets_of_the_request():
    seen: list[Caller] = []
    with live_server(sessions(), token={"secret": "ann"}, make_deps=seen.append) as url:
        headers = {**bearer("secret"), "cookie": "a=b", "proxy-authorization": "x", "x-own": "kept"}
        with httpx.Client(base_url=url, headers=headers) as client:
            ask(client)
    (caller,) = seen
    assert caller.user == "ann"
    assert caller.headers["x-own"] == "kept"
    assert not {"authorization", "cookie", "proxy-authorization"} & caller.headers.keys()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/info", "/openapi.json", "/"])
def test_some_pages_are_open_to_all(path):
    with live_server(sessions(), token="secret") as url:
        assert httpx.get(url + path).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/sessions", "/usage", "/net.svg", "/v1/models", "/sessions/x", "//sessions", "/page/../sessions", "/healthz/../sessions",
     "/page/%2e%2e/sessions", "/sessions#/healthz", "/sessions?/healthz", "/HEALTHZ", "/healthz/", "/sessions/", "/sessions/x/events"],
)  # fmt: skip
def test_all_else_needs_the_token(path):
    with live_server(sessions(), token="secret") as url, RawClient(url) as client:
        client.send(f"GET {path} HTTP/1.1\nHost: HOST\nConnection: close\n\n")
        status, _, body = client.answer()
    assert status in (401, 404, 400), (status, body)
    assert b'sessions":' not in body


@pytest.mark.parametrize("path", ["/page/../app.py", "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page//etc/passwd",
                                  "/page/..\\app.py", "/page/%00", "/page/" + "x" * 5000, "/page/"])  # fmt: skip
def test_the_page_serves_no_other_files(path):
    with live_server(sessions(), user="ann") as url, RawClient(url) as client:
        client.send(f"GET {path} HTTP/1.1\nHost: HOST\nConnection: close\n\n")
        status, _, body = client.answer()
    assert status in (404, 400), body
    assert b"import" not in body
    assert b"Traceback" not in body


# Hosts and origins


@pytest.mark.parametrize(
    "host,status",
    [
        ("127.0.0.1", 200),
        ("localhost:99", 200),
        ("LocalHost", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("evil.example#localhost", 421),
        ("", 421),
        ("[", 421),
        ("localhost@evil.example", 421),
    ],
)
def test_only_known_hosts_are_answered(host, status):
    """A name that leads to this computer (DNS rebinding) is no name of the server."""
    with live_server(sessions(), user="ann", hosts=["127.0.0.1", "localhost", "[::1]"]) as url:
        with RawClient(url) as client:
            client.send(f"GET /sessions HTTP/1.1\nHost: {host}\nConnection: close\n\n")
            assert client.answer()[0] == status


def test_a_request_without_a_host_is_refused_where_hosts_are_known():
    with live_server(sessions(), user="ann", hosts=["localhost"]) as url, RawClient(url) as client:
        client.send("GET /sessions HTTP/1.0\n\n")
        assert client.answer()[0] in (400, 421)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://[",
        "http://127.0.0.1",
        "file://",
        "x",
        "",
        "\xff",
        "http://HOST@evil",
    ],
)
def test_pages_of_other_origins_are_refused(origin):
    with live_server(sessions(), user="ann") as url, RawClient(url) as client:
        client.send(f"POST /sessions HTTP/1.1\nHost: HOST\nOrigin: {origin}\nContent-Length: 0\n\n")
        status, _, body = client.answer()
    assert status == 403
    assert b"wrong_origin" in body


def test_the_page_of_the_server_itself_may_ask():
    with live_server(sessions(), user="ann") as url:
        assert httpx.post(f"{url}/sessions", headers={"origin": url}).status_code == 201


@pytest.mark.parametrize(
    "headers,status",
    [
        ({"sec-fetch-site": "same-origin"}, 201),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({}, 403),
        ({"host": "chat.example"}, 201),
        ({"x-forwarded-host": "chat.example"}, 403),
    ],
    ids=str,
)
def test_behind_a_proxy_that_sends_another_host_the_browser_says_whose_page_asks(headers, status):
    with live_server(sessions(), user="ann") as url:
        origin = {"origin": "https://chat.example"}
        assert httpx.post(f"{url}/sessions", headers={**origin, **headers}).status_code == status


def test_a_refused_page_is_told_and_logged_which_option_allows_it(caplog):
    origin = {"origin": "https://chat.example"}
    with live_server(sessions(), user="ann") as url:
        refused = httpx.post(f"{url}/sessions", headers=origin)
    assert "--origin" in refused.json()["error"]["message"]
    assert "https://chat.example" in caplog.text
    with live_server(sessions(), user="ann", cors_origins=["https://chat.example"]) as url:
        assert httpx.post(f"{url}/sessions", headers=origin).status_code == 201


@pytest.mark.parametrize("path", ["/", "/info", "/openapi.json", "/healthz", "/page/app.js"])
def test_what_is_open_to_all_is_sent_to_pages_of_any_origin(path):
    with live_server(sessions(), token="secret") as url:
        answer = httpx.get(f"{url}{path}", headers={"origin": "https://chat.example"})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers  # a page cannot read it


def test_health_is_told_to_who_sends_no_host():
    with live_server(sessions(), user="ann", hosts=["localhost"]) as url:
        for path, status in [("/healthz", 200), ("/readyz", 200), ("/sessions", 421)]:
            with RawClient(url) as client:
                client.send(f"GET {path} HTTP/1.0\n\n")
                assert client.answer()[0] == status
            assert httpx.get(f"{url}{path}", headers={"host": "10.0.0.7"}).status_code == status


@pytest.mark.parametrize("trusted,status", [(["127.0.0.1"], 200), (["10.0.0.0/8"], 429), ([], 429)])
def test_only_trusted_proxies_say_who_asks(trusted, status):
    limits = ServerLimits(per_minute=1)
    with live_server(sessions(), limits=limits, proxies=trusted) as url:
        answers = [
            httpx.get(f"{url}/sessions", headers={"x-forwarded-for": f"192.0.2.{n}"})
            for n in range(2)
        ]
    assert [answer.status_code for answer in answers] == [200, status]


# Request IDs


@pytest.mark.parametrize(
    "given,kept",
    [
        ([], False),
        (["a1b2-c3/d4.5_6:7=8+9@x~"], True),
        (["x" * 128], True),
        (["x" * 129], False),
        ([""], False),
        (["a b"], False),
        (["a\tb"], False),
        (["é"], False),
        (['"a"'], False),
        (["<a>"], False),
        (["a", "a"], False),
    ],
    ids=str,
)
def test_every_reply_has_a_request_id(given, kept):
    headers: list[Any] = [(b"x-request-id", value.encode("latin-1")) for value in given]
    with live_server(sessions(), token="secret", limits=ServerLimits(max_body=10)) as url:
        replies = [
            httpx.get(f"{url}/healthz", headers=headers),
            httpx.get(f"{url}/page/app.js", headers=headers),
            httpx.get(f"{url}/nothing", headers=headers),
            httpx.get(f"{url}/nothing", headers=[*headers, *bearer("secret").items()]),
            httpx.post(f"{url}/sessions", headers=headers, content=b"x" * 11),
            httpx.post(f"{url}/v1/chat/completions", headers=headers),
        ]
    ids = [reply.headers.get_list("x-request-id") for reply in replies]
    assert all(len(each) == 1 for each in ids)
    if kept:
        assert ids == [given] * len(ids)
    else:
        assert len({each[0] for each in ids}) == len(ids)
        assert all(each[0].startswith("req_") for each in ids)
    for reply, each in zip(replies, ids, strict=True):
        if reply.is_error:
            assert reply.json()["error"]["request_id"] == each[0]


def test_the_request_id_is_in_what_is_logged_for_the_request(caplog):
    caplog.handler.addFilter(RunFilter())
    failing = Sessions(Brain(llm=EchoLLM(OSError("broken"))))

    def fails(caller: object) -> object:
        raise ValueError("a bug")

    cases: list[tuple[Sessions, dict[str, Any]]] = [
        (failing, {}),
        (sessions(), {"make_deps": fails}),
    ]
    for served, options in cases:
        with live_server(served, user="ann", **options) as url:
            reply = httpx.post(
                f"{url}/sessions/s/runs", json={"task": "Hi"}, headers={"x-request-id": "r-42"}
            )
        assert reply.headers["x-request-id"] == "r-42"
        assert "r-42" in [record.request_id for record in caplog.records if record.exc_info]
        caplog.clear()


def test_a_detached_run_logs_the_id_of_the_request_that_has_started_it(caplog):
    caplog.handler.addFilter(RunFilter())
    with live_server(sessions(OSError("broken")), user="ann") as url:
        httpx.post(
            f"{url}/sessions/s/runs",
            json={"task": "Hi", "detached": True},
            headers={"x-request-id": "r-43"},
        )
        eventually(lambda: "r-43" in [getattr(each, "request_id", "") for each in caplog.records])


def test_a_websocket_has_a_request_id_too():
    with live_server(sessions(), user="ann") as url, RawClient(url) as client:
        client.send(
            "GET /sessions/s/ws HTTP/1.1\nHost: HOST\nUpgrade: websocket\nConnection: Upgrade\n"
            "X-Request-Id: r-44\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13\n\n"
        )
        head, _ = client.read_head()
    assert b"x-request-id: r-44" in head.lower()


def test_openais_client_shows_the_request_id():
    with live_server(sessions(), token="secret") as url:
        with OpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0) as client:
            asked: Any = {"model": "agent-brain", "messages": [{"role": "user", "content": "Hi"}]}
            answer = client.chat.completions.create(**asked)
            assert answer._request_id.startswith("req_")
            with pytest.raises(NotFoundError) as error:
                client.models.retrieve("none")
            assert str(error.value.request_id).startswith("req_")


def test_pages_of_chosen_origins_may_ask():
    good = "https://app.example"
    with live_server(sessions(), token="secret", cors_origins=[good]) as url:
        with httpx.Client(base_url=url) as client:
            asked = {
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization",
            }
            allowed = client.options("/sessions", headers={"origin": good, **asked})
            assert allowed.status_code == 200
            assert allowed.headers["access-control-allow-origin"] == good
            refused = client.options(
                "/sessions", headers={"origin": "https://evil.example", **asked}
            )
            error = refused.json()["error"]
            assert (refused.status_code, error["type"]) == (403, "wrong_origin")
            assert "https://evil.example" in error["message"]
            assert "access-control-allow-origin" not in refused.headers
            real = client.post("/sessions", headers={"origin": good, **bearer("secret")})
            assert real.status_code == 201
            assert real.headers["access-control-allow-origin"] == good
            error = client.get("/sessions", headers={"origin": good})
            assert error.status_code == 401
            assert error.headers["access-control-allow-origin"] == good
            assert "retry-after" in error.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    "token,status,code", [("no", 401, "unauthorized"), ("secret", 404, "not_found")]
)
def test_errors_below_v1_have_what_clients_of_openai_read(token, status, code):
    with live_server(sessions(), token="secret") as url:
        answer = httpx.get(f"{url}/v1/nothing", headers=bearer(token))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, None)


# Rates


def test_a_client_that_asks_too_often_is_told_when_to_come_again():
    limits = ServerLimits(per_minute=5)
    with live_server(sessions(), token={"a": "ann", "b": "bob"}, limits=limits) as url:
        answers = [httpx.get(f"{url}/sessions", headers=bearer("a")) for _ in range(7)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert httpx.get(f"{url}/sessions", headers=bearer("b")).status_code == 200


def test_guessing_tokens_is_limited_and_health_is_told_all_the_same():
    with live_server(sessions(), token="secret", limits=ServerLimits(per_minute=5)) as url:
        answers = [httpx.get(f"{url}/sessions", headers=bearer(f"guess{n}")) for n in range(7)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2
        assert httpx.get(f"{url}/healthz").status_code == 200


@pytest.mark.anyio
async def test_a_request_whose_client_has_gone_gives_its_place_back():
    app = make_app(sessions(), limits=ServerLimits(at_once=1))
    scope = {"type": "http", "method": "GET", "path": "/info", "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 5000)}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def gone(message: Any) -> None:
        raise OSError("the client has gone")

    async def send(message: Any) -> None:
        sent.append(message)

    with pytest.raises(OSError, match="gone"):
        await app({**scope}, receive, gone)
    await app({**scope}, receive, send)
    assert sent[0]["status"] == 200


def test_one_client_cannot_take_all_places():
    gate = RemoteGate()
    limits = ServerLimits(at_once=10, at_once_each=5)
    served = sessions(gate)
    with live_server(served, token={"a": "ann", "b": "bob"}, limits=limits) as url:
        waiting = []
        for _ in range(5):
            client = RawClient(url)
            client.send(
                "POST /sessions/s/runs HTTP/1.1\nHost: HOST\nAuthorization: Bearer a\n"
                'Content-Type: application/json\nContent-Length: 15\n\n{"task": "One"}'
            )
            waiting.append(client)
        gate.until_reached()
        eventually(lambda: httpx.get(f"{url}/sessions", headers=bearer("a")).status_code == 429)
        assert httpx.get(f"{url}/sessions", headers=bearer("b")).status_code == 200
        for client in waiting:
            client.socket.close()
        eventually(lambda: httpx.get(f"{url}/sessions", headers=bearer("a")).status_code == 200)
        eventually(lambda: served.active_runs == 0)


@pytest.mark.parametrize(
    "options",
    [
        {"token": ""},
        {"token": " "},
        {"token": "a\nb"},
        {"token": "schlüssel"},
        {"token": {"": "ann"}},
        {"token": "x", "identify": lambda connection: None},
        {"user": "x", "identify": lambda connection: None},
        {"user": ""},
        {"token": {"a-secret": ""}},
    ],
)
def test_wrong_options_are_refused_at_once(options):
    with pytest.raises(BrainDefinitionError):
        make_app(sessions(), **options)


@pytest.mark.parametrize(
    "name", ["max_body", "body_timeout", "per_minute", "at_once", "at_once_each", "stall"]
)
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_limits_are_greater_than_zero(name, value):
    with pytest.raises(BrainDefinitionError, match=f"{name} must be greater than 0"):
        ServerLimits(**{name: value})


# Cookies


def log_in(url: str, token: str = "secret") -> str:
    answer = httpx.post(f"{url}/login", headers=bearer(token))
    assert answer.status_code == 204
    kept = answer.headers["set-cookie"].lower()
    assert all(part in kept for part in ("httponly", "samesite=strict", "max-age=3600", "path=/"))
    return answer.cookies["agent_brain"]


def watching(url: str, cookie: str, session: str = "s", **headers: str) -> int:
    named = {"cookie": f"agent_brain={cookie}", **headers}
    with httpx.stream("GET", f"{url}/sessions/{session}/events", headers=named) as answer:
        return answer.status_code


def test_a_cookie_reads_the_events_of_its_user_and_does_nothing_else():
    with live_server(sessions(), token={"secret": "ann", "other": "bob"}) as url:
        assert httpx.post(f"{url}/login").status_code == 401
        cookie = log_in(url)
        assert "secret" not in cookie
        assert watching(url, cookie) == 200
        with httpx.Client(base_url=url, headers=bearer("secret")) as ann:
            ask(ann, "hers", "Ann's")
        address = f"{url}/sessions/hers/events?after=0"
        with httpx.stream("GET", address, headers={"cookie": f"agent_brain={cookie}"}) as events:
            assert any("Ann's" in line for line in events.iter_lines())
        bobs = {"cookie": f"agent_brain={log_in(url, 'other')}"}
        with httpx.stream("GET", address, headers=bobs) as events:
            assert next(events.iter_bytes()).startswith(b": keepalive")
        named = {"cookie": f"agent_brain={cookie}"}
        for method, path in [
            ("GET", "/sessions"), ("GET", "/sessions/s"), ("POST", "/login"), ("DELETE", "/sessions/s"),
            ("POST", "/sessions/events"), ("POST", "/sessions/s/runs"), ("HEAD", "/sessions/s/events"),
        ]:  # fmt: skip
            assert httpx.request(method, f"{url}{path}", headers=named).status_code == 401, path


@pytest.mark.parametrize("made", ["", "x", ".", "x.y", "é.é", "e30=." + "0" * 64])
def test_a_cookie_of_ones_own_making_is_none(made):
    with live_server(sessions(), token="secret") as url:
        named = [(b"cookie", f"agent_brain={made}".encode("latin-1"))]
        assert httpx.get(f"{url}/sessions/s/events", headers=named).status_code == 401


def test_a_cookie_is_changed_by_nobody_ends_and_is_valid_on_other_processes(monkeypatch):
    with live_server(sessions(), token={"secret": "ann"}) as url:
        cookie = log_in(url)
        value, _, signature = cookie.partition(".")
        forged = urlsafe_b64encode(b'["bob", null, 99999999999]').decode()
        assert watching(url, f"{forged}.{signature}") == 401
        assert watching(url, f"{value}.{signature[:-1]}0{signature[-1]}") == 401
    with live_server(sessions(), token={"secret": "ann"}) as other:
        assert watching(other, cookie) == 200
        monkeypatch.setattr(settings, "COOKIE_SECONDS", -1)
        assert watching(other, log_in_late(other)) == 401
    with live_server(sessions(), token={"new-secret": "ann"}) as changed:
        assert watching(changed, cookie) == 401


def log_in_late(url: str) -> str:
    kept = httpx.post(f"{url}/login", headers=bearer("secret")).headers["set-cookie"]
    return kept.partition("=")[2].partition(";")[0].strip('"')


def test_a_page_of_another_origin_reads_nothing_by_a_cookie():
    with live_server(sessions(), token="secret") as url:
        evil = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        assert watching(url, log_in(url), **evil) == 403


def test_who_is_identified_by_a_function_gets_a_cookie_too():
    def identify(connection: Any) -> Caller | None:
        return Caller("ann", "t") if connection.headers.get("x-user") == "ann" else None

    with live_server(sessions(), identify=identify) as url:
        answer = httpx.post(f"{url}/login", headers={"x-user": "ann"})
        assert watching(url, answer.cookies["agent_brain"]) == 200
        assert watching(url, "x.y") == 401
