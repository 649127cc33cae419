"""What the documentation shows is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "vector-memory.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_example(number: int) -> None:
    exec(compile(BLOCKS[number], f"{PAGE.name}, example {number}", "exec"), {"__name__": "page"})


def test_there_are_examples() -> None:
    assert len(BLOCKS) >= 3
