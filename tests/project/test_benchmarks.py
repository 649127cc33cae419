"""The benchmark measures this tree and an older commit with the same code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.project.repository import ROOT

pytestmark = pytest.mark.thorough


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_commit_is_measured_beside_the_working_tree() -> None:
    done = run("benchmarks", "message", "--quick", "--against", "HEAD")

    assert done.returncode == 0, done.stderr
    head, _, row = done.stdout.splitlines()
    assert "HEAD" in head
    assert row.count(" us ") == 2
    assert row.count("x ") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing"], "there is no row 'nothing'; rows are transition, "),
        (["message", "--against", "no-such-commit"], "git cannot read 'no-such-commit'"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: list[str], problem: str) -> None:
    done = run("benchmarks", *arguments)

    assert done.returncode != 0
    assert problem in done.stderr


@pytest.mark.thorough
def test_what_a_reader_meets_is_counted() -> None:
    done = run("scripts.count_calls")

    assert done.returncode == 0, done.stderr
    counted = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert int(counted["messages: changes of module"]) < int(counted["messages: calls"])
