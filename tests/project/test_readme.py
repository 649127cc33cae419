"""What the README shows is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(
    r"^## ([^\n]+)\n(?:(?!^## ).)*?```python\n(.*?)```", README.read_text(), re.M | re.S
)


def test_the_three_uses_are_shown() -> None:
    titles = {title for title, _ in BLOCKS}
    assert titles >= {"Compose a thinking net", "Stream it into your program", "Test a state"}


@pytest.mark.parametrize(("title", "code"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_example(
    title: str, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AGENT_BRAIN_MODEL", raising=False)
    names: dict[str, object] = {"__name__": "readme"}
    exec(compile(code, f"README.md, {title}", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    for test in tests:
        anyio.run(test)  # type: ignore[arg-type]
    assert tests or capsys.readouterr().out.strip()
