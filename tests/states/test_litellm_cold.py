"""The first model call of a process, which imports litellm while other things run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.openai_server import OpenAIServer, Reply
from tests.support.ports import free_port

pytestmark = [pytest.mark.thorough, pytest.mark.asyncio]

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0


@pytest.mark.thorough  # the command is tried in tests/cli/test_serve.py
async def test_a_cold_server_answers_its_first_request_and_all_others(tmp_path: Path) -> None:
    with OpenAIServer([Reply("Hel", "lo")]) as model, server(model.url, tmp_path / "log") as url:
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            await until_up(client)
            asked = asyncio.create_task(client.get("/ask"))
            pings = 0
            while not asked.done():
                assert (await client.get("/ping")).text == "pong"
                pings += 1
            assert (await asked).text == "Hello"
            assert (await client.get("/ping")).text == "pong"
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert log.count('"GET /ping HTTP/1.1" 200') > pings > 1


@contextmanager
def server(model_url: str, log_file: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "tests.support.cold_server", str(port), model_url]
    with log_file.open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def until_up(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.get("/ping")
                return
            except httpx.TransportError:
                await asyncio.sleep(0.05)


SNAPSHOT = """
import asyncio, gc, logging, os, sys, threading, warnings
from agent_brain import LiteLLM

NAMES = ["", "asyncio", "backoff", "httpx", "uvicorn.access", "uvicorn.error"]

def snapshot():
    loggers = [logging.getLogger(name or None) for name in NAMES]
    return {
        "filters": [list(logger.filters) for logger in loggers],
        "handlers": [list(logger.handlers) for logger in loggers],
        "levels": [logger.level for logger in loggers],
        "methods": {name: value for name, value in vars(logging.Logger).items()},
        "path": list(sys.path),
        "hook": sys.excepthook,
        "garbage collection": gc.isenabled(),
        "environment": [os.environ.get(name) for name in ("JSON_LOGS", "TIKTOKEN_CACHE_DIR")],
        "for all": [f for f in warnings.filters if f[1] is not None and f[3] is None],
    }

logging.basicConfig(level=logging.INFO)
before = snapshot()
"""


LOADING = """
def load():
    asyncio.run(LiteLLM("openai/x").open())

threads = [threading.Thread(target=load) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
after = snapshot()
assert "litellm" in sys.modules
for name in before:
    assert before[name] == after[name], (name, before[name], after[name])
"""
CALL = """
from agent_brain.memories import Message

async def main():
    llm = LiteLLM("openai/x", api_base=sys.argv[1], api_key="some-secret-key", retries=0)
    await llm.open()
    before = set(sys.modules)
    async for piece in llm.stream([Message.user("hi")]):
        pass
    await llm.aclose()
    print(len(set(sys.modules) - before))

logging.getLogger().setLevel(logging.WARNING)  # httpx tells of each request
asyncio.run(main())
"""


async def test_loading_litellm_changes_nothing_and_the_first_call_imports_next_to_nothing(
    tmp_path: Path,
) -> None:
    environment = {"JSON_LOGS": None, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    with OpenAIServer([Reply("Hi")]) as model:
        done = await run_python(SNAPSHOT + LOADING + CALL, model.url, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < 100  # it imports 500 without open()


@pytest.mark.thorough
async def test_loading_litellm_changes_nothing_where_logs_are_json(tmp_path: Path) -> None:
    environment = {"JSON_LOGS": "true", "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    done = await run_python(SNAPSHOT + LOADING, **environment)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.thorough
async def test_a_program_that_imported_litellm_itself_keeps_what_it_did(tmp_path: Path) -> None:
    program = """
import litellm
before = snapshot()
assert logging.getLogger("uvicorn.access").filters
asyncio.run(LiteLLM("openai/x").open())
after = snapshot()
assert before == after
"""
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    done = await run_python(SNAPSHOT + program, **environment)
    assert (done.returncode, done.stderr) == (0, "")


async def run_python(
    program: str, *args: str, **environment: str | None
) -> subprocess.CompletedProcess[str]:
    merged = {**os.environ, **environment}
    known = {name: value for name, value in merged.items() if value is not None}
    command = [sys.executable, "-c", program, *args]
    return await asyncio.to_thread(
        subprocess.run,
        command,
        capture_output=True,
        text=True,
        env=known,
        timeout=PATIENCE,
        check=False,
    )
