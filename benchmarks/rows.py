"""The rows of the benchmark: each measures one figure once, in the process it is called in."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

from agent_brain import Message, SQLiteJournal, VectorMemory, WindowedMemory
from benchmarks import workloads as work

Measure = Callable[[bool], float]
TEXT = "Some words that somebody might say to somebody else in the course of a conversation."


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: Its name on the command line.
        what: What is measured.
        unit: The unit of the figures.
        ours: Measures the library; takes whether to be quick.
        floor: Measures what it is compared with.
        budget: How many times the floor it may cost, or its largest figure if there is no floor.
    """

    name: str
    what: str
    unit: str
    ours: Measure
    floor: Measure | None = None
    budget: float | None = None


def cpu(make: Callable[[], Awaitable[Any]], count: int) -> float:
    """Return microseconds of CPU an item, collector included, after a warm-up."""

    async def timed() -> float:
        await make()
        gc.collect()
        start = time.process_time()
        await make()
        return time.process_time() - start

    return asyncio.run(timed()) / count * 1e6


def each(function: Callable[..., Awaitable[Any]], count: int, *rest: Any) -> Measure:
    """Return a function that measures ``function(count, …)`` for one item; a fifth if quick."""

    def measure(quick: bool) -> float:
        number = count // 5 if quick else count
        return cpu(lambda: function(number, *rest), number)

    return measure


def react_step(quick: bool) -> float:
    return cpu(lambda: work.ours_react(50), 50)


def recorded_step(quick: bool) -> float:
    return cpu(lambda: work.ours_recorded(50), 50)


def floor_react_step(quick: bool) -> float:
    return cpu(lambda: work.floor_react(50), 50)


def first_chunk(quick: bool) -> float:
    return median(
        asyncio.run(work.ours_chunks(100, False)) * 1e6 for _ in range(50 if quick else 200)
    )


def floor_first_chunk(quick: bool) -> float:
    return median(
        asyncio.run(work.floor_chunks(100, False)) * 1e6 for _ in range(50 if quick else 200)
    )


def python_calls(quick: bool) -> float:
    """Return the Python functions called in a ReAct step; a generator that continues counts."""
    counted = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event == "call"

    async def count() -> None:
        await work.ours_react(2)
        sys.setprofile(profile)
        await work.ours_react(10)
        sys.setprofile(None)

    asyncio.run(count())
    ten, counted = counted, 0

    async def more() -> None:
        sys.setprofile(profile)
        await work.ours_react(20)
        sys.setprofile(None)

    asyncio.run(more())
    return (counted - ten) / 10


def late_steps(quick: bool) -> float:
    """Return what a step of 200 costs over one of 10."""
    return each(work.ours_react, 200)(False) / each(work.ours_react, 10)(False)


def many_kib(quick: bool) -> float:
    """Return KiB allocated for a run at the peak of a thousand."""
    code = (
        "import asyncio, tracemalloc; from benchmarks.workloads import ours_many;"
        "asyncio.run(ours_many(100)); tracemalloc.start(); asyncio.run(ours_many(1000));"
        "print(tracemalloc.get_traced_memory()[1] / 1000 / 1024)"
    )
    return python(code)


def python(code: str, *options: str) -> float:
    """Return the figure that a new interpreter prints."""
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def import_ms(statement: str, quick: bool) -> float:
    """Return milliseconds of CPU for ``statement`` in a new interpreter that loads no site."""
    code = (
        f"import time; start = time.process_time()\n{statement}\n"
        "print((time.process_time() - start) * 1000)"
    )
    return median(python(code, "-S") for _ in range(1 if quick else 3))


PYDANTIC = "from pydantic import BaseModel\nclass First(BaseModel):\n    number: int"
BRAIN = "from agent_brain import Brain"
FIRST_BRAIN = f"{BRAIN}\nBrain('react')"


@cache
def window() -> WindowedMemory:
    """Return a window of 100 messages after 10,000."""
    memory = WindowedMemory(max_messages=100)
    asyncio.run(memory.set_goal("goal"))
    asyncio.run(memory.update([Message.user(TEXT) for _ in range(10_000)]))
    return memory


def window_update(quick: bool) -> float:
    batches = [[Message.user(TEXT)] for _ in range(200 if quick else 1000)]
    memory = window()

    async def updates() -> float:
        start = time.process_time()
        for batch in batches:
            await memory.update(batch)
        return time.process_time() - start

    return asyncio.run(updates()) / len(batches) * 1e6


def window_context(quick: bool) -> float:
    memory, count = window(), 200 if quick else 1000

    async def contexts() -> float:
        start = time.process_time()
        for _ in range(count):
            await memory.context()
        return time.process_time() - start

    return asyncio.run(contexts()) / count * 1e6


@cache
def journal_file(count: int) -> Path:
    """Return a SQLite journal with a session of that many messages."""
    folder = tempfile.TemporaryDirectory()
    _folders.append(folder)
    path = Path(folder.name) / "journal.db"

    async def fill() -> None:
        async with SQLiteJournal(path) as journal:
            memory = WindowedMemory(journal=journal, session="one")
            for _ in range(count // 1000):
                await memory.update([Message.user(TEXT) for _ in range(1000)])
            await memory.aclose()

    asyncio.run(fill())
    return path


_folders: list[tempfile.TemporaryDirectory[str]] = []


def opening(quick: bool) -> float:
    """Return milliseconds until the window over a stored session can be shown."""
    path = journal_file(5_000 if quick else 100_000)

    async def opened() -> float:
        start = time.perf_counter()
        async with SQLiteJournal(path) as journal:
            memory = WindowedMemory(journal=journal, session="one")
            await memory.context()
            took = time.perf_counter() - start
            await memory.aclose()
        return took

    return asyncio.run(opened()) * 1e3


@cache
def vectors() -> VectorMemory:
    """Return a memory of 700 messages that recalls by words."""
    memory = VectorMemory()
    words = [f"word{n}" for n in range(2_000)]
    texts = [" ".join(words[(7 * n + 13 * k) % 2_000] for k in range(12)) for n in range(700)]
    asyncio.run(memory.update([Message.user(text) for text in texts]))
    asyncio.run(memory.recall("word1"))
    return memory


def recall(quick: bool) -> float:
    """Return milliseconds of CPU for one recall among 700 messages."""
    memory, count = vectors(), 10 if quick else 50

    async def recalls() -> float:
        start = time.process_time()
        for n in range(count):
            await memory.recall(f"word{n} word{n * 3} word{n * 7}")
        return time.process_time() - start

    return asyncio.run(recalls()) / count * 1e3


def construct(quick: bool) -> float:
    """Return microseconds of CPU for a message from a user's code."""
    count = 1_000 if quick else 10_000
    start = time.process_time()
    for _ in range(count):
        Message.user(TEXT)
    return (time.process_time() - start) / count * 1e6


ROWS = (
    Row("transition", "bare transition", "us", each(work.ours_hops, 5_000), each(work.floor_hops, 5_000), 4),
    Row("chunk", "streamed chunk, loop yielded to", "us", each(work.ours_chunks, 10_000, True), each(work.floor_chunks, 10_000, True), 1.3),
    Row("ready", "chunk, 10,000 ready at once", "us", each(work.ours_chunks, 10_000, False), each(work.floor_chunks, 10_000, False), 2.5),
    Row("first", "first chunk (wall)", "us", first_chunk, floor_first_chunk),
    Row("react", "ReAct step (think and act)", "us", react_step, floor_react_step, 7.2),
    Row("recorded", "ReAct step with a journal in RAM", "us", recorded_step),
    Row("calls", "Python calls in a ReAct step", "", python_calls),
    Row("late", "ReAct, step of 200 over step of 10", "x", late_steps, None, 1.05),
    Row("many", "1,000 runs at once, a run", "us", each(work.ours_many, 1000), each(work.floor_many, 1000), 4.6),
    Row("kib", "1,000 runs at once, a run", "KiB", many_kib, None, 10),
    Row("message", "Message.user(…)", "us", construct),
    Row("update", "window of 100, update", "us", window_update, None, 2),
    Row("context", "window of 100, context", "us", window_context, None, 3),
    Row("open", "window over 100,000 stored (wall)", "ms", opening, None, 200),
    Row("recall", "recall by words, 700 messages", "ms", recall, None, 2),
    Row("import", "import Brain, over pydantic", "ms", partial(import_ms, BRAIN), partial(import_ms, PYDANTIC), 1.8),
    Row("brain", "import and Brain('react')", "ms", partial(import_ms, FIRST_BRAIN), partial(import_ms, PYDANTIC)),
)  # fmt: skip
