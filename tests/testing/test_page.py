"""What the page "Test your states" shows is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import anyio.pytest_plugin
import pytest

import agent_brain.testing
import agent_brain.testing.plugin

for name in agent_brain.testing.__all__:  # loaded before pytester looks; see test_plugin
    getattr(agent_brain.testing, name)

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "test-your-states.md"
SECTIONS = re.findall(
    r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S
)
BLOCKS = {
    title: code
    for title, text in SECTIONS
    for code in re.findall(r"```python\n(.*?)```", text, re.S)
}


def test_every_part_of_the_kit_is_shown() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = {name for name in agent_brain.testing.__all__ if name in page}
    assert {n for n in agent_brain.testing.__all__ if n[0].islower()} - shown <= {
        "journal_conformance"
    }


@pytest.mark.parametrize("title", BLOCKS)
def test_example(title: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_page=BLOCKS[title])
    plugins = [agent_brain.testing.plugin, anyio.pytest_plugin]
    result = pytester.runpytest_inprocess("-W", "error", "--strict-markers", plugins=plugins)
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 2
