"""Programs for Node.js and packages of npm, for tests with clients that others wrote.

folder = npm_packages("@ag-ui/client@1.0.0")
lines = run_node(script, folder, "http://127.0.0.1:8000")

with NodeProgram(script, folder) as program:  # starts once, which takes most of the time
    lines = program.ask({"url": "http://127.0.0.1:8000"})
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import pytest

BUILD = Path(__file__).parents[2] / "build" / "node"


def npm_packages(*packages: str) -> Path:
    """Return a folder with these npm packages, installed once and then reused.

    Skips the test if Node.js or npm is missing, or if a package cannot be installed.

    Args:
        packages: Names with versions, such as ``"ai@7.0.0"``.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs Node.js and npm")
    wanted = sorted(packages)
    folder = BUILD / hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:16]
    if not folder.exists():
        _install(wanted, folder)
    return folder


def _install(packages: list[str], folder: Path) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="installing-") as name:
        made = Path(name) / "made"
        made.mkdir()
        (made / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install {' '.join(packages)}: {done.stderr.strip()[-500:]}")
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise


def run_node(script: Path, packages: Path, *arguments: str) -> list[Any]:
    """Run a module of Node.js and return the JSON values that it prints, one a line.

    Args:
        script: The ``.mjs`` file. It imports packages by name.
        packages: The folder of :func:`npm_packages`.
        arguments: Passed to the program.
    """
    done = subprocess.run(
        ["node", str(_beside(script, packages)), *arguments],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")  # splitlines() would also end one at U+2028 within a text
    return [json.loads(line) for line in lines if line]


class NodeProgram:
    """A module of Node.js that answers requests until its stdin ends; a context manager.

    It reads a JSON value from each line, and prints JSON values, one a line, and an empty line.

    Args:
        script: The ``.mjs`` file. It imports packages by name.
        packages: The folder of :func:`npm_packages`.
    """

    def __init__(self, script: Path, packages: Path) -> None:
        self._process = subprocess.Popen(
            ["node", str(_beside(script, packages))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, request: Any) -> list[Any]:
        """Return the JSON values that it prints about a request."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answers: list[Any] = []
        for line in process.stdout:
            if not line.strip():
                return answers
            answers.append(json.loads(line))
        raise AssertionError(f"the program has ended: {process.wait()}")


def _beside(script: Path, packages: Path) -> Path:
    """A copy of the script where Node.js looks for packages."""
    name = f"{hashlib.sha256(script.read_bytes()).hexdigest()[:16]}.mjs"
    program = packages / name
    if not program.exists():
        copy = packages / f"{name}.{os.getpid()}"
        shutil.copyfile(script, copy)
        copy.rename(program)
    return program
