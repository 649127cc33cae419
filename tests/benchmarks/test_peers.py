"""The comparison with other libraries, as far as it needs none of them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.http.__main__ import BURSTS, Load, measure
from benchmarks.peers.__main__ import table
from benchmarks.peers.measure import ROWS
from tests.project.repository import ROOT

pytestmark = pytest.mark.thorough


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("program", ["ours", "floor"])
@pytest.mark.parametrize("row", ["react10", "first", "hops"])
def test_a_row_is_measured_in_a_process_of_its_own(program: str, row: str) -> None:
    done = run("benchmarks.peers.measure", program, row)

    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)) == [row]
    assert json.loads(done.stdout)[row] > 0


def test_a_row_that_does_not_exist_is_refused_with_those_that_do() -> None:
    done = run("benchmarks.peers", "nothing")

    assert done.returncode == 2
    assert all(row in done.stderr for row in ROWS)


def test_the_best_peer_is_set_beside_ours() -> None:
    rows = [*table({"hand": {"hops": 1.0}, "ours": {"hops": 2.0}, "a": {"hops": 30.0}, "b": {}})]

    assert rows[2:] == ["| transition | us | 1 | 2 | 30 | – | 15x | 2x |"]


def test_servers_are_measured_with_clients_in_another_process() -> None:
    load = Load(3, 2, 4, 0.0)
    assert load not in BURSTS.values()
    found = measure(["bare", "ours", "ours-openai"], [load], rounds=1)[load]

    assert set(found) == {"bare", "ours", "ours-openai"}
    assert all(figures["cpu_us_per_request"] > 0 for figures in found.values())
