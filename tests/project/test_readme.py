"""The README shows the three main uses and names existing files."""

from __future__ import annotations

import re

from tests.project.repository import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
FOLDERS = (
    "benchmarks|brain|cli|common|demo|docs|examples|experiments|hooks|memories|nets|serving|states|"
    "teams|telemetry|testing|tests|tools|workers"
)


def test_the_three_uses_are_shown() -> None:
    shown = set(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n", README, re.M | re.S))
    assert shown >= {"Compose a thinking net", "Stream it into your program", "Test a state"}


def test_what_it_names_in_the_repository_exists() -> None:
    named = re.findall(rf"`((?:{FOLDERS})/[\w/.-]*)`", README)
    assert "tests/" in named
    assert [path for path in named if not (ROOT / path).exists()] == []
