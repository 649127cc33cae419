"""The figures of the page "Which net, which memory"."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.support import invoke
from tests.project.pages import DOCS
from tests.support.thorough import thorough

PAGE = (DOCS / "which-net-and-memory.md").read_text("utf-8")
FILES = dict(re.findall(r"^```toml\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
ROW = re.compile(r"^\| `(\w+)` \| (\d+) of (\d+) \|(?: [\d.]+ \|)* ([\d,]+) \|", re.MULTILINE)


def rows(file: str) -> dict[str, tuple[int, int, int]]:
    """The table after a file, by what its row is about: passed, cases, tokens."""
    after = PAGE.split(f"# {file}\n")[1].split("```toml")[0]
    return {
        name: (int(passed), int(cases), int(tokens.replace(",", "")))
        for name, passed, cases, tokens in ROW.findall(after)
    }


@pytest.mark.parametrize(
    ("file", "axis", "only"),
    [
        ("nets.toml", "net", "react/*"),
        ("memories.toml", "memory", "*/vector/*"),
        *thorough(
            [
                ("slips.toml", "net", "reflexion/*"),
                ("memories.toml", "memory", "*/windowed/*"),
            ]
        ),
    ],
)
def test_a_row_of_the_page_is_what_its_command_prints(
    tmp_path: Path, file: str, axis: str, only: str
) -> None:
    path = tmp_path / file
    path.write_text(FILES[file])

    done = invoke("compare", str(path), "--only", only, "--json", "--quiet")

    assert done.exit_code == 0
    (cell,) = [one for one in json.loads(done.stdout)["cells"] if one["cases"]]
    assert rows(file)[cell[axis]] == (cell["passed"], cell["cases"], round(cell["tokens"]))


@pytest.mark.parametrize("file", FILES)
def test_every_cell_has_a_row(tmp_path: Path, file: str) -> None:
    path = tmp_path / file
    path.write_text(FILES[file])

    done = invoke("compare", str(path), "--plan")

    names = {part for line in done.stdout.splitlines() for part in line.split()[0].split("/")}
    assert set(rows(file)) <= names
    assert len(rows(file)) == sum("cases" in line for line in done.stdout.splitlines()[:-2])
