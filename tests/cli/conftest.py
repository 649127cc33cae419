from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_brain.nets import Net, react, registry
from agent_brain.states import LLM
from agent_brain.testing import ScriptedLLM, Turn
from tests.cli.comparing import LEAST, MODELS


@pytest.fixture(autouse=True)
def _newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's environment shows."""
    for name in ("AGENT_BRAIN_MODEL", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture(autouse=True)
def _ctrl_c_is_not_ignored() -> Iterator[None]:
    """Programs that are started in the background ignore Ctrl-C, and so would their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[Turn]], ScriptedLLM]:
    """Makes ``--net scripted`` a ReAct net whose model plays the turns."""

    def use(turns: Sequence[Turn], **options: Any) -> ScriptedLLM:
        model = ScriptedLLM(turns, **options)

        def scripted(llm: LLM) -> Net:
            """What the test says."""
            return react(model)

        monkeypatch.setitem(registry._registry.factories, "scripted", scripted)
        return model

    return use


TOOLS = '''
import asyncio
import sys
import time

import anyio
from anyio import from_thread

from agent_brain import ToolError, tool

print("imported")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    print("adding")
    return a + b


@tool(name="shout")
def loud(text: str) -> str:
    """Shout."""
    return text.upper()


def pass_time(seconds: int) -> None:
    """Let the clock of the event loop jump."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds


def brew_tea(minutes: int) -> str:
    """Brew tea for some minutes; they pass at once."""
    print("brewing", flush=True)
    from_thread.run_sync(pass_time, 60 * minutes)
    time.sleep(60)
    return "tea"


async def wait_long(seconds: int) -> str:
    """Wait long, for some seconds; they pass at once."""
    try:
        print("waiting", flush=True)
        pass_time(seconds)
        await anyio.sleep_forever()
    finally:
        print("stopped waiting", flush=True)


def refuse(why: str) -> str:
    """Refuse."""
    raise ToolError("I would rather not")


def crash(why: str) -> str:
    """Crash."""
    raise ZeroDivisionError("boom")


class Shelf:
    take = staticmethod(add)


number = 5
'''


@pytest.fixture
def tools_file(tmp_path: Path) -> Path:
    """A user's file of tools."""
    path = tmp_path / "my_tools.py"
    path.write_text(TOOLS)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the file of an experiment, and a module with its model."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "compare.toml").write_text(LEAST)
    return tmp_path
