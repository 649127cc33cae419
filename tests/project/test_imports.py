"""What an import may load, and that the checkout and the installed package are the same."""

from __future__ import annotations

import compileall
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import agent_brain
from scripts.link_package import link
from tests.project.repository import ROOT

HEAVY = {
    *("aiohttp", "chromadb", "dbos", "httpx", "jsonschema", "litellm", "mcp", "numpy", "openai"),
    *(
        "opentelemetry",
        "psycopg",
        "pytest",
        "redis",
        "requests",
        "rich",
        "tiktoken",
        "trio",
        "click",
    ),
}
PACKAGES = ("tools", "memories", "states", "nets")


def python(program: str, folder: Path = ROOT) -> str:
    """What a new interpreter, started in the checkout or in ``folder``, prints."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def modules_loaded_by(statement: str) -> set[str]:
    # Ignore what site loads (.pth files, coverage).
    program = f"import sys; before = set(sys.modules); {statement}; import json; "
    loaded = json.loads(python(program + "print(json.dumps(sorted(set(sys.modules) - before)))"))
    return {name.partition(".")[0] for name in loaded}


@pytest.mark.parametrize("package", ["agent_brain", *(f"agent_brain.{name}" for name in PACKAGES)])
def test_an_import_loads_nothing_heavy(package: str) -> None:
    assert modules_loaded_by(f"import {package}") & HEAVY == set()


def test_the_brain_loads_nothing_heavy_until_it_is_used() -> None:
    assert modules_loaded_by("from agent_brain import Brain") & HEAVY == set()


def test_the_brain_loads_no_event_loop_and_builds_no_schema() -> None:
    # The first schema that pydantic builds makes it look for plugins among all distributions.
    loaded = modules_loaded_by("from agent_brain import Brain")

    assert loaded & {"asyncio", "ssl", "email"} == set()


def test_the_demo_loads_only_the_tools_that_it_has() -> None:
    program = "import sys; from agent_brain import Brain; Brain('react'); print(*sys.modules)"

    assert {"agent_brain.tools.builtin.web", "urllib.request"} & set(
        python(program).split()
    ) == set()


@pytest.mark.thorough
@pytest.mark.parametrize("package", ["agent_brain", *(f"agent_brain.{name}" for name in PACKAGES)])
def test_a_star_import_brings_every_public_name(package: str) -> None:
    python(
        f"from {package} import *\n"
        f"import {package} as module\n"
        "assert set(module.__all__) <= set(globals())\n"
    )


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """The package under its import name, in real files."""
    link(ROOT, tmp_path / "links")
    return Path(shutil.copytree(tmp_path / "links", tmp_path / "package"))


USE = "from agent_brain import Brain; from agent_brain.states import LLM; import agent_brain.nets"


@pytest.mark.thorough
def test_a_program_without_sources_imports_it(layout: Path) -> None:
    assert compileall.compile_dir(layout, quiet=1, legacy=True)
    for source in layout.rglob("*.py"):
        source.unlink()

    printed = python(f"{USE}; print(Brain.__module__, agent_brain.__file__)", layout)

    assert printed.split() == ["agent_brain.brain", str(layout / "agent_brain" / "__init__.pyc")]


@pytest.mark.thorough
def test_pytest_may_rewrite_its_assertions(layout: Path) -> None:
    (layout / "conftest.py").write_text(
        "import pytest\npytest.register_assert_rewrite('agent_brain')"
    )
    (layout / "test_it.py").write_text(
        f"{USE}\ndef test(): assert 'Rewriting' in type(agent_brain.__loader__).__name__\n"
    )

    program = "import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:agent_brain', '.']))"
    assert "1 passed" in python(program, layout)


def test_a_name_that_a_package_does_not_have_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'agent_brain' has no attribute 'Brian'"):
        agent_brain.Brian  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("package", ["memories", "nets", "states", "tools"])
def test_packages_of_the_checkout_are_those_of_the_library(package: str) -> None:
    python(
        f"import {package} as here, agent_brain.{package} as there\n"
        "assert here.__all__ == there.__all__\n"
        "for name in there.__all__:\n"
        "    assert getattr(here, name) is getattr(there, name), name\n"
    )


def test_brain_of_the_checkout_is_that_of_the_library() -> None:
    python("from brain import Brain; import agent_brain; assert Brain is agent_brain.Brain")
