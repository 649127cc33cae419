"""Collect the Python blocks of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.project.repository import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_BLOCK = re.compile(r"^```python( no-run)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A Python block of a page.

    Attributes:
        page: The file.
        line: The line where the block begins.
        code: The code, after as many empty lines as precede it in the page.
        runs: Whether it can be executed; blocks marked ``no-run`` need a server or a terminal.
        tests: Whether it contains tests for pytest.
    """

    page: Path
    line: int
    code: str
    runs: bool

    @property
    def tests(self) -> bool:
        return re.search(r"^(async )?def test_", self.code, re.MULTILINE) is not None

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    """Return the path of a page relative to the repository."""
    return str(page.relative_to(ROOT))


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        yield Block(page, line, "\n" * (line - 1) + match[2], not match[1])


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
