"""An experiment in a process of its own, which may end itself after a write.

``python -m tests.experiments.killed_program FOLDER HOW``: it is killed after its first write to
``cases.jsonl`` (``write``), in the middle of it (``torn``), in its third call of a tool (``call``),
or never.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from agent_brain import LLM, Message
from agent_brain.experiments import Experiment, Task, Turn, store
from agent_brain.tools import Action

FOLDER = Path(sys.argv[1])
HOW = sys.argv[2]


calls: list[str] = []


class Rules(LLM):
    """Calls the tool once for each turn, then says what it returned, and in which turn."""

    model = "rules"
    rule_based = True

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
        last = messages[-1]
        if last.role == "user":
            yield Action(name="effect", args={"text": last.content})
        else:
            turn = sum(message.role == "user" for message in messages)
            yield f"{last.content} in turn {turn}"


def effect(text: str) -> str:
    """Write a line to a file."""
    with (FOLDER / "effects.txt").open("a") as file:
        file.write(text + "\n")
    calls.append(text)
    if sys.argv[2] == "call" and len(calls) == 3:  # HOW would be part of the tool
        os.kill(os.getpid(), signal.SIGKILL)
    return f"did {text}"


def make() -> Experiment:
    tasks = [
        Task(
            id=f"t{number}",
            turns=[f"a{number}", Turn(text=f"b{number}", restart=True)],
            expected=f"did b{number} in turn 2",
            tools=[effect],
        )
        for number in range(4)
    ]
    return Experiment(nets="react", models=Rules(), tasks=tasks, at_once=2)


def kill_at_a_write() -> None:
    write = store._append

    def append(file: Path, data: bytes) -> None:
        write(file, data[:-20] if HOW == "torn" else data)
        os.kill(os.getpid(), signal.SIGKILL)

    store._append = append


if __name__ == "__main__":
    if HOW in ("write", "torn"):
        kill_at_a_write()
    FOLDER.mkdir(exist_ok=True)
    print(make().run_sync(FOLDER / "results").missing)
