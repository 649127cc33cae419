"""Workers are killed before and after a run falls asleep; it is woken by others, and ends once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from subprocess import Popen

import pytest

from agent_brain.workers import QueueClient, QueuedRun
from benchmarks.workers.program import make_queue
from tests.workers.support import new_workers, until, until_ready

pytestmark = [pytest.mark.thorough, pytest.mark.anyio]


def traces(folder: Path) -> list[tuple[str, str]]:
    """The naps and the calls that workers have left traces of, and their processes."""
    path = folder / "trace"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(what, who) for what, who, *_ in map(json.loads, lines)]


async def until_traced(folder: Path, what: str, number: int = 1) -> None:
    """Wait until something has left so many traces."""

    async def left() -> bool:
        return sum(found == what for found, _ in traces(folder)) >= number

    await until(left)


def kill(worker: Popen[bytes]) -> None:
    worker.kill()
    worker.wait()


async def ended_once(client: QueueClient, run: QueuedRun, folder: Path) -> None:
    """Check that a run ends with one result, after one nap, and that its steps were done once."""
    result = await run.result()
    assert (result.stop_reason, result.answer) == ("done", "It is time.")
    assert await run.status() == "ended"
    reasons = [
        item.event.stop_reason async for item in run.events() if item.event.kind == "run_finished"
    ]
    assert reasons == ["sleeping", "done"]
    done = Counter(what for what, _ in traces(folder))
    assert done["told"] == 1
    assert [info.id for info in await client.list()] == [run.id]


async def asleep(run: QueuedRun) -> bool:
    return (await run._latest()).asleep


@asynccontextmanager
async def submitted(
    folder: Path, task: str, *, nap: float
) -> AsyncIterator[tuple[Callable[[], Popen[bytes]], Popen[bytes], QueueClient, QueuedRun]]:
    """Yield what starts another worker, the first one, a client, and a run with ``task``.

    It sleeps for ``nap`` seconds, in which a busy machine kills a worker.
    """
    with new_workers(folder, poll=0.05) as workers:
        start = partial(workers.start, WORKERS_NAP=str(nap))
        first = start()
        await until_ready(workers, 1)
        async with make_queue().client() as client:
            yield start, first, client, await client.submit("sleeper", task, session="s")


@pytest.mark.thorough
async def test_a_worker_is_killed_before_the_run_sleeps(tmp_path: Path) -> None:
    async with submitted(tmp_path, "hang first", nap=1) as (start, first, client, run):
        await until_traced(tmp_path, "hangs")  # in the step that would sleep
        kill(first)
        start()
        await ended_once(client, run, tmp_path)


@pytest.mark.thorough
async def test_workers_are_killed_while_the_run_sleeps(tmp_path: Path) -> None:
    async with submitted(tmp_path, "go", nap=6) as (start, first, client, run):
        await until(lambda: asleep(run))
        kill(first)
        kill(start())
        assert await run.status() == "queued"
        start()
        await ended_once(client, run, tmp_path)


@pytest.mark.thorough
async def test_a_worker_is_killed_when_it_has_woken_the_run(tmp_path: Path) -> None:
    async with submitted(tmp_path, "hang later", nap=0.5) as (start, first, client, run):
        await until_traced(tmp_path, "hangs")  # in the step after the nap
        kill(first)
        start()
        await ended_once(client, run, tmp_path)


async def test_the_time_passes_while_no_worker_lives(tmp_path: Path) -> None:
    async with submitted(tmp_path, "go", nap=6) as (start, first, client, run):
        await until(lambda: asleep(run))
        kill(first)
        wake_at = (await run._result(asleep=True)).wake_at
        assert wake_at is not None

        async def passed() -> bool:
            return datetime.now(UTC) > wake_at + timedelta(seconds=0.2)

        await until(passed)
        start()
        await ended_once(client, run, tmp_path)
