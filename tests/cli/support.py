"""The command as a user runs it: as a process, in a terminal, or in this process."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from click.testing import CliRunner, Result

from agent_brain.cli.app import app
from tests.support.forked import forked

PATIENCE = 180.0  # seconds that a test waits for something before it fails
PYTHON = (sys.executable, "-W", "error")
COMMAND = (*PYTHON, "-m", "agent_brain")

IMPORTED = ("agent_brain.cli.session", "agent_brain.cli.serve", "anyio._backends._asyncio")


def python(env: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what starts the command fast, unless the environment is about Python itself."""
    if any(name.startswith("PYTHON") for name in env):
        return PYTHON
    return forked(*IMPORTED, options=PYTHON[1:])


def environment(**changes: str) -> dict[str, str]:
    """The environment of a newcomer: no model, no keys, nothing said about colours."""
    left_out = ("AGENT_BRAIN", "OPENAI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "PYTHON")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    return {**kept, "TERM": "xterm-256color", **changes}


def invoke(*args: str, stdin: str | bytes = "", env: Mapping[str, str] | None = None) -> Result:
    """Run the command in this process; stdout is not a terminal."""
    runner = CliRunner()
    result = runner.invoke(app, args, input=stdin, env=dict(env or {}), prog_name="agent-brain")
    print(result.output)  # pytest shows it if the test fails
    return result


def run(
    *args: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*python(env or ()), "-m", "agent_brain", *args],
        input=data,
        capture_output=True,
        cwd=cwd,
        env=environment(**(env or {})),
        timeout=PATIENCE,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def json_lines(text: str) -> list[dict[str, Any]]:
    """The events that ``--json`` wrote."""
    return [json.loads(line) for line in text.splitlines()]


class Process:
    """The command under way, with pipes; it can be awaited until it has written something.

    Use it as a context manager: it is killed at the end if it has not left.
    """

    def __init__(self, *args: str, stdin: bool = False) -> None:
        start = PYTHON if stdin else python()  # a signal is to come before the end of stdin
        self._process = subprocess.Popen(
            [*start, "-m", "agent_brain", *args],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def interrupt_after(self, line: str) -> tuple[int, str, str]:
        """Send SIGINT once ``line`` is on stderr; returns the exit code and what was written."""
        return self.signal_after(line, signal.SIGINT)

    def signal_after(self, line: str, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal once ``line`` is on stderr; returns the exit code and what was written."""
        assert self._process.stderr is not None
        seen = []
        for raw in self._process.stderr:
            seen.append(raw.decode())
            if line in seen[-1]:
                break
        self._process.send_signal(number)
        out, err = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, out.decode(), "".join(seen) + err.decode()


class Terminal:
    """The command in a terminal of its own. Use it as a context manager.

    Attributes:
        seen: All that was written so far, line ends as ``\\n``.
    """

    def __init__(self, *args: str, env: Mapping[str, str] | None = None) -> None:
        self.seen = ""
        self._read_to = 0
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [*python(env or ()), str(Path(__file__).with_name("in_terminal.py")), *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(**(env or {})),
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def expect(self, text: str) -> str:
        """Wait until ``text`` is written; returns what came since the last time, up to its end."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.seen.find(text, self._read_to)) < 0:
            assert self._read(deadline), f"never came: {text!r}, but:\n{self.seen}"
        start, self._read_to = self._read_to, found + len(text)
        return self.seen[start : self._read_to]

    def type(self, keys: str) -> None:
        """Press keys; ``\\x03`` is Ctrl-C, ``\\x04`` Ctrl-D."""
        os.write(self._master, keys.encode())

    def tell(self, number: signal.Signals) -> None:
        """Send a signal and go on."""
        self._process.send_signal(number)

    def finish(self) -> int:
        """Wait until the command has left; returns its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self._process.wait(PATIENCE)

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self.seen += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


def without_styles(text: str) -> str:
    """``text`` without the escape sequences that colour it."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def in_order(text: str, parts: Iterable[str]) -> bool:
    """Whether all ``parts`` are in ``text``, one after the other."""
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True
