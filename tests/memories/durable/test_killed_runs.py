"""Runs that are killed at random moments; see killed_runs.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.thorough import THOROUGH

pytestmark = pytest.mark.thorough

PROGRAM = Path(__file__).with_name("killed_runs.py")
USUAL = "9" if THOROUGH else "3"
KILLS = os.environ.get("AGENT_BRAIN_TEST_KILLS", USUAL)  # hundreds are for a person who waits


def test_a_run_that_is_killed_at_any_moment_is_whole_in_the_end(
    journal: tuple[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *journal, str(tmp_path), KILLS],
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parents[3])},
        capture_output=True,
        text=True,
        timeout=150 + 5 * int(KILLS),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "all whole" in done.stdout
