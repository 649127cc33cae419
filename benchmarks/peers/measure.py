"""Measure one row of one program and print the figures as JSON.

    python -m benchmarks.peers.measure PROGRAM ROW

Runs in the environment of the program, with the standard library alone.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

Figures = dict[str, float]

# Logging in is not possible offline, and no peer may wait for a telemetry server.
QUIET = {
    "LANGSMITH_TRACING": "false",
    "OPENAI_API_KEY": "none",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "HF_HUB_OFFLINE": "1",
}


def best_cpu(work: Callable[[], Awaitable[Any]], *, times: int) -> float:
    """Return the least CPU seconds of several calls after one that warms up."""

    async def timed() -> float:
        await work()
        least = float("inf")
        for _ in range(times):
            gc.collect()
            start = time.process_time()
            await work()
            least = min(least, time.process_time() - start)
        return least

    return asyncio.run(timed())


def react(turns: int, program: Any) -> Figures:
    cpu = best_cpu(lambda: program.react(turns), times=3)
    return {f"react{turns}": cpu / turns * 1e6}


def chunk(program: Any) -> Figures:
    count = 10_000

    async def consume() -> None:
        seen = 0
        async for _ in program.chunks(count):
            seen += 1
        assert seen >= count, seen

    return {"chunk": best_cpu(consume, times=2) / count * 1e6}


def first(program: Any) -> Figures:
    async def once() -> float:
        start = time.perf_counter()
        took = 0.0
        async for _ in program.chunks(100):
            took = took or time.perf_counter() - start
        return took

    async def several() -> float:
        return median([await once() for _ in range(40)][10:])

    return {"first": asyncio.run(several()) * 1e6}


def many(runs: int, program: Any) -> Figures:
    async def timed() -> Figures:
        await program.many(20)
        gc.collect()
        before, wall, cpu = rss_kib(), time.perf_counter(), time.process_time()
        await program.many(runs)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            f"many{runs}": cpu / runs * 1e6,
            f"many{runs}_wall": wall,
            f"many{runs}_kib": (peak - before) / runs,
        }

    return asyncio.run(timed())


def hops(program: Any) -> Figures:
    count = 2_000
    return {"hops": best_cpu(lambda: program.hops(count), times=3) / count * 1e6}


def session(program: Any) -> Figures:
    count = 1_000

    async def kept() -> float:
        warm = await program.sessions(50)
        gc.collect()
        before = rss_kib()
        opened = await program.sessions(count)
        gc.collect()
        after = rss_kib()
        del warm, opened
        return (after - before) / count

    return {"session": asyncio.run(kept())}


def imports(program: Any) -> Figures:
    """Measure in new interpreters; ``-S`` is not possible, as the packages are in site-packages."""
    statements = {"import": program.IMPORT, "import_pydantic": "from pydantic import BaseModel"}
    found = {}
    for name, statement in statements.items():
        code = (
            f"import time; start = time.process_time()\n{statement}\n"
            "print((time.process_time() - start) * 1000)"
        )
        command = [sys.executable, "-c", code]
        done = [
            subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(3)
        ]
        if all(each.returncode == 0 for each in done):
            found[name] = min(float(each.stdout) for each in done)
    return found


def rss_kib() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize() // 1024


ROWS: dict[str, Callable[[Any], Figures]] = {
    "react10": partial(react, 10),
    "react50": partial(react, 50),
    "react200": partial(react, 200),
    "chunk": chunk,
    "first": first,
    "many1000": partial(many, 1000),
    "many5000": partial(many, 5000),
    "hops": hops,
    "session": session,
    "import": imports,
}


def main() -> None:
    name, row = sys.argv[1:]
    os.environ.update(QUIET)
    program = import_module(f"benchmarks.peers.programs.{name}")
    needs = {"chunk": "chunks", "first": "chunks", "session": "sessions"}
    wanted = needs.get(row, row.rstrip("0123456789"))
    offered = wanted == "import" or hasattr(program, wanted)
    print(json.dumps(ROWS[row](program) if offered else {}))


if __name__ == "__main__":
    main()
