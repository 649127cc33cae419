"""The files of the page on experiments; its Python blocks run in tests/project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.support import invoke
from tests.project.pages import DOCS, blocks_of

PAGE = DOCS / "experiments.md"
FILE = re.compile(r"^```toml\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page shows."""
    monkeypatch.delenv("AGENT_BRAIN_MODEL", raising=False)
    for name, text in FILE.findall(PAGE.read_text("utf-8")):
        (tmp_path / name).write_text(text)
    tools = next(block for block in blocks_of(PAGE) if "def in_stock" in block.code)
    (tmp_path / "my_tools.py").write_text(tools.code)
    return tmp_path


def test_the_plan_is_the_one_that_the_page_shows(folder: Path) -> None:
    done = invoke("compare", str(folder / "compare.toml"), "--plan")

    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    shown = PAGE.read_text("utf-8")
    assert f"\n{lines[0]}\n…\n{lines[8]}\n{lines[9]}\n" in shown


def test_the_tasks_of_the_page_are_done(folder: Path) -> None:
    text = (folder / "compare.toml").read_text()
    small = text.replace("n = 20", "n = 1").replace("repeat = 2", "")
    (folder / "compare.toml").write_text(small.replace("slip = 0.05", "slip = 0.0"))
    done = invoke("compare", str(folder / "compare.toml"), "--only", "react/all/rule-based")

    assert done.exit_code == 0
    assert "4/4" in done.stdout
