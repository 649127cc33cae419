"""What a memory costs as a conversation grows: update and context at 1k, 10k and 100k messages.

    python benchmarks/memory.py [--quick]

Every figure is CPU time, the best of several rounds, in microseconds for one message or one call.
"growth" is the last column over the first: 1.0 means that the length of the conversation does not
matter. The last rows say what a durable update costs on this disk, and what opening a session does.
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
    TodoMemory,
    WindowedMemory,
)

TEXT = "Some words that somebody might say to somebody else in the course of a conversation."

MEMORIES: dict[str, Callable[[], Memory]] = {
    "messages": MessagesMemory,
    "windowed (100 messages)": WindowedMemory,
    "windowed (2,000 tokens)": lambda: WindowedMemory(max_messages=None, max_tokens=2000),
    "summary (50 messages)": SummaryMemory,
    "layered (100 + all)": lambda: LayeredMemory(WindowedMemory(), MessagesMemory()),
    "todo over windowed": lambda: TodoMemory(WindowedMemory()),
}


async def measure(make: Callable[[], Memory], sizes: list[int]) -> tuple[list[float], list[float]]:
    memory = make()
    await memory.set_goal("goal")
    written, updates, contexts = 0, [], []
    for size in sizes:
        await memory.update([Message.user(TEXT) for _ in range(size - written - 1000)])
        await memory.context()
        gc.collect()
        updates.append(await best_update(memory))
        written = size
        contexts.append(await best_context(memory))
    return updates, contexts


async def best_update(memory: Memory, rounds: int = 10, each: int = 100) -> float:
    best = float("inf")
    for _ in range(rounds):
        batches = [[Message.user(TEXT)] for _ in range(each)]
        start = time.process_time_ns()
        for batch in batches:
            await memory.update(batch)
        best = min(best, (time.process_time_ns() - start) / each / 1000)
    return best


async def best_context(memory: Memory, rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        each = 20
        start = time.process_time_ns()
        for _ in range(each):
            await memory.context()
        best = min(best, (time.process_time_ns() - start) / each / 1000)
    return best


async def durable(messages: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with SQLiteJournal(Path(folder) / "journal.db") as journal:
            memory = MessagesMemory(journal=journal)
            await memory.open()
            start = time.perf_counter()
            for _ in range(200):
                await memory.update([Message.user(TEXT)])
            print(
                f"\nSQLite, one update of one message   {(time.perf_counter() - start) * 5000:8.0f} us"
            )
            start = time.perf_counter()
            await memory.update([Message.user(TEXT) for _ in range(messages)])
            took = (time.perf_counter() - start) / messages * 1e6
            print(f"SQLite, a message of a large update {took:8.1f} us")
            start = time.perf_counter()
            await MessagesMemory(journal=journal).open()
            took = (time.perf_counter() - start) / messages * 1e6
            print(f"SQLite, opening, for each message   {took:8.1f} us")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 10k messages only")
    quick = parser.parse_args().quick
    sizes = [1_100, 10_000] if quick else [1_100, 10_000, 100_000]
    print(f"{'':32}" + "".join(f"{size:>10,}" for size in sizes) + "    growth")
    for name, make in MEMORIES.items():
        for what, figures in zip(("update", "context"), await measure(make, sizes), strict=True):
            row = "".join(f"{figure:10.2f}" for figure in figures)
            print(f"{name + ', ' + what:32}{row}{figures[-1] / figures[0]:10.2f}")
    await durable(sizes[-1])


if __name__ == "__main__":
    asyncio.run(main())
