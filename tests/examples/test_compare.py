"""The example of an experiment, run by the command."""

from __future__ import annotations

import json
from pathlib import Path

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
