"""Someone else's project, which only installed the package, tests its own state with the kit."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.project.repository import ROOT
from tests.project.test_wheel import METADATA, build_environment, build_options, expected_files

pytestmark = pytest.mark.thorough

STATE = '''
"""A state of their own."""

from collections.abc import AsyncIterator
from enum import Enum

from agent_brain import LLM, Memory, Message, State


class Shop(Enum):
    GREET = "greet"
    SELL = "sell"


class Greet(State):
    def __init__(self, llm: LLM) -> None:
        self.llm = llm

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        said = ""
        async for piece in self.llm.stream(await memory.context()):
            if isinstance(piece, str):
                said += piece
                yield piece
        await memory.update([Message.assistant(said)])

    async def next_state(self, memory: Memory) -> Shop | None:
        return Shop.SELL
'''
TESTS = """
import pytest
from agent_brain import Message
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state

from shop import Greet, Shop


@pytest.mark.MARK
async def test_greet(scripted_llm, fake_memory):
    memory = fake_memory("Hello", [Message.system("Be kind.")])
    run = await run_state(Greet(scripted_llm([["Wel", "come!"]])), memory)
    assert (run.text, run.next_state) == ("Welcome!", Shop.SELL)
    memory.assert_updated(Message.assistant("Welcome!"))


@pytest.mark.MARK
async def test_greet_from_a_cassette(cassette):
    from agent_brain.testing import CassetteLLM

    run = await run_state(Greet(CassetteLLM(ScriptedLLM(["Welcome!"]))), FakeMemory("Hello"))
    assert run.text == "Welcome!"


def test_the_package_is_the_installed_one():
    import agent_brain

    assert PROJECT in agent_brain.__file__
"""
CONFTEST = """
import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with the wheel in it; its dependencies are those of here."""
    folder = tmp_path_factory.mktemp("fresh")
    checkout, home = folder / "checkout", folder / "env"
    for name in [*METADATA, *expected_files().values()]:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_bytes((ROOT / name).read_bytes())
    venv.create(home, with_pip=False)
    made = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    site = run(made, folder, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(made)]
    install = [*pip, "install", "-q", "--no-deps", "--ignore-installed", *build_options(), "."]
    done = subprocess.run(
        install, cwd=checkout, env=build_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def run(python: Path, folder: Path, *arguments: str) -> str:
    """What Python prints; it must end well."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "COV"))}
    command = [str(python), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "mark, without, settings",
    [
        (
            "asyncio",
            "anyio",
            "asyncio_mode = strict\nasyncio_default_fixture_loop_scope = function",
        ),
        pytest.param("anyio", "asyncio", "", marks=pytest.mark.thorough),
    ],
    ids=["pytest-asyncio alone", "anyio alone"],
)
def test_a_fresh_project_tests_its_state(
    python: Path, tmp_path: Path, mark: str, without: str, settings: str
) -> None:
    options = "-p no:cacheprovider -W error --strict-markers"
    ini = f"[pytest]\n{settings}\nagent_brain_real_models = forbid\naddopts = {options}\n"
    (tmp_path / "pytest.ini").write_text(ini)
    (tmp_path / "shop.py").write_text(STATE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    text = TESTS.replace("MARK", mark).replace("PROJECT", repr(str(python.parents[1])))
    (tmp_path / "test_shop.py").write_text(text)
    recorded = run(python, tmp_path, "-m", "pytest", "-p", f"no:{without}", "--cassette=record")
    assert "3 passed" in recorded
    assert (tmp_path / "cassettes" / "test_shop.test_greet_from_a_cassette.json").exists()
    assert "3 passed" in run(python, tmp_path, "-m", "pytest", "-p", f"no:{without}")
