"""The MCP examples: an agent that serves, and one that uses what it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.examples.ending import interrupt
from tests.project.repository import ROOT

SERVER, CLIENT = (str(ROOT / "examples" / name) for name in ("mcp_server.py", "mcp_client.py"))
QUESTION = "Ask for the opening hours on Sunday"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.delenv("AGENT_BRAIN_MODEL", raising=False)
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert "Tools: ask\n" in done.stdout
    assert done.stdout.rstrip().endswith("closed.")


def test_the_client_starts_the_server_and_uses_its_tool(
    environment: dict[str, str], tmp_path: Path
) -> None:
    check(
        subprocess.run(
            [sys.executable, CLIENT], cwd=tmp_path, env=environment, text=True,
            capture_output=True, timeout=120, check=False,
        )
    )  # fmt: skip


@pytest.mark.thorough
def test_the_client_speaks_to_a_server_over_http(
    environment: dict[str, str], tmp_path: Path
) -> None:
    server = subprocess.Popen(
        [sys.executable, SERVER, "0"], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[2].rstrip(";")
        check(
            subprocess.run(
                [sys.executable, CLIENT, QUESTION, url], cwd=tmp_path, env=environment,
                text=True, capture_output=True, timeout=120, check=False,
            )
        )  # fmt: skip
    finally:
        server.terminate()
        server.communicate(timeout=60)


def answers(said: str) -> None:
    """Wait for the first response, before which uvicorn is still starting."""
    httpx.get(said.split()[2].rstrip(";"), timeout=60)


def test_ctrl_c_ends_the_server(tmp_path: Path) -> None:
    code, said = interrupt("mcp_server.py", tmp_path, "0", at="it\n", before=answers)
    assert (code, "Traceback" in said) == (0, False), said


@pytest.mark.thorough
@pytest.mark.parametrize("port", ["abc", "99999"])
def test_a_wrong_port_is_named(environment: dict[str, str], tmp_path: Path, port: str) -> None:
    done = subprocess.run(
        [sys.executable, SERVER, port], cwd=tmp_path, env=environment, text=True,
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert port in done.stderr
    assert "Traceback" not in done.stderr
