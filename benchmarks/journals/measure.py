"""Measure one group of figures of one contender and print them as JSON.

    python -m benchmarks.journals.measure '{"program": "ours", "group": "steps", …}'

Runs in the environment of the library; see ``Task``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.journals.places import Place, new_place
from benchmarks.peers.measure import QUIET

Figures = dict[str, float]
TIMES = 3
IN_PROCESS = ("none", "ram")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; texts are in characters."""

    hops: int = 200
    rounds: int = 10
    steps: int = 100
    message: int = 200
    calls: int = 40
    result: int = 50_000
    opened: tuple[int, ...] = (10_000, 100_000)


TINY = Sizes(hops=3, rounds=2, steps=3, calls=2, result=100, opened=(10, 20))


@dataclass(frozen=True, slots=True)
class Task:
    """What a process measures.

    Attributes:
        program: The module in ``programs``.
        storage: The kind of a place.
        durability: As the library calls it.
        server: The URL of the server, if the place is on one.
        group: What is measured, of ``GROUPS``.
        sizes: How much.
    """

    program: str
    storage: str
    durability: str
    server: str
    group: str
    sizes: Sizes

    def connected(self, place: Place) -> Any:
        program = import_module(f"benchmarks.journals.programs.{self.program}")
        return program.connected(self.storage, self.durability, place)


async def best(name: str, work: Callable[[], Awaitable[Any]], count: int) -> Figures:
    """Return the least wall and CPU microseconds of an item, after a call that warms up."""
    await work()
    wall = cpu = float("inf")
    for _ in range(TIMES):
        gc.collect()
        start, start_cpu = time.perf_counter(), time.process_time()
        await work()
        wall = min(wall, time.perf_counter() - start)
        cpu = min(cpu, time.process_time() - start_cpu)
    return {name: wall / count * 1e6, f"{name}_cpu": cpu / count * 1e6}


async def stored(
    task: Task, place: Place, name: str, work: Callable[[Any], Awaitable[Any]]
) -> Figures:
    """Return the bytes that a run writes and keeps, from its connection until that is closed."""
    async with task.connected(place) as runs:
        await runs.hops(2)  # so that the tables are there
    size, written = place.size(), place.written()
    async with task.connected(place) as runs:
        await work(runs)
    return {f"{name}_size": place.size() - size, f"{name}_written": place.written() - written}


async def steps(task: Task, place: Place) -> Figures:
    sizes = task.sizes
    say = (sizes.steps, sizes.message)
    found: Figures = {}
    if task.storage not in IN_PROCESS:
        found = await stored(task, place, "say", lambda runs: runs.say(*say))
        found["say_written"] /= sizes.steps
    async with task.connected(place) as runs:
        found |= await best("hop", partial(runs.hops, sizes.hops), sizes.hops)
        found |= await best("react", partial(runs.react, sizes.rounds), sizes.rounds)
        found |= await best("say", partial(runs.say, *say), sizes.steps)
    return found


async def fan_out(task: Task, place: Place) -> Figures:
    fan = (task.sizes.calls, task.sizes.result)
    found = await stored(task, place, "fan", lambda runs: runs.fan_out(*fan))
    async with task.connected(place) as runs:
        return found | await best("fan", partial(runs.fan_out, *fan), 1)


async def opening(task: Task, place: Place) -> Figures:
    found: Figures = {}
    async with task.connected(place) as runs:
        for count in task.sizes.opened:
            session = await runs.fill(count, task.sizes.message)
            for _ in range(TIMES):
                for name, value in (await opened(runs, session, count)).items():
                    key = f"{name}{count}"
                    found[key] = min(value, found.get(key, value))
    return found


async def opened(runs: Any, session: str, count: int) -> Figures:
    """Return the milliseconds of opening a session, and of its longest stall in another opening."""
    gc.collect()
    start = time.perf_counter()
    read = await runs.open(session)
    took = time.perf_counter() - start
    assert await read() == count + 1
    everything = time.perf_counter() - start
    del read
    gc.collect()
    async with watched() as stall:
        read = await runs.open(session)
    await read()
    return {"open": took * 1e3, "read": everything * 1e3, "stall": stall() * 1e3}


@asynccontextmanager
async def watched() -> AsyncIterator[Callable[[], float]]:
    """Yield what tells the longest time between two turns of a task that sleeps a millisecond."""
    longest = 0.0
    last = time.perf_counter()

    def look() -> float:
        nonlocal longest, last
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
        return longest

    async def watch() -> None:
        while True:
            look()
            await asyncio.sleep(0.001)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        yield lambda: longest
    finally:
        look()
        watching.cancel()


async def resume(task: Task, place: Place) -> Figures:
    step = (task.sizes.steps, task.sizes.message)
    took = []
    async with task.connected(place) as runs:
        session = await runs.interrupt(*step)
    for _ in range(TIMES + 1):
        gc.collect()
        start = time.perf_counter()
        async with (
            task.connected(place) as runs,
            aclosing(runs.resume(session, *step)) as events,
        ):
            await anext(events)
            took.append(time.perf_counter() - start)
    return {"resume": min(took[1:]) * 1e3}


GROUPS: dict[str, Callable[[Task, Place], Coroutine[Any, Any, Figures]]] = {
    "steps": steps,
    "fan_out": fan_out,
    "opening": opening,
    "resume": resume,
}


def main() -> None:
    os.environ.update(QUIET)
    given = json.loads(sys.argv[1])
    task = Task(**{**given, "sizes": Sizes(**given["sizes"])})
    with new_place(task.storage, task.server) as place:
        print(json.dumps(asyncio.run(GROUPS[task.group](task, place))))


if __name__ == "__main__":
    main()
