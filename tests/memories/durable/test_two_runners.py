"""Two processes resume one session: one continues, the other is told, none of them fails."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

RUNNER = Path(__file__).with_name("runner.py")
ROOT = RUNNER.parents[3]


class Runner:
    """A process that runs the session."""

    def __init__(self, journal: tuple[str, str], folder: Path, wait: float = 0) -> None:
        command = [sys.executable, str(RUNNER), *journal, str(folder), str(wait)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)

    def says(self) -> str:
        """Its next line; empty if it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def runner(journal: tuple[str, str], folder: Path, wait: float = 0) -> Iterator[Runner]:
    started = Runner(journal, folder, wait)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        assert started.process.stdout is not None
        started.process.stdout.close()


def test_the_second_runner_is_told_and_the_first_continues(
    journal: tuple[str, str], tmp_path: Path
) -> None:
    with runner(journal, tmp_path) as first:
        assert [first.says(), first.says()] == ["opened", "begun"]
        with runner(journal, tmp_path) as second:
            assert second.says() == "opened"
            assert second.says() == f"held: process {first.process.pid} on {socket.gethostname()}"
        (tmp_path / "go").touch()
        assert first.says() == "answer: done"


def test_a_runner_that_waits_gets_the_session_when_the_first_has_ended(
    journal: tuple[str, str], tmp_path: Path
) -> None:
    with runner(journal, tmp_path) as first:
        assert [first.says(), first.says()] == ["opened", "begun"]
        with runner(journal, tmp_path, wait=60) as second:
            assert second.says() == "opened"
            (tmp_path / "go").touch()
            assert first.says() == "answer: done"
            assert second.says() == "answer: done"
    assert (tmp_path / "begun.txt").read_text() == "begun\n"


def test_the_session_of_a_killed_process_is_taken_over_at_once(
    journal: tuple[str, str], tmp_path: Path
) -> None:
    with runner(journal, tmp_path) as first:
        assert [first.says(), first.says()] == ["opened", "begun"]
        first.process.kill()
        first.process.wait()
        (tmp_path / "go").touch()
        with runner(journal, tmp_path) as second:
            assert [second.says(), second.says()] == ["opened", "begun"]
            assert second.says() == "answer: done"
