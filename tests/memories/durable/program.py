"""A program that is killed repeatedly: ``python program.py <folder> <memory> <after> …``.

It runs, or resumes, eight rounds of two tool calls. In a process for each number it is killed after
so many SQL statements of its journal. What the tools do is noted in a file.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import numpy as np  # noqa: F401  a journal that was killed is checked with it

from agent_brain import Brain, Limits, Message, tool
from agent_brain.memories import (
    LayeredMemory,
    Memory,
    MessagesMemory,
    SQLiteJournal,
    SummaryMemory,
    TodoMemory,
    WindowedMemory,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

ROUNDS = 8
FOLDER = Path(sys.argv[1])


def note(line: str) -> None:
    with (FOLDER / "effects.txt").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


@tool
def count(number: int) -> str:
    """Count."""
    note(f"count {number}")
    return f"counted {number}"


@tool(idempotent=True)
def look(number: int) -> str:
    """Look."""
    return f"looked at {number}"


def answer(messages: list[Message]) -> object:
    """The model: it goes by what it sees, as a model does."""
    seen = [m for m in messages if m.role == "assistant" and m.tool_calls]
    number = max((call.args["number"] for m in seen for call in m.tool_calls), default=-1) + 1  # type: ignore[operator, type-var]
    if number == ROUNDS:
        return "all counted"
    return [
        f"round {number}",
        Action(name="count", args={"number": number}, id=f"count-{number}"),
        Action(name="look", args={"number": number}, id=f"look-{number}"),
    ]


class KilledJournal(SQLiteJournal):
    """Kills its process at a given SQL statement: before, between or inside transactions."""

    def __init__(self, path: Path, after: int) -> None:
        super().__init__(path)
        self.left = after

    def _open(self) -> None:
        super()._open()
        assert self._file.main is not None
        self._file.main.set_trace_callback(self.count_down)

    def count_down(self, statement: str) -> None:
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def make(name: str, journal: SQLiteJournal) -> Memory:
    if name == "messages":
        return MessagesMemory(journal=journal)
    if name == "windowed":
        return WindowedMemory(journal=journal, max_messages=10)
    if name == "summary":
        return SummaryMemory(journal=journal, max_messages=10)
    if name == "todo":
        return TodoMemory(MessagesMemory(journal=journal))
    return LayeredMemory(
        WindowedMemory(journal=journal, max_messages=6),
        MessagesMemory(journal=journal, session="long"),
    )


def react(memory: Memory) -> Brain:
    llm = ScriptedLLM([answer] * 1000)
    return Brain("react", memory, [count, look], llm=llm, limits=Limits(max_steps=100))


async def import_all(folder: Path) -> None:
    """Run once before the first fork: what a run imports is then there in all processes."""
    async with SQLiteJournal(folder / "journal.db") as journal:
        await react(make(sys.argv[2], journal)).run("Count.")


async def main(after: int) -> None:
    async with KilledJournal(FOLDER / "journal.db", after) as journal:
        memory = make(sys.argv[2], journal)
        brain = react(memory)
        await memory.open()
        if memory.control.run_id is None:
            result = await brain.run(Message.user("Count.", id="goal"))
        elif memory.control.status == "ended" or memory.done:
            return
        else:
            result = await brain.resume()
        assert result.messages[-1].content == "all counted", result.messages[-1]


def run_in_a_process_of_its_own(after: int) -> int:
    """How it ended: 0, or minus the number of the signal."""
    child = os.fork()
    if child == 0:
        anyio.run(main, after)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    with TemporaryDirectory() as elsewhere:
        anyio.run(import_all, Path(elsewhere))
    (FOLDER / "effects.txt").unlink()
    for after in map(int, sys.argv[3:]):
        ended = run_in_a_process_of_its_own(after)
        note(f"ended {ended}")
        if ended != -signal.SIGKILL:
            sys.exit(ended)
