"""What the documentation shows is run as it stands, and its pictures are those of the code.

Blocks marked ``python no-run`` need a server or a terminal: they are only compiled.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain.demo import DemoLLM
from agent_brain.nets import create_net, net_names, registry

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCK = re.compile(r"^```python( no-run)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
BUILT_IN = [name for name in net_names() if (DOCS / "nets" / f"{name}.md").is_file()]


def blocks() -> list[Any]:
    """Every block of Python, with where it stands."""
    found = []
    for page in PAGES:
        if page.name == "test-your-states.md":
            continue  # whole test suites, which tests/testing/test_page.py gives to pytest
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            name = f"{page.relative_to(DOCS)}:{line}"
            found.append(pytest.param(name, "\n" * (line - 1) + match[2], not match[1], id=name))
    return found


@pytest.mark.parametrize(("name", "code", "runs"), blocks())
def test_example(
    name: str, code: str, runs: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not runs:
        compile(code, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return
    monkeypatch.delenv("AGENT_BRAIN_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    names: dict[str, object] = {"__name__": "docs"}
    exec(compile(code, name, "exec", dont_inherit=True), names)
    for test in [value for key, value in names.items() if key.startswith("test_")]:
        anyio.run(test)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_built_in_net_has_a_page_and_a_row_in_the_index() -> None:
    pages = {page.stem for page in (DOCS / "nets").glob("*.md")} - {"README"}
    index = (DOCS / "nets" / "README.md").read_text(encoding="utf-8")
    assert sorted(pages) == sorted(BUILT_IN)
    assert set(re.findall(r"^\| \[(\w+)\]\(\1\.md\)", index, re.MULTILINE)) == pages
    assert len(pages) == 9


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_picture_is_that_of_the_net(name: str) -> None:
    page = (DOCS / "nets" / f"{name}.md").read_text(encoding="utf-8")
    picture = create_net(name, DemoLLM()).to_mermaid()
    assert f"```mermaid\n{picture}```\n" in page


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_page_says_when_to_use_the_net_and_what_it_costs(name: str) -> None:
    page = (DOCS / "nets" / f"{name}.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert titles == ["When to use it", "What it costs", "Example"]
