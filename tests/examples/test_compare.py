"""The examples of experiments, run by the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_brain.experiments import load_report
from tests.cli.support import invoke
from tests.project.repository import ROOT

EXAMPLE = ROOT / "examples" / "compare.toml"


def test_only_the_window_has_forgotten(tmp_path: Path) -> None:
    done = invoke("compare", str(EXAMPLE), "--folder", str(tmp_path / "kept"), "--json")

    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert {cell["memory"]: cell["passed"] for cell in found["cells"]} == {
        "all": 8,
        "short": 0,
        "vector": 8,
    }
    assert [one["significant"] for one in found["comparisons"]] == [True, False]
    assert (tmp_path / "kept" / "report.html").is_file()


@pytest.mark.thorough
def test_a_memory_of_the_user_knows_what_changed_and_forgets(tmp_path: Path) -> None:
    fewer = (ROOT / "examples" / "user_memory.toml").read_text("utf-8").replace("n = 50", "n = 5")
    (tmp_path / "user_memory.toml").write_text(fewer)

    done = invoke("compare", str(tmp_path / "user_memory.toml"), "--quiet")

    assert done.exit_code == 0
    cases = load_report(tmp_path / "user_memory-results").cases
    passed = {(case.cell.memory, *case.tags) for case in cases if case.outcome == "passed"}
    kinds = ("update", "preference", "deletion", "absent", "contradiction")
    assert {kind for memory, kind in passed if memory == "user"} == {*kinds}
    for other in ("vector", "auto"):
        found = {kind for memory, kind in passed if memory == other}
        assert {"update", "preference", "absent"} <= found
        assert "contradiction" not in found
    for case in cases:  # what a memory learns with a model is counted
        assert (2 * case.model_calls > case.steps) is (case.cell.memory == "user")
