"""Several processes of uvicorn over one journal, without sticky sessions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving.web.support import eventually, frames_in
from tests.support.ports import free_port

PROGRAM = """
import os, pathlib, anyio
from agent_brain import Action, Brain, tool
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app
from agent_brain.states import LLM, Finish

@tool
async def look() -> str:
    "Look, until the file is there."
    while not pathlib.Path("seen").exists():
        await anyio.sleep(0.02)
    return "It was green"

class Looking(LLM):
    async def stream(self, messages, **_):
        if messages[-1].role == "tool":
            yield messages[-1].content
            yield Finish("stop", metadata={"citations": [{"url": "https://e.org/a"}]})
        else:
            yield "Let me look."
            yield Action(name="look", id="look-1")

sessions = Sessions(Brain(tools=[look], llm=Looking()), journal="chats.db")
inner = make_app(sessions, user="ann", show_tools=True)

async def app(scope, receive, send):
    async def named(message):
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"x-process", b"%d" % os.getpid())]
        await send(message)

    await inner(scope, receive, named)
"""


@pytest.fixture
def workers(tmp_path) -> Iterator[str]:
    """The URL of two processes."""
    (tmp_path / "program.py").write_text(PROGRAM)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "program:app", "--workers", "2", "--http", "h11"]
    command += ["--timeout-worker-healthcheck", "120"]  # it kills those that start slowly
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        ) as process,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            eventually(lambda: len({get(url, "/healthz")[0] for _ in range(8)} - {""}) == 2)
            yield url
        finally:
            (tmp_path / "seen").touch()
            process.send_signal(signal.SIGTERM)


def get(url: str, path: str) -> tuple[str, Any]:
    """Ask on a new connection; return the process that has answered, and what."""
    try:
        answer = httpx.get(f"{url}{path}", timeout=30)
    except httpx.TransportError:  # they start
        return "", None
    return answer.headers["x-process"], answer.json()


def test_each_process_shows_and_follows_the_run_of_another(workers: str, tmp_path: Path) -> None:
    body = {"task": "Which colour?", "detached": True}
    started = httpx.post(f"{workers}/sessions/s/runs", json=body, timeout=30)
    own = started.headers["x-process"]
    assert started.status_code == 202

    shown: dict[str, str] = {}
    while len(shown) < 2:
        process, session = get(workers, "/sessions/s")
        shown[process] = session["status"]
    assert set(shown.values()) == {"running"}

    refused = own
    while refused == own:  # until the other process is asked
        answer = httpx.post(f"{workers}/sessions/s/messages", json={"content": "Hurry"}, timeout=30)
        refused = answer.headers["x-process"]
    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "run_elsewhere")
    busy = own
    while busy == own:
        answer = httpx.post(
            f"{workers}/sessions/s/runs", json=body | {"when_busy": "refuse"}, timeout=30
        )
        busy = answer.headers["x-process"]
    assert (answer.status_code, answer.json()["error"]["type"]) == (409, "session_busy")

    while True:
        with httpx.stream("GET", f"{workers}/sessions/s/events", timeout=60) as events:
            if events.headers["x-process"] == own:
                continue
            frames = frames_in(events.iter_lines())
            (tmp_path / "seen").touch()
            assert next(frames).event == "gap"
            break
    for process in shown:
        eventually(partial(ends, workers, process))


def ends(url: str, process: str) -> bool:
    asked, session = get(url, "/sessions/s")
    return (
        asked == process
        and session["status"] == "idle"
        and session["messages"][-1]["content"] == "It was green"
    )


@pytest.mark.thorough
def test_each_process_streams_the_run_of_another_to_the_ai_sdk(
    workers: str, tmp_path: Path
) -> None:
    asked = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Which colour?"}]}
    body = {"id": "chat", "messages": [asked], "trigger": "submit-message"}
    with httpx.stream("POST", f"{workers}/ai-sdk/chat", json=body, timeout=60) as first:
        own, started = first.headers["x-process"], next(parts_in(first.iter_lines()))
        other = own
        while other == own:  # until the other process is asked
            with httpx.stream("GET", f"{workers}/ai-sdk/chat/chat/stream", timeout=60) as stream:
                other = stream.headers["x-process"]
                if other != own:
                    parts = parts_in(stream.iter_lines())
                    seen = [next(parts) for _ in range(7)]
                    (tmp_path / "seen").touch()
                    seen += parts

    assert seen[0] == started
    assert [part["type"] for part in seen] == [
        *("start", "start-step", "text-start", "text-delta", "text-end"),
        *("tool-input-start", "tool-input-available", "tool-output-available", "finish-step"),
        *("start-step", "text-start", "text-delta", "source-url", "text-end", "finish-step"),
        "finish",
    ]
    assert [part["delta"] for part in seen if "delta" in part] == ["Let me look.", "It was green"]
    assert seen[7]["output"] == "It was green"
    assert seen[-1]["messageMetadata"]["stopReason"] == "done"
    assert httpx.get(f"{workers}/ai-sdk/chat/chat/stream").status_code == 204


def parts_in(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The parts of a stream of the AI SDK."""
    for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))
