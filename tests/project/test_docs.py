"""The code in the documentation runs, and its diagrams match the nets.

Each block runs alone, as if pasted; each page runs from top to bottom as one program; tests run
with pytest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import anyio.pytest_plugin
import pytest

import agent_brain.experiments
import agent_brain.nets
import agent_brain.testing
import agent_brain.testing.plugin
from agent_brain import LLM, Brain, Message, Net
from agent_brain.demo import DemoLLM
from agent_brain.memories import registry as memory_registry
from agent_brain.nets import create_net, file_states, registry
from agent_brain.states import Piece
from agent_brain.tools import toolset
from tests.project.pages import BLOCKS, DOCS, PAGES, Block, blocks_of, name_of

pytest_plugins = ["pytester"]

for package in (agent_brain.testing, agent_brain.experiments):
    for name in dir(package):  # loaded before pytester looks; see test_plugin
        getattr(package, name)

CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)")
BUILT_IN = registry._registry.built_in  # by the registry, so that a new net without a page fails


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty folder, no model in the environment, and only built-in nets, states and tools."""
    monkeypatch.delenv("AGENT_BRAIN_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry._registry, "factories", dict(registry._registry.factories))
    monkeypatch.setattr(toolset, "_registered", {})
    monkeypatch.setattr(file_states, "_kinds", dict(file_states.state_kinds()))


def run(block: Block, names: dict[str, object]) -> None:
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)


def test_an_example_that_is_not_run_compiles() -> None:
    for block in BLOCKS:
        if not block.runs:
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            compile(block.code, str(block), "exec", flags, dont_inherit=True)


@pytest.mark.thorough  # its page is run as a whole
@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("block", [b for b in BLOCKS if b.runs and not b.tests], ids=str)
def test_an_example_runs_alone(block: Block) -> None:
    run(block, {"__name__": "docs"})


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_runs_from_top_to_bottom(page: Path) -> None:
    names: dict[str, object] = {"__name__": "docs"}
    for block in blocks_of(page):
        if block.runs:
            run(block, names)


@pytest.mark.parametrize(
    "page", dict.fromkeys(block.page for block in BLOCKS if block.tests), ids=name_of
)
def test_the_tests_of_a_page_pass_with_pytest(
    page: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    blocks = [block for block in blocks_of(page) if block.tests]
    pytester.makepyfile(**{f"test_{block.line}": block.code for block in blocks})
    plugins = [agent_brain.testing.plugin, anyio.pytest_plugin]
    result = pytester.runpytest_inprocess("-W", "error", "--strict-markers", plugins=plugins)
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 2 * len(blocks)  # on asyncio and on trio


def test_links_have_targets() -> None:
    for page in PAGES:
        links = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
        assert [link for link in links if not (page.parent / link).exists()] == [], page


def test_every_built_in_net_has_a_page_and_a_row_in_the_index() -> None:
    pages = {page.stem for page in (DOCS / "nets").glob("*.md")} - {"README"}
    index = (DOCS / "nets" / "README.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| \[(\w+)\]\(\1\.md\)", index, re.MULTILINE))
    exports = dir(agent_brain.nets)
    problems = [f"add the page docs/nets/{name}.md" for name in BUILT_IN if name not in pages]
    problems += [f"add {name} to docs/nets/README.md" for name in BUILT_IN if name not in rows]
    problems += [f"export {name} in nets/__init__.py" for name in BUILT_IN if name not in exports]
    problems += [
        f"{name} has a page and is not in nets/registry.py" for name in pages - {*BUILT_IN}
    ]
    assert problems == []
    assert rows == pages


@pytest.mark.parametrize("name", memory_registry._registry.built_in)
def test_every_built_in_memory_has_its_rows(name: str) -> None:
    assert f'| `"{name}"` |' in (DOCS / "memories.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_diagram_matches_the_net(name: str) -> None:
    page = (DOCS / "nets" / f"{name}.md").read_text(encoding="utf-8")
    picture = create_net(name, DemoLLM()).to_mermaid()
    assert f"```mermaid\n{picture}```\n" in page


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_page_says_when_to_use_the_net_and_what_it_costs(name: str) -> None:
    page = (DOCS / "nets" / f"{name}.md").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert titles == ["When to use it", "When not to use it", "What it costs", "Example"]


LEFT_OPEN = re.compile(r"async for \w+ in (?!run\b|brain\b)[\w.]+\.(?:stream|events|answer)\(")


def test_no_example_leaves_a_stream_open() -> None:
    assert [str(block) for block in BLOCKS if LEFT_OPEN.search(block.code)] == []


class Endless(LLM):
    """Streams until it is closed, and counts how often that happens."""

    def __init__(self) -> None:
        self.closed = 0

    async def stream(self, messages: Sequence[Message], **options: object) -> AsyncIterator[Piece]:
        try:
            while True:
                yield "more "
        finally:
            self.closed += 1


class Only(Enum):
    STATE = "state"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("page", "name"), [("write-your-own-net.md", "Draft"), ("test-your-states.md", "Greet")]
)
def test_the_states_that_it_shows_close_the_model_when_the_run_is_left(
    page: str, name: str, backend: str
) -> None:
    names: dict[str, Any] = {"__name__": "docs"}
    run(next(blocks_of(DOCS / page)), names)
    llm = Endless()
    brain = Brain(
        Net(
            {Only.STATE: names[name](llm)}, transitions={Only.STATE: None}, allow=["never_proposed"]
        )
    )

    async def leave() -> None:
        async with brain.stream("go") as events:
            async for event in events:
                if event.kind == "text_delta":
                    break
        assert llm.closed == 1

    anyio.run(leave, backend=backend)
