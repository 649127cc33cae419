"""What the page "Test your states" has to show; its blocks are run by tests/project/test_docs.py."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "test-your-states.md"


def test_every_part_of_the_kit_is_shown() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = import_module("agent_brain.testing").__all__
    shown = {name for name in names if name in page}
    assert {n for n in names if n[0].islower()} - shown <= {"journal_conformance"}
