"""Sessions a second, recovery and load of the database, while workers are killed.

``python -m benchmarks.workers postgresql://postgres@127.0.0.1/bench``: an empty database, which is
filled. Prints a table; exits with 1 if a run did not end once, or an event or a call is missing.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
import click
import psycopg

from agent_brain.workers import QueueClient, QueuedRun
from benchmarks.workers.crowd import (
    Crowd,
    crowd,
    kill_and_start,
    problems_of_events,
    problems_of_trace,
    submit_all,
)
from benchmarks.workers.program import make_queue

COUNTS = ("xact_commit", "xact_rollback", "tup_inserted", "tup_updated", "tup_deleted")


def counts(place: str) -> dict[str, int]:
    """Return what the database has done so far."""
    with psycopg.connect(place) as connection:
        query = f"SELECT {', '.join(COUNTS)} FROM pg_stat_database WHERE datname = %s"
        row = connection.execute(query, [connection.info.dbname]).fetchone()
    return dict(zip(COUNTS, row or (), strict=True))


def show_load(place: str, before: dict[str, int], runs: int) -> None:
    """Print the load since ``before``, for each run."""
    time.sleep(1.5)  # servers report once a second
    for name, count in counts(place).items():
        print(f"  {name:<14} {(count - before[name]) / runs:8.1f} per run")


async def wait_for_all(runs: list[QueuedRun]) -> None:
    for run in runs:
        result = await run.result()
        if result.stop_reason != "done":
            raise SystemExit(f"{run}: {result.stop_reason}")


async def measure_runs(
    place: str, client: QueueClient, workers: Crowd, sessions: int, kills: int, every: float
) -> None:
    """Do a run in each session while workers are killed."""
    before, begun = counts(place), time.perf_counter()
    runs = await submit_all(client, sessions)
    print(f"submitted      {sessions / (time.perf_counter() - begun):8.1f} a second")
    begun = time.perf_counter()
    async with anyio.create_task_group() as group:
        group.start_soon(kill_and_start, workers, kills, every, random.Random(0))
        await wait_for_all(runs)
        seconds = time.perf_counter() - begun
        group.cancel_scope.cancel()
    print(f"ended          {sessions / seconds:8.1f} a second, {workers.killed} workers killed")
    show_load(place, before, sessions)
    problems = problems_of_trace(workers.folder / "trace", sessions)
    for run in runs:
        problems += problems_of_events([event async for event in run.events()])
    if problems:
        raise SystemExit("\n".join(problems))


async def measure_recovery(client: QueueClient, workers: Crowd) -> None:
    """Kill the only worker that does a run; say when another one continues it."""
    run = await client.submit("clerk", "Work pause 0.5", session="recovery")
    events = run.events()
    while (await anext(events)).event.kind != "text_delta":
        pass
    [info] = await client.list(session="recovery")
    for process in workers.alive:
        if f"-{process.pid}_" in (info.worker or ""):
            process.kill()
            process.wait()
    begun = time.perf_counter()
    async for item in events:
        if item.undone or item.event.kind == "run_started":
            break
    print(f"recovery       {time.perf_counter() - begun:8.1f} s on one machine")
    await run.result()


async def measure_idle(place: str) -> None:
    """Print the load of workers without work."""
    before, seconds = counts(place), 10.0
    await anyio.sleep(seconds)
    await anyio.sleep(1.5)
    commits = counts(place)["xact_commit"] - before["xact_commit"]
    print(f"idle           {commits / (seconds + 1.5):8.1f} transactions a second, all workers")


def measure_dbos(place: str, number: int) -> None:
    """Do empty workflows of DBOS, in one process."""
    from dbos import DBOS

    settings: Any = {
        "name": "bare",
        "system_database_url": place,
        "dbos_system_schema": "bare",
        "log_level": "ERROR",
    }
    DBOS(config=settings)

    @DBOS.workflow()
    async def empty(number: int) -> int:
        return number

    DBOS.launch()
    DBOS.register_queue("bare", worker_concurrency=8, polling_interval_sec=0.2)

    async def run() -> None:
        handles = [await DBOS.enqueue_workflow_async("bare", empty, n) for n in range(number)]
        for handle in handles:
            await handle.get_result(polling_interval_sec=0.05)

    before, begun = counts(place), time.perf_counter()
    asyncio.run(run())
    print(f"DBOS alone     {number / (time.perf_counter() - begun):8.1f} empty workflows a second")
    show_load(place, before, number)
    DBOS.destroy()


async def measure(place: str, folder: Path, sessions: int, kills: int, every: float) -> None:
    with crowd(folder, place, at_once=8) as workers:
        for _ in range(3):
            workers.start()
        try:
            async with make_queue().client() as client:
                while workers.log().count("takes runs") < 3:  # noqa: ASYNC110 - of processes
                    await anyio.sleep(0.1)
                await measure_idle(place)
                await measure_runs(place, client, workers, sessions, kills, every)
                while len(workers.alive) < 2:
                    workers.start()
                await measure_recovery(client, workers)
        except BaseException:
            print(workers.log(), file=sys.stderr)
            raise


@click.command()
@click.argument("place")
@click.option("--sessions", default=300, show_default=True)
@click.option("--kills", default=12, show_default=True)
@click.option("--every", default=8.0, show_default=True, help="Seconds between kills.")
def main(place: str, sessions: int, kills: int, every: float) -> None:
    """Measure runs on three workers, beside empty workflows of DBOS."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(place, Path(folder), sessions, kills, every))
    measure_dbos(place, sessions)


if __name__ == "__main__":
    main()
