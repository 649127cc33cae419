"""The blocks of Python in the documentation."""

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
    """One block of Python, with as many empty lines before it as there are lines in the page.

    Attributes:
        page: Where it is from.
        line: Where it begins.
        code: What it says.
        runs: Not marked ``no-run``: those need a server or a terminal.
        tests: It is for pytest.
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
    """The page, as a reader finds it."""
    return str(page.relative_to(ROOT))


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        yield Block(page, line, "\n" * (line - 1) + match[2], not match[1])


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
