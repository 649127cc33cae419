"""MCP servers that others wrote, installed once into pytest's cache folder."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

PYTHON_PACKAGES = ("mcp-server-time", "mcp-server-git", "fastmcp")
PYTHON = f"python-{len(PYTHON_PACKAGES)}"  # there when these are installed
NODE_PACKAGES = tuple(
    f"@modelcontextprotocol/server-{name}" for name in ("everything", "filesystem", "memory")
)
INSTALL_SECONDS = 280  # an idle machine takes 25; two processes may try, within the limit of a test


def install(folder: Path) -> Path:
    """The folder that holds their commands, in ``venv/bin`` and ``node_modules/.bin``.

    A part that cannot be installed, for want of a network or of npm, is just not there.
    """
    with (folder / "lock").open("w") as lock:  # of the processes that run the tests, one installs
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install_what_is_missing(folder)
    return folder


def _install_what_is_missing(folder: Path) -> None:
    steps: list[list[list[str]]] = []
    if not (folder / PYTHON).exists():
        venv = str(folder / "venv")
        packages = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        steps.append(
            [
                [sys.executable, "-m", "venv", venv],
                [f"{venv}/bin/python", *packages, *PYTHON_PACKAGES],
                ["touch", str(folder / PYTHON)],
            ]
        )
    if not (folder / "node").exists():
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        steps.append(
            [
                ["npm", "install", "--prefix", str(folder), *quiet, *NODE_PACKAGES],
                ["touch", str(folder / "node")],
            ]
        )
    deadline = time.monotonic() + INSTALL_SECONDS
    running = [_start(commands) for commands in steps]
    for process in running:
        try:
            process.communicate(timeout=max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _start(commands: list[list[str]]) -> subprocess.Popen[bytes]:
    """One command after the other, as long as they succeed."""
    program = (
        "import json, subprocess, sys\n"
        "for command in json.loads(sys.argv[1]):\n"
        "    subprocess.run(command, check=True)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(commands)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def command(folder: Path, name: str) -> str:
    """The path of a server's command; skips the test if it could not be installed."""
    is_python = name in PYTHON_PACKAGES
    path = folder / ("venv/bin" if is_python else "node_modules/.bin") / name
    if not path.exists() or not (folder / (PYTHON if is_python else "node")).exists():
        pytest.skip(f"{name} could not be installed: it needs pip, npm and a package index")
    return str(path)
