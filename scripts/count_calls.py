"""Count what a reader meets: lines, modules, long functions, public names, and calls for a message.

    python -m scripts.count_calls [--against COMMIT]

The calls are those of Python functions of ``agent_brain`` (a generator that continues counts too)
for one question that a model answers with the help of one tool call, after a run that warms up.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

from scripts.checkouts import checkout, environment
from scripts.link_package import ROOT, folders_of

FACADES = ("", ".memories", ".nets", ".states", ".testing", ".tools")


def size(tree: Path) -> dict[str, int]:
    """Count lines, modules and functions of more than 40 lines."""
    folders = folders_of(tree).values()
    texts = [path.read_text("utf-8") for name in folders for path in (tree / name).rglob("*.py")]
    functions = [
        node
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = [node for node in functions if (node.end_lineno or 0) - node.lineno + 1 > 40]
    lines = sum(text.count("\n") for text in texts)
    return {
        "lines": lines,
        "modules": len(texts),
        "functions": len(functions),
        "functions above 40 lines": len(long),
    }


def public_names() -> int:
    """Count the names that the packages export."""
    modules = [__import__(f"agent_brain{suffix}", fromlist=["__all__"]) for suffix in FACADES]
    return sum(len(module.__all__) for module in modules)


def calls(make_memory: Callable[[Any], Any]) -> dict[str, int]:
    """Count calls, modules and changes of module for one message with one tool call."""
    from agent_brain import Brain, tool
    from agent_brain.testing import ScriptedLLM
    from agent_brain.tools import Action

    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    seen: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        ours = module.startswith("agent_brain") and not module.startswith("agent_brain.testing")
        if event == "call" and ours:
            seen.append(module)

    async def ask() -> None:
        llm = ScriptedLLM([[Action(name="add", args={"a": 1, "b": 2})], "The sum is 3."])
        brain = Brain("react", make_memory([add]), llm=llm)
        sys.setprofile(profile)
        result = await brain.run("What is 1 + 2?")
        sys.setprofile(None)
        assert result.answer == "The sum is 3."

    asyncio.run(ask())
    seen.clear()
    asyncio.run(ask())
    changes = sum(one != other for one, other in itertools.pairwise(seen))
    return {"calls": len(seen), "modules": len(set(seen)), "changes of module": changes}


def count_here() -> dict[str, int]:
    """Count what needs the package imported."""
    from agent_brain.memories import MessagesMemory, RamJournal, WindowedMemory

    memories: dict[str, Callable[[Any], Any]] = {
        "messages": MessagesMemory,
        "window + RAM journal": lambda tools: WindowedMemory(tools, journal=RamJournal()),
    }
    counted = {"public names": public_names()}
    for name, make in memories.items():
        counted |= {f"{name}: {what}": count for what, count in calls(make).items()}
    return counted


def count(commit: str | None) -> dict[str, int]:
    """Count everything for a commit, or for the working tree."""
    with ExitStack() as stack:
        tree = stack.enter_context(checkout(commit))
        where = stack.enter_context(environment(tree))
        command = [sys.executable, "-m", "scripts.count_calls", "--here"]
        done = subprocess.run(
            command, cwd=ROOT, env=where, check=True, stdout=subprocess.PIPE, text=True
        )
        imported: dict[str, int] = json.loads(done.stdout)
        return size(tree) | imported


def main() -> None:
    """Print one line for each figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", metavar="COMMIT", help="show an older commit beside this tree")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(count_here()))
        return
    now = count(None)
    before = count(options.against) if options.against else {}
    for name, value in now.items():
        old = before.get(name)
        ratio = f"{old:>10,}{value / old:>8.2f}x" if old else ""
        print(f"{name:<42}{value:>10,}{ratio}")


if __name__ == "__main__":
    main()
