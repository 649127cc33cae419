"""Runs over HTTP: server-sent events, JSON lines, the result; leaving, coming back, stalling."""

# ruff: noqa: SIM117 - a server around its clients reads well when nested

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
import uvicorn.config
from pydantic import TypeAdapter

from agent_brain import Action, Brain, tool
from agent_brain.errors import LLMServerError
from agent_brain.serving import Sessions
from agent_brain.serving.web import ServerLimits, responses, server
from agent_brain.states.events import AgentEvent
from agent_brain.testing import ScriptedLLM
from agent_brain.tools.builtin import ask_user
from tests.serving.models import EchoLLM, PartsLLM
from tests.serving.web.support import (
    RawClient,
    RemoteGate,
    eventually,
    frames_in,
    parse_sse,
    text_of,
)
from tests.support.live_server import live_server
from tests.support.own_events import FIELDS, reading_net

EVENT: TypeAdapter[Any] = TypeAdapter(AgentEvent)


def sessions(*parts: Any, **options: Any) -> Sessions:
    return Sessions(Brain(llm=EchoLLM(*parts)), **options)


def run(url: str, session: str = "s", task: str = "Hello", **options: Any) -> httpx.Response:
    headers = {"accept": options.pop("accept", "text/event-stream")}
    return httpx.post(
        f"{url}/sessions/{session}/runs",
        json={"task": task, **options},
        headers=headers,
        timeout=60,
    )


def test_an_attached_run_streams_server_sent_events():
    with live_server(sessions("Well. "), user="ann") as url:
        answer = run(url)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    frames = parse_sse(answer.text)
    assert text_of(frames) == "Well. You said: Hello"
    assert (frames[0].event, frames[-1].event) == ("run_started", "run_finished")
    for n, frame in enumerate(frames, 1):
        assert frame.id.partition("-")[2] == str(n)
        event = EVENT.validate_json(frame.data)
        assert event.kind == frame.event == frame.json["kind"]


@pytest.mark.parametrize(
    "text",
    ["\n\n", "\r\n", "data: x\n\nevent: y", "\u2028\u2029", "é日本😀", "\x00\x07", "</script>"],
)
def test_text_of_any_kind_stays_in_its_frame(text):
    with live_server(sessions(text), user="ann") as url:
        for accept in ("text/event-stream", "application/x-ndjson"):
            answer = run(url, accept=accept)
            if accept == "text/event-stream":
                got = text_of(parse_sse(answer.text))
            else:
                events = [json.loads(line)["event"] for line in answer.text.split("\n") if line]
                got = "".join(e["text"] for e in events if e["kind"] == "text_delta")
            assert got.startswith(text)


def test_an_attached_run_streams_json_lines():
    with live_server(sessions(), user="ann") as url:
        answer = run(url, accept="application/x-ndjson")
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert all(set(line) == {"id", "event"} for line in lines)
    assert [EVENT.validate_python(line["event"]).kind for line in lines][-1] == "run_finished"


def test_an_attached_run_returns_its_result_as_json():
    with live_server(sessions(), user="ann") as url:
        answer = run(url, accept="application/json")
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["answer"] == "You said: Hello"
    assert body["stop_reason"] == "done"
    assert body["session"] == "s"


@pytest.mark.parametrize(
    "accept,got",
    [
        ("*/*", "text/event-stream"),
        ("text/html, */*;q=0.1", "text/event-stream"),
        ("", "text/event-stream"),
        ("application/json, text/event-stream", "application/json"),
        ("APPLICATION/X-NDJSON;q=1", "application/x-ndjson"),
        ("image/png", None),
    ],
)
def test_the_client_chooses_the_format(accept, got):
    with live_server(sessions(), user="ann") as url:
        answer = run(url, accept=accept)
    if got is None:
        assert answer.status_code == 406
        assert answer.json()["error"]["type"] == "not_acceptable"
    else:
        assert answer.headers["content-type"].partition(";")[0] == got


# The life of a run


def test_leaving_cancels_an_attached_run():
    gate = RemoteGate()
    served = sessions("Well. ", gate)
    with live_server(served, user="ann") as url:
        with httpx.stream("POST", f"{url}/sessions/s/runs", json={"task": "Hello"}) as answer:
            for frame in frames_in(answer.iter_lines()):
                if frame.event == "text_delta":
                    break
            gate.until_reached()
        assert gate.left.wait(60)
        eventually(lambda: served.active_runs == 0)


def test_leaving_before_the_first_byte_cancels_too():
    gate = RemoteGate()
    served = sessions(gate)
    with live_server(served, user="ann") as url:
        with RawClient(url) as client:
            body = b'{"task": "Hello"}'
            client.send(
                "POST /sessions/s/runs HTTP/1.1\nHost: HOST\nAccept: application/json\n"
                f"Content-Type: application/json\nContent-Length: {len(body)}\n\n"
            )
            client.send(body)
            gate.until_reached()
        assert gate.left.wait(60)
        eventually(lambda: served.active_runs == 0)


def test_leaving_while_waiting_for_the_turn_leaves_the_session_in_order():
    gate = RemoteGate()
    served = sessions(gate)
    with live_server(served, user="ann") as url, httpx.Client(base_url=url) as client:
        client.post("/sessions/s/runs", json={"task": "First", "detached": True})
        gate.until_reached()
        with RawClient(url) as waiting:
            waiting.send(
                "POST /sessions/s/runs HTTP/1.1\nHost: HOST\nContent-Type: application/json\n"
                'Content-Length: 18\n\n{"task": "Second"}'
            )
        gate.open()
        answer = run(url, task="Third", accept="application/json")
        assert answer.json()["answer"] == "You said: Third"
        said = [m["content"] for m in client.get("/sessions/s").json()["messages"]]
        assert "You said: First" in said


def test_a_detached_run_is_watched_and_continued_after_a_cut():
    gate = RemoteGate()
    with live_server(sessions("One. ", gate, "Two. "), user="ann") as url:
        with httpx.Client(base_url=url) as client:
            answer = client.post("/sessions/s/runs", json={"task": "Hello", "detached": True})
            assert answer.status_code == 202
            after = answer.json()["after"]
            seen = []
            with client.stream(
                "GET", "/sessions/s/events", headers={"Last-Event-ID": after}
            ) as events:
                for frame in frames_in(events.iter_lines()):
                    seen.append(frame)
                    if frame.event == "text_delta":
                        break
            gate.until_reached()
            gate.open()
            with client.stream(
                "GET", "/sessions/s/events", headers={"Last-Event-ID": seen[-1].id}
            ) as events:
                for frame in frames_in(events.iter_lines()):
                    seen.append(frame)
                    if frame.event == "run_finished":
                        break
    assert text_of(seen) == "One. Two. You said: Hello"
    assert [int(frame.id.partition("-")[2]) for frame in seen] == [*range(1, len(seen) + 1)]


@pytest.mark.parametrize("how", ["header", "query"])
def test_events_are_read_again_from_any_place(how):
    with live_server(sessions(), user="ann") as url:
        frames = parse_sse(run(url).text)
        for n in (0, 1, 2, len(frames) - 1):
            after = frames[n].id
            given: dict[str, Any] = (
                {"headers": {"Last-Event-ID": after}}
                if how == "header"
                else {"params": {"after": after}}
            )
            with httpx.stream("GET", f"{url}/sessions/s/events", **given) as events:
                if n == len(frames) - 1:
                    assert next(events.iter_lines()).startswith(":")
                    continue
                again = []
                for frame in frames_in(events.iter_lines()):
                    again.append(frame)
                    if frame.event == "run_finished":
                        break
            assert again == frames[n + 1 :]


@pytest.mark.parametrize(
    "after",
    ["garbage", "-1", "0-0", "²", "9" * 400, "x-" + "9" * 400, "a-١", "%00", "'", '"', "{", "a b"],
)
@pytest.mark.parametrize("how", ["header", "query"])
def test_a_place_that_is_unknown_gets_a_gap_and_then_what_is_there(after, how):
    with live_server(sessions(), user="ann") as url:
        frames = parse_sse(run(url).text)
        headers = {"Last-Event-ID": after.encode()} if how == "header" else {}
        params = {"after": after} if how == "query" else {}
        with httpx.stream(
            "GET", f"{url}/sessions/s/events", headers=headers, params=params
        ) as events:
            assert events.status_code == 200
            again = []
            for frame in frames_in(events.iter_lines()):
                again.append(frame)
                if frame.event == "run_finished":
                    break
        assert again[0].event == "gap"
        assert again[1:] == frames


def test_watching_as_json_lines():
    with live_server(sessions(), user="ann") as url:
        run(url)
        with httpx.stream(
            "GET", f"{url}/sessions/s/events?after=0", headers={"accept": "application/x-ndjson"}
        ) as events:
            kinds = []
            for line in events.iter_lines():
                if line:
                    kinds.append(json.loads(line)["event"]["kind"])
                    if kinds[-1] == "run_finished":
                        break
    assert kinds[0] == "run_started"


def test_a_failed_run_is_told_in_the_stream_and_the_connection_ends_well():
    served = Sessions(
        Brain(llm=PartsLLM("Well", LLMServerError("It is down, key sk-abcdefgh12345678")))
    )
    with live_server(served, user="ann") as url:
        frames = parse_sse(run(url).text)
    assert frames[-1].event == "run_failed"
    assert frames[-1].json["error"]["message"].startswith("It is down")
    assert "sk-abcdefgh" not in frames[-1].data


def test_a_failed_run_as_json_is_an_error():
    served = Sessions(Brain(llm=PartsLLM(LLMServerError("It is down, key sk-abcdefgh12345678"))))
    with live_server(served, user="ann") as url:
        answer = run(url, accept="application/json")
    assert answer.status_code == 502
    assert answer.json()["error"]["type"] == "model_error"
    assert "sk-abcdefgh" not in answer.text


def test_an_unknown_error_is_not_disclosed(caplog):
    served = Sessions(Brain(llm=PartsLLM(RuntimeError("/etc/passwd line 3"))))
    with live_server(served, user="ann") as url:
        answer = run(url, accept="application/json")
    assert answer.status_code == 500
    assert "passwd" not in answer.text
    assert "Traceback" not in answer.text


# Steering


def test_stop_cancel_and_send_need_a_run():
    with live_server(sessions(), user="ann") as url, httpx.Client(base_url=url) as client:
        for path, body in [("stop", None), ("cancel", None), ("messages", {"content": "x"})]:
            answer = client.post(f"/sessions/s/{path}", json=body)
            assert answer.status_code == 409
            assert answer.json()["error"]["type"] == "no_run"


def test_cancel_ends_a_run_that_another_client_streams():
    gate = RemoteGate()
    with live_server(sessions(gate), user="ann") as url:
        with httpx.stream("POST", f"{url}/sessions/s/runs", json={"task": "Hello"}) as answer:
            frames = frames_in(answer.iter_lines())
            gate.until_reached()
            assert httpx.post(f"{url}/sessions/s/cancel").status_code == 202
            last = [*frames][-1]
        assert last.event == "run_finished"
        assert last.json["stop_reason"] == "cancelled"


def test_a_message_reaches_the_run():
    gate = RemoteGate()

    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "done"

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            if all(message.role != "tool" for message in messages):
                yield Action(name="wait")
            else:
                yield " / ".join(m.content for m in messages if m.role == "user")

    with live_server(Sessions(Brain(llm=Calls(), tools=[wait])), user="ann") as url:
        httpx.post(f"{url}/sessions/s/runs", json={"task": "First", "detached": True})
        gate.until_reached()
        assert httpx.post(f"{url}/sessions/s/messages", json={"content": "More"}).status_code == 202
        view = httpx.get(f"{url}/sessions/s").json()
        assert view["status"] == "running"
        gate.open()
        with httpx.stream("GET", f"{url}/sessions/s/events?after=0") as events:
            for frame in frames_in(events.iter_lines()):
                if frame.event == "run_finished":
                    break
        said = [m["content"] for m in httpx.get(f"{url}/sessions/s").json()["messages"]]
    assert "First / More" in said


def test_a_run_that_waits_for_approval_is_resumed():
    paid = []

    @tool(requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    class Calls(PartsLLM):
        async def stream(self, messages, **_):
            if messages[-1].role == "tool":
                yield messages[-1].content
            else:
                yield Action(name="pay", args={"amount": 5}, id="call_1")

    served = Sessions(Brain(llm=Calls(), tools=[pay]))
    with live_server(served, user="ann") as url, httpx.Client(base_url=url) as client:
        body = run(url, accept="application/json").json()
        assert body["stop_reason"] == "approval"
        assert [call["id"] for call in body["pending"]["calls"]] == ["call_1"]
        assert client.get("/sessions/s").json()["pending"]["calls"][0]["name"] == "pay"
        assert client.get("/sessions/s").json()["status"] == "waiting"
        as_json = {"accept": "application/json"}
        again = client.post("/sessions/s/resume", json={"approve": ["call_1"]}, headers=as_json)
        assert again.json()["answer"] == "paid"
        assert paid == [5]
        for body in ({}, {"input": 5}):
            nothing = client.post("/sessions/other/resume", json=body, headers=as_json)
            assert nothing.status_code == 409
            assert nothing.json()["error"]["type"] == "nothing_to_resume"


@pytest.mark.parametrize("given", [5, True, ["Ann"], {"name": "Ann"}, {"": 5}, {}])
def test_data_as_an_answer_in_words_is_refused_and_the_run_still_waits(given: Any) -> None:
    asks = [Action(name="ask_user", args={"question": "Who?"}, id="ask_1")]
    served = Sessions(Brain(llm=ScriptedLLM([asks, "Hello."]), tools=[ask_user]))
    with live_server(served, user="ann") as url, httpx.Client(base_url=url) as client:
        assert run(url, accept="application/json").json()["stop_reason"] == "input"
        as_json = {"accept": "application/json"}
        refused = client.post("/sessions/s/resume", json={"input": given}, headers=as_json)
        assert refused.status_code == 400
        assert refused.json()["error"]["type"] == "invalid_request"
        assert "Who?" in refused.json()["error"]["message"]
        again = client.post("/sessions/s/resume", json={"input": "Ann"}, headers=as_json)
        assert again.json()["answer"] == "Hello."


def test_a_busy_session_refuses_where_asked():
    gate = RemoteGate()
    with live_server(sessions(gate), user="ann") as url:
        httpx.post(f"{url}/sessions/s/runs", json={"task": "First", "detached": True})
        gate.until_reached()
        for detached in (False, True):
            answer = run(url, when_busy="refuse", detached=detached)
            assert answer.status_code == 409
            assert answer.json()["error"]["type"] == "session_busy"
            assert answer.headers["retry-after"] == "1"
        gate.open()


# Slow clients


def stalled_client(url: str, request: str, body: str = "") -> RawClient:
    """A client that sends a request, reads the beginning of the answer, and then nothing more."""
    client = RawClient(url, buffer=4096)
    client.send(
        f"{request}\nHost: HOST\nContent-Type: application/json\nContent-Length: {len(body)}\n\n"
    )
    client.send(body)
    client.read_head()
    return client


@pytest.fixture
def uvicorn_logs(monkeypatch):
    """Let uvicorn's log reach the test; its own set-up keeps it from other handlers."""
    monkeypatch.setitem(uvicorn.config.LOGGING_CONFIG["loggers"]["uvicorn"], "propagate", True)
    yield
    logging.getLogger("uvicorn").propagate = False


def is_reset(client: RawClient) -> bool:
    """Whether the server has dropped the connection, as one that reads nothing can tell."""
    try:
        client.socket.send(b"x")
    except ConnectionError:
        return True
    return False


def test_the_run_of_a_client_that_takes_no_data_is_cancelled_after_the_stated_time(
    monkeypatch, caplog, uvicorn_logs
):
    """And the connection is dropped, with what could not be sent."""
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.5)
    served = sessions(*["x" * 100_000] * 200)
    with live_server(served, user="ann", limits=ServerLimits(stall=1.0)) as url:
        with stalled_client(url, "POST /sessions/s/runs HTTP/1.1", '{"task": "Hello"}') as client:
            eventually(lambda: served.active_runs == 1)
            eventually(lambda: served.active_runs == 0, within=5.0)
            eventually(lambda: is_reset(client), within=5.0)
            assert run(url, "other", accept="application/json").status_code == 200
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_watcher_that_takes_no_data_is_dropped_although_nothing_happens(monkeypatch):
    """The server notices when it sends the next sign of life."""
    monkeypatch.setattr(responses, "KEEPALIVE_SECONDS", 0.2)
    monkeypatch.setitem(responses.KEEPALIVE, "text/event-stream", b":" + b"." * 500_000 + b"\n\n")
    served = sessions()
    with live_server(served, user="ann", limits=ServerLimits(stall=1.0)) as url:
        run(url)
        with stalled_client(url, "GET /sessions/s/events?after=0 HTTP/1.1"):
            (session,) = served._pool.values()
            assert session.log.readers == 1
            eventually(lambda: session.log.readers == 0, within=20.0)


def test_a_quiet_stream_is_kept_alive(monkeypatch):
    monkeypatch.setattr(responses, "KEEPALIVE_SECONDS", 0.05)
    with live_server(sessions(), user="ann") as url:
        with httpx.stream("GET", f"{url}/sessions/s/events") as events:
            lines = events.iter_lines()
            assert [next(lines) for _ in range(6)] == [": keepalive", ""] * 3


def test_a_slow_watcher_gets_a_gap_and_then_the_newest():
    """The log holds about 4 MB; a reader that was away for more is told."""
    with live_server(sessions(*["x" * 100_000] * 100), user="ann") as url:
        after = httpx.post(
            f"{url}/sessions/s/runs", json={"task": "Hello", "detached": True}
        ).json()["after"]
        seen = []
        with httpx.stream("GET", f"{url}/sessions/s/events?after=0", timeout=60) as events:
            for frame in frames_in(events.iter_lines()):
                if frame.event == "run_finished":
                    break
        with httpx.stream("GET", f"{url}/sessions/s/events?after={after}", timeout=60) as events:
            for frame in frames_in(events.iter_lines()):
                seen.append(frame)
                if frame.event == "run_finished":
                    break
    numbers = [int(frame.id.partition("-")[2]) for frame in seen]
    assert seen[0].event == "gap"
    assert numbers == [*range(numbers[0], numbers[-1] + 1)]


def test_many_watchers_of_one_session_all_get_every_event():
    gate = RemoteGate()
    served = sessions(gate, *["word "] * 20)

    async def watch_all(url: str) -> list[str]:
        async with httpx.AsyncClient(
            base_url=url, timeout=60, limits=httpx.Limits(max_connections=None)
        ) as client:
            await client.post("/sessions/s/runs", json={"task": "Hello", "detached": True})
            texts: list[str] = []

            async def watch() -> None:
                async with client.stream("GET", "/sessions/s/events?after=0") as events:
                    got = []
                    async for line in events.aiter_lines():
                        if line.startswith("data: "):
                            event = json.loads(line[6:])
                            got.append(event.get("text", ""))
                            if event["kind"] == "run_finished":
                                texts.append("".join(got))
                                return

            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(watch)
                await anyio.to_thread.run_sync(
                    lambda: eventually(lambda: next(served._pool.values()).log.readers == 100)
                )
                gate.open()
            return texts

    with live_server(served, user="ann") as url:
        texts = anyio.run(watch_all, url)
    assert texts == ["word " * 20 + "You said: Hello"] * 100


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
def test_an_event_of_a_class_of_its_own_is_streamed_with_its_fields(accept):
    with live_server(Sessions(Brain(reading_net())), user="ann") as url:
        answer = run(url, accept=accept)
        schema = httpx.get(f"{url}/openapi.json").json()["components"]["schemas"]["Event"]
    if accept == "text/event-stream":
        [own] = [frame.json for frame in parse_sse(answer.text) if frame.event == "pages_read"]
    else:
        events = [json.loads(line)["event"] for line in answer.text.splitlines()]
        [own] = [event for event in events if event["kind"] == "pages_read"]
    assert own == {
        "kind": "pages_read", "run_id": own["run_id"], "step": 0, "state": "PAGES", "path": [],
        **FIELDS,
    }  # fmt: skip
    assert schema["anyOf"][-1]["title"] == "OtherEvent"


def test_the_list_of_sessions_comes_in_pages_and_titles_change():
    with live_server(sessions(), user="ann") as url, httpx.Client(base_url=url) as client:
        for n in range(5):
            run(url, f"s{n}", f"Question {n}")
        page = client.get("/sessions", params={"limit": 3}).json()
        assert [each["id"] for each in page["sessions"]] == ["s4", "s3", "s2"]
        rest = client.get("/sessions", params={"limit": 3, "after": page["next"]}).json()
        assert [each["id"] for each in rest["sessions"]] == ["s1", "s0"]
        assert rest["next"] is None
        renamed = client.patch("/sessions/s0", json={"title": "The first"})
        assert (renamed.status_code, renamed.json()["title"]) == (200, "The first")
        found = client.get("/sessions", params={"search": "FIRST"}).json()["sessions"]
        assert [each["title"] for each in found] == ["The first"]
        made = client.post("/sessions").json()["id"]  # it has had no run
        assert client.patch(f"/sessions/{made}", json={"title": "Plans"}).status_code == 200
        assert client.get("/sessions").json()["sessions"][0]["title"] == "Plans"
        assert client.patch("/sessions/none", json={"title": "x"}).status_code == 404
        for body in ({}, {"title": ""}, {"title": 1}, {"title": "x" * 1001}):
            assert client.patch("/sessions/s0", json=body).status_code == 422
        assert client.patch("/sessions/s0", json={"title": " "}).status_code == 400
        for limit in ("0", "201", "x"):
            assert client.get("/sessions", params={"limit": limit}).status_code == 422
