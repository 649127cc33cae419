"""Start an example, wait for a text, and press Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.project.repository import ROOT


def wait_until_it_waits(process: int) -> None:
    """Wait until a process does nothing, where the system tells."""
    status = Path(f"/proc/{process}/stat")
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] == "R":
        time.sleep(0)


def interrupt(
    name: str,
    folder: Path,
    *arguments: str,
    at: str,
    typed: str = "",
    before: Callable[[str], None] = lambda said: None,
) -> tuple[int, str]:
    """Send Ctrl-C to an example once it has printed ``at``; return its code and all that it wrote.

    ``before`` is called first, with what it has written so far.
    """
    environment = {k: v for k, v in os.environ.items() if k != "AGENT_BRAIN_MODEL"}
    with subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        cwd=folder, env={**environment, "PYTHONUNBUFFERED": "1"}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as program:  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        try:
            program.stdin.write(typed)
            program.stdin.flush()
            said = ""
            while at not in said:
                piece = program.stdout.read(1)
                assert piece, said
                said += piece
            before(said)
            wait_until_it_waits(program.pid)
            for _ in range(10):  # a signal between the prompt and the read is noticed with the next
                program.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    return program.wait(20), said + program.stdout.read()  # stdin is still open
            raise AssertionError(f"Ctrl-C does not end {name}, which said {said}")
        finally:
            program.kill()
