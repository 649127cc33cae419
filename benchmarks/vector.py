"""The costs of VectorMemory: update, context and recall by size, and stalls of the event loop.

    python -m benchmarks.vector [--quick] [--embedder minilm]

Vectors are random and have 384 numbers, made in a worker thread, unless an embedder is named. A
stall is the longest time for which the event loop was blocked: while 1,000 messages were embedded
and stored with vectors in RAM, in a folder and on a Chroma server in another process; and while a
stored session was opened and searched for the first time.
"""

from __future__ import annotations

import argparse
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio

from agent_brain.memories import Message, VectorMemory
from agent_brain.memories.embedders import Embedder, FunctionEmbedder
from benchmarks.minilm import embedder_of as embedder_named

WORDS = [f"word{n}" for n in range(5_000)]
DIMENSION = 384


def random_vectors(texts: list[str]):
    import numpy as np

    return np.random.default_rng().standard_normal((len(texts), DIMENSION), np.float32)


def embedder_of(name: str) -> Embedder | None:
    if name == "random":
        return FunctionEmbedder(random_vectors, name="random", dimension=DIMENSION, batch_size=256)
    return embedder_named(name)


def messages(count: int) -> list[Message]:
    dice = random.Random(count)
    return [
        Message.user(" ".join(dice.choices(WORDS, k=12)), name=f"speaker{n % 2}")
        for n in range(count)
    ]


async def timed(work, times: int) -> float:
    """Milliseconds for one, the median."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


async def by_size(count: int, name: str) -> list[str]:
    memory = VectorMemory(embedder=embedder_of(name))
    started = time.perf_counter()
    await memory.update(messages(count))
    filled = 1000 * (time.perf_counter() - started) / count
    await memory.set_goal("what about word17 and word99?")
    update = await timed(lambda: memory.update(messages(1)), 1)
    fresh = iter(messages(60))
    update = await timed(lambda: memory.update([next(fresh)]), 60)
    await memory.context()
    again = await timed(memory.context, 200)

    async def moved() -> None:
        memory._indexed.forget_answers()
        await memory.context()

    recalled = await timed(moved, 20)
    recall = await timed(lambda: memory.recall("word3 word200 word999"), 20)
    return [f"{value:.3f}" for value in (filled, update, again, recalled, recall)]


@contextmanager
def chroma_server(folder: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = "from chromadb.cli.cli import app; app()"
    where = ["run", "--path", folder, "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *where],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=1).close()
                break
            except OSError:
                continue
        yield url
    finally:
        process.kill()
        process.wait()


async def stall(make: Callable[[str], VectorMemory], count: int) -> str:
    """Milliseconds that embedding and storing take, and the longest stall."""
    async with make("first") as memory:
        await memory.update(messages(100))  # imports, model, connection
    memory = make("second")

    async def work() -> None:
        await memory.update(messages(count))
        await memory.aclose()  # which stores what is left

    return await watched(work)


async def watched(work) -> str:
    """Milliseconds that ``work`` takes, and its longest stall."""
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await anyio.sleep(0.001)
            now = time.perf_counter()
            longest = max(longest, now - last)
            last = now

    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        await anyio.sleep(0.01)
        started = time.perf_counter()
        await work()
        taken = time.perf_counter() - started
        await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    return f"{1000 * taken:.0f} | {1000 * longest:.0f}"


async def opened(count: int, name: str) -> str:
    """A row of the table of stored sessions."""
    with tempfile.TemporaryDirectory() as folder:
        async with VectorMemory(path=folder, embedder=embedder_of(name)) as memory:
            for start in range(0, count, 5_000):
                await memory.update(messages(count)[start : start + 5_000])
        memory = VectorMemory(path=folder, embedder=embedder_of(name))
        cells = [str(count), await watched(memory.open)]
        cells.append(await watched(lambda: memory.recall("word3 word200 word999")))
        cells.append(f"{await timed(lambda: memory.recall('word3 word200 word998'), 20):.1f}")
        await memory.aclose()
    return f"| {' | '.join(cells)} |"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the largest size")
    parser.add_argument(
        "--embedder", default="random", help="random (default), wordllama, minilm …"
    )
    options = parser.parse_args()
    print(
        "| messages | fill, ms each | update of one, ms | context, ms | the same, recalled again, ms | recall, ms |"
    )
    print("|---|---|---|---|---|---|")
    for count in (1_000, 10_000) if options.quick else (1_000, 10_000, 100_000):
        print(f"| {count} | {' | '.join(await by_size(count, 'random'))} |", flush=True)
    print(
        f"\n| 1,000 messages, embedder {options.embedder}, vectors | all, ms | longest stall, ms |"
    )
    print("|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as folder,
        chroma_server(str(Path(folder) / "server")) as url,
    ):
        journal = Path(folder) / "journal.db"
        places = {
            "in RAM": {},
            "in a folder": {"path": Path(folder) / "memory"},
            "on a server": {"url": url, "journal": journal},
        }
        for place, where in places.items():
            model = embedder_of(options.embedder)
            make = partial(VectorMemory, embedder=model, **where)
            cells = await stall(lambda name, make=make: make(session=name), 1_000)
            print(f"| {place} | {cells} |", flush=True)
    print("\n| stored messages | open, ms | stall | first recall, ms | stall | recall, ms |")
    print("|---|---|---|---|---|---|")
    for count in (1_000,) if options.quick else (1_000, 10_000, 100_000):
        print(await opened(count, options.embedder), flush=True)


if __name__ == "__main__":
    anyio.run(main)
