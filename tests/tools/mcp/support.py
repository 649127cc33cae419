"""Helpers of the MCP tests."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from agent_brain.tools import Action, BaseTool, Outcome, call_tool
from agent_brain.tools.mcp import McpTools
from tests.support.forked import forked

SERVERS = Path(__file__).parent / "servers"
IMPORTED = ("mcp.server", "mcp.server.stdio", "anyio._backends._asyncio")  # by most of them


def script(name: str, *args: str, **entry: Any) -> dict[str, Any]:
    """One of the scripts as an entry of a configuration; a busy machine may start it slowly."""
    command, *before = (sys.executable,) if name == "odd" else forked(*IMPORTED)
    arguments = [*before, str(SERVERS / f"{name}.py"), *args]
    return {"command": command, "args": arguments, "startTimeout": 120.0, **entry}


def config(**entries: dict[str, Any]) -> dict[str, Any]:
    return {"mcpServers": entries}


async def call(tools: McpTools | Iterable[BaseTool], name: str, /, **args: Any) -> Outcome:
    listed = tools.tools if isinstance(tools, McpTools) else tools
    return await call_tool(Action(name=name, args=args), {tool.name: tool for tool in listed})


async def until(condition: Callable[[], object]) -> None:
    """Wait for something that announces itself in no other way."""
    with anyio.fail_after(60):
        while not condition():
            await anyio.sleep(0.002)


def children() -> set[int]:
    """The processes that this one has started and that are still there, zombies too."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(stat.parent.name))
    return found


def open_files() -> Counter[str]:
    """What this process holds open, by what it is."""
    found: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        try:
            found[str(link.readlink()).partition(":[")[0]] += 1
        except OSError:
            continue
    return found


def hosts() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "agent-brain-mcp"]


@contextmanager
def http_server(port: int = 0, name: str = "plain") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """One of the scripts over HTTP: its address, and its process."""
    command = [sys.executable, str(SERVERS / f"{name}.py"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            bound = int(process.stdout.readline())
            yield f"http://127.0.0.1:{bound}/mcp", process
        finally:
            process.kill()


@contextmanager
def nothing_left() -> Iterator[None]:
    """Nothing that was opened inside is open afterwards."""
    processes, files, threads = children(), open_files(), hosts()
    yield
    assert children() <= processes
    assert hosts() == threads
    assert open_files() - files == Counter()
