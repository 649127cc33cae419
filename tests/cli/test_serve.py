"""``agent-brain serve`` as a process: its address, its users, and how it ends."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.cli.support import PATIENCE, PYTHON, environment, invoke, python, run
from tests.support.openai_server import OpenAIServer, Reply, Stall, tool_calls

JSON = {"accept": "application/json"}


class Served:
    """The process of a server.

    Attributes:
        url: Its address.
    """

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.url = url
        self._process = process

    def end(self, *signals: signal.Signals) -> tuple[int, str]:
        """Send signals; return the exit code and what it wrote."""
        for each in signals:
            self._process.send_signal(each)
        _, err = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, err

    def tell(self, which: signal.Signals) -> None:
        """Send a signal and go on."""
        self._process.send_signal(which)


@contextmanager
def serve(
    *args: str,
    model: OpenAIServer | None = None,
    litellm: bool = False,
    program: str | None = None,
    **variables: str,
) -> Iterator[Served]:
    """Serve, with ``model`` by way of litellm or, as that takes seconds to load, without it.

    ``program`` is one that serves, in place of the command.
    """
    env = environment(**variables)
    if model is not None:
        env |= {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-very-secret-key-0123456789"}
        args = (*(("--model", "openai/x") if litellm else ("tests.cli.plain_model:net",)), *args)
    command = [*python(env), "-m", "agent_brain", "serve", "--http", "127.0.0.1:0", *args]
    process = subprocess.Popen(
        command if program is None else [*PYTHON, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    try:
        assert process.stderr is not None
        seen = []
        for line in process.stderr:
            seen.append(line)
            if found := re.search(r"(?:Serving|Uvicorn running on) (http\S+)", line):
                break
        else:
            raise AssertionError("".join(seen))
        yield Served(process, found[1])
    finally:
        process.kill()
        process.communicate()


def wait_until_closed(url: str) -> None:
    """Wait until the server takes no more connections."""
    with pytest.raises(httpx.TransportError):  # noqa: PT012
        for _ in itertools.repeat(None):
            assert httpx.get(f"{url}/readyz").status_code in (200, 503)


def test_it_answers_and_ends_at_sigterm_with_0():
    with serve() as server:
        answer = httpx.post(
            f"{server.url}/sessions/one/runs", json={"task": "What is 17 times 23?"}, headers=JSON
        )
        assert "391" in answer.json()["answer"]
        assert "Traceback" not in httpx.get(server.url).text
        code, err = server.end(signal.SIGTERM)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_quickly_although_somebody_watches(which):
    with serve() as server, httpx.Client(base_url=server.url) as client:
        with client.stream("GET", "/sessions/one/events") as events:
            lines = events.iter_lines()
            next(lines)
            began = time.monotonic()
            server.tell(which)
            assert [line for line in lines if line] == []  # it ends in order
        code, err = server.end()
    assert time.monotonic() - began < 60
    assert (code, err) == (0, "")


@pytest.mark.thorough
def test_runs_end_softly_and_are_resumed_by_the_next_server(tmp_path, tools_file):
    call = tool_calls(("c1", "add", '{"a": 1, "b": 2}'))
    script = [Reply(*call, Stall()), Reply("It is 3.")]
    with OpenAIServer(script) as model:
        options = ("-t", f"{tools_file}:add", "--folder", str(tmp_path / "store"))
        running = serve(*options, model=model, litellm=True)
        with running as server, httpx.Client(base_url=server.url) as client:
            client.post("/sessions/one/runs", json={"task": "1 + 2?", "detached": True})
            with client.stream("GET", "/sessions/one/events?after=0", timeout=PATIENCE) as events:
                lines = events.iter_lines()
                next(line for line in lines if line == "event: response_started")
                server.tell(signal.SIGTERM)
                wait_until_closed(server.url)
                model.release()
                data = [line[6:] for line in lines if line.startswith("data: ")]
            code, err = server.end()
        assert (code, err) == (0, "")
        assert json.loads(data[-1])["stop_reason"] == "stopped"
        again = serve(*options, model=model, litellm=True)
        with again as server, httpx.Client(base_url=server.url) as client:
            assert [s["id"] for s in client.get("/sessions").json()["sessions"]] == ["one"]
            answer = client.post("/sessions/one/resume", headers=JSON, timeout=PATIENCE)
            assert answer.json()["answer"] == "It is 3."
            assert server.end(signal.SIGTERM) == (0, "")


def test_it_learns_about_its_user_when_it_ends_and_the_command_shows_it(tmp_path):
    quote = {"text": "Lives in Porto", "message": "m1", "quote": "I live in Porto"}
    place = ("--folder", str(tmp_path / "store"))
    replies = [Reply("Nice."), Reply(json.dumps({"facts": [quote]}))]
    with (
        OpenAIServer(replies) as model,
        serve("--learn", *place, model=model) as server,
    ):
        said = {"task": "I live in Porto."}
        answer = httpx.post(f"{server.url}/sessions/one/runs", json=said, headers=JSON)
        assert answer.json()["answer"] == "Nice."
        assert server.end(signal.SIGTERM) == (0, "")
    shown = invoke("user", "list", *place, "--tenant", "local", "--json").stdout
    assert json.loads(shown)["text"] == "Lives in Porto"


def test_learning_needs_a_folder_and_a_model(tmp_path):
    for args, told in (
        (("--model", "openai/x"), "--folder"),
        (("--folder", str(tmp_path)), "--model"),
        (("--queue", "app:queue"), "--queue"),
    ):
        done = invoke("serve", "--learn", *args)
        assert (done.exit_code, told in done.stderr) == (2, True)


def test_a_killed_server_loses_no_finished_step(tmp_path, tools_file):
    call = tool_calls(("c1", "add", '{"a": 1, "b": 2}'))
    with OpenAIServer([Reply(*call), Reply("Well", Stall()), Reply("It is 3.")]) as model:
        options = ("-t", f"{tools_file}:add", "--folder", str(tmp_path / "store"))
        with serve(*options, model=model) as server, httpx.Client(base_url=server.url) as client:
            client.post("/sessions/one/runs", json={"task": "1 + 2?", "detached": True})
            with client.stream("GET", "/sessions/one/events?after=0", timeout=PATIENCE) as events:
                next(line for line in events.iter_lines() if "text_delta" in line)
            server.end(signal.SIGKILL)
        with serve(*options, model=model) as server, httpx.Client(base_url=server.url) as client:
            assert client.get("/sessions/one").json()["status"] == "interrupted"
            answer = client.post("/sessions/one/resume", headers=JSON, timeout=PATIENCE)
            assert answer.json()["answer"] == "It is 3."


@pytest.mark.thorough
def test_a_cold_server_answers_fifty_requests_at_once():
    """The first of them import the library of the models."""
    with OpenAIServer(itertools.repeat(Reply("Hel", "lo"))) as model:
        with serve(model=model, litellm=True) as server:
            barrier = threading.Barrier(50)

            def ask(number: int) -> Any:
                with httpx.Client(base_url=server.url, timeout=120) as client:
                    barrier.wait()
                    return client.post(
                        f"/sessions/{number}/runs", json={"task": "Hello"}, headers=JSON
                    ).json()

            with ThreadPoolExecutor(50) as threads:
                answers = [*threads.map(ask, range(50))]
            assert [answer.get("answer", answer) for answer in answers] == ["Hello"] * 50
            assert server.end(signal.SIGTERM) == (0, "")
        assert len(model.requests) == 50


@pytest.mark.parametrize(
    "option,value,told",
    [
        ("--host", "https://chat.example.org", "a name or an address alone, as chat.example.org"),
        ("--host", "chat.example.org/page", "alone"),
        ("--host", "*.example.org", "alone"),
        ("--host", "::1", "[2001:db8::1]"),
        ("--host", "", "alone"),
        ("--trust-proxy", "localhost", "an address or a network, as 127.0.0.1 or 10.0.0.0/8"),
        ("--trust-proxy", "10.0.0.1/8", "has host bits set"),
        ("--trust-proxy", "127.0.0.1:80", "an address or a network"),
    ],
)
def test_names_and_addresses_that_no_request_can_have_are_refused(option, value, told):
    done = invoke("serve", "--http", "127.0.0.1:0", option, value)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert repr(value) in done.stderr


def test_other_computers_need_a_token():
    done = invoke("serve", "--http", "0.0.0.0:0")
    assert done.exit_code == 2
    assert "give --token or --users" in done.stderr


def test_the_token_of_the_environment_is_needed():
    with serve(AGENT_BRAIN_TOKEN="very-secret") as server:
        assert httpx.get(f"{server.url}/sessions").status_code == 401
        headers = {"authorization": "Bearer very-secret"}
        assert httpx.get(f"{server.url}/sessions", headers=headers).status_code == 200


def test_without_a_token_only_the_names_of_this_computer_are_answered():
    with serve() as server:
        assert (
            httpx.get(f"{server.url}/sessions", headers={"host": "evil.example"}).status_code == 421
        )
        assert httpx.get(f"{server.url}/sessions", headers={"origin": "null"}).status_code == 403


def test_users_have_sessions_of_their_own(tmp_path):
    users = tmp_path / "users.json"
    users.write_text(json.dumps({"a-token": "ann", "b-token": "bob"}))
    with serve("--users", str(users)) as server:
        for token, count in [("a-token", 1), ("b-token", 0)]:
            with httpx.Client(base_url=server.url) as client:
                client.headers["authorization"] = f"Bearer {token}"
                if token == "a-token":
                    client.post("/sessions/one/runs", json={"task": "Hello"}, headers=JSON)
                assert len(client.get("/sessions").json()["sessions"]) == count


@pytest.mark.parametrize(
    "content,problem",
    [
        ("", "is not JSON"),
        ("[]", "give an object"),
        ("{}", "give an object"),
        ('{"t": 5}', "give an object"),
        ('{"t": ""}', "give an object"),
        ('{"": "ann"}', "printable ASCII"),
        (None, "cannot be read"),
    ],
)
def test_a_file_of_users_that_is_wrong_is_explained(tmp_path, content, problem):
    path = tmp_path / "users.json"
    if content is not None:
        path.write_text(content)
    done = invoke("serve", "--users", str(path))
    assert done.exit_code == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_explained():
    with serve() as server:
        done = run("serve", "--http", server.url.removeprefix("http://"))
    assert done.returncode == 2
    assert "the port is taken" in done.stderr
    assert "Traceback" not in done.stderr


def test_limits_of_the_command_line_apply():
    with serve("--rate", "3", "--max-body", "50") as server:
        big = httpx.post(f"{server.url}/sessions/s/runs", json={"task": "x" * 100})
        assert big.status_code == 413
        statuses = [httpx.get(f"{server.url}/sessions").status_code for _ in range(4)]
        assert statuses == [200, 200, 429, 429]


PATIENT = """
import runpy, sys
from agent_brain.serving.web import server
server.serve_http.__kwdefaults__["shutdown_timeout"] = 3600.0  # that runs have after the first
sys.argv = "agent-brain serve --http 127.0.0.1:0 tests.cli.plain_model:net".split()
runpy.run_module("agent_brain", run_name="__main__")
"""


def test_a_second_ctrl_c_does_not_wait_for_runs():
    with OpenAIServer([Reply("x", Stall())]) as model:
        with serve(model=model, program=PATIENT) as server:
            with httpx.stream("POST", f"{server.url}/sessions/one/runs", json={"task": "x"}) as run:
                lines = run.iter_lines()
                next(line for line in lines if "text_delta" in line)
                server.tell(signal.SIGINT)
                wait_until_closed(server.url)
                server.tell(signal.SIGINT)
                assert "cancelled" in "".join(lines)
            assert server.end() == (0, "")
        model.release()
