"""The MCP examples: an agent that serves, and one that uses what it serves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_client_speaks_to_a_server_over_http(
    environment: dict[str, str], tmp_path: Path
) -> None:
    server = subprocess.Popen(
        [sys.executable, SERVER, "0"], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        url = server.stdout.readline().rpartition(" ")[2].strip()
        check(
            subprocess.run(
                [sys.executable, CLIENT, QUESTION, url], cwd=tmp_path, env=environment,
                text=True, capture_output=True, timeout=120, check=False,
            )
        )  # fmt: skip
    finally:
        server.terminate()
        server.communicate(timeout=60)
