"""What opening a session costs: the time, and how long the event loop is blocked.

    python benchmarks/opening.py [--quick]

For sessions of 1,000 and 100,000 messages in a SQLite file. "stall" is the longest time between two
turns of another task while the session is opened; "update" and "context" are those of the opened
memory, in microseconds; "all" is the time to read every message of it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agent_brain.memories import (
    LayeredMemory,
    Memory,
    Message,
    MessagesMemory,
    SQLiteJournal,
    SummaryMemory,
    WindowedMemory,
)
from agent_brain.tools import Action

TEXT = "Some words that somebody might say to somebody else in the course of a conversation."

MEMORIES: dict[str, Callable[[SQLiteJournal], Memory]] = {
    "messages": lambda journal: MessagesMemory(journal=journal),
    "windowed (100 messages)": lambda journal: WindowedMemory(journal=journal),
    "windowed (2,000 tokens)": lambda journal: WindowedMemory(
        max_messages=None, max_tokens=2000, journal=journal
    ),
    "summary (50 messages)": lambda journal: SummaryMemory(journal=journal),
    "layered (100 + messages)": lambda journal: LayeredMemory(
        WindowedMemory(journal=journal), MessagesMemory(journal=journal, session="long")
    ),
}


def turn(number: int) -> list[Message]:
    """Four messages: a question, a call, its result and an answer."""
    call = Action(name="look", args={"number": number})
    return [
        Message.user(f"{number}: {TEXT}"),
        Message.assistant("", [call]),
        Message.tool(TEXT, call),
        Message.assistant(TEXT),
    ]


async def fill(make: Callable[[SQLiteJournal], Memory], path: Path, messages: int) -> None:
    async with SQLiteJournal(path) as journal:
        memory = make(journal)
        await memory.set_goal("goal")
        for start in range(0, messages // 4, 250):
            many = range(start, min(start + 250, messages // 4))
            await memory.update([message for number in many for message in turn(number)])
            await memory.context()
        await memory.checkpoint()
        await memory.aclose()


class Stalls:
    """The longest time between two turns of a task."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last)
            last = now


async def measure(make: Callable[[SQLiteJournal], Memory], path: Path) -> str:
    best = None
    for _ in range(3):
        async with SQLiteJournal(path) as journal:
            memory = make(journal)
            gc.collect()
            start = time.perf_counter()
            await memory.open()
            took = time.perf_counter() - start
        async with SQLiteJournal(path) as journal:
            memory = make(journal)
            stalls = Stalls()
            watching = asyncio.create_task(stalls.watch())
            await asyncio.sleep(0)
            await memory.open()
            watching.cancel()
            start = time.perf_counter()
            await memory.context()
            first = time.perf_counter() - start
            start = time.perf_counter()
            await memory.dump()
            everything = time.perf_counter() - start
        found = took, stalls.longest, first, everything
        best = found if best is None else tuple(map(min, best, found))
    assert best is not None
    return "".join(f"{figure * 1000:12.1f}" for figure in best)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 messages only")
    sizes = [1_000, 10_000] if parser.parse_args().quick else [1_000, 100_000]
    columns = "".join(f"{name:>12}" for name in ("open", "stall", "context", "dump"))
    print(f"{'milliseconds':34}{columns}")
    for name, make in MEMORIES.items():
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "journal.db"
                await fill(make, path, size)
                print(f"{name:26}{size:8,}{await measure(make, path)}")


if __name__ == "__main__":
    asyncio.run(main())
