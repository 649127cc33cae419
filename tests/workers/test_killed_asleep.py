"""Workers are killed before and after a run falls asleep; it is woken by others, and ends once."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import Popen

import pytest

from agent_brain.workers import QueueClient, QueuedRun
from benchmarks.workers.crowd import Crowd
from benchmarks.workers.program import make_queue
from tests.workers.support import new_workers, until, until_ready

pytestmark = pytest.mark.anyio


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


def start(workers: Crowd, nap: float) -> Popen[bytes]:
    return workers.start(WORKERS_NAP=str(nap))


async def test_a_worker_is_killed_before_the_run_sleeps(tmp_path: Path) -> None:
    with new_workers(tmp_path, poll=0.05) as workers:
        first = start(workers, 1)
        await until_ready(workers, 1)
        async with make_queue().client() as client:
            run = await client.submit("sleeper", "hang first", session="s")
            await until_traced(tmp_path, "hangs")  # in the step that would sleep
            kill(first)
            start(workers, 1)
            await ended_once(client, run, tmp_path)


async def test_workers_are_killed_while_the_run_sleeps(tmp_path: Path) -> None:
    with new_workers(tmp_path, poll=0.05) as workers:
        first = start(workers, 2)
        await until_ready(workers, 1)
        async with make_queue().client() as client:
            run = await client.submit("sleeper", "go", session="s")
            await until(lambda: asleep(run))
            kill(first)
            kill(start(workers, 2))
            assert await run.status() == "queued"
            start(workers, 2)
            await ended_once(client, run, tmp_path)


async def test_a_worker_is_killed_when_it_has_woken_the_run(tmp_path: Path) -> None:
    with new_workers(tmp_path, poll=0.05) as workers:
        first = start(workers, 0.5)
        await until_ready(workers, 1)
        async with make_queue().client() as client:
            run = await client.submit("sleeper", "hang later", session="s")
            await until_traced(tmp_path, "hangs")  # in the step after the nap
            kill(first)
            start(workers, 0.5)
            await ended_once(client, run, tmp_path)


async def test_the_time_passes_while_no_worker_lives(tmp_path: Path) -> None:
    with new_workers(tmp_path, poll=0.05) as workers:
        first = start(workers, 1)
        await until_ready(workers, 1)
        async with make_queue().client() as client:
            run = await client.submit("sleeper", "go", session="s")
            await until(lambda: asleep(run))
            kill(first)
            wake_at = (await run._result(asleep=True)).wake_at
            assert wake_at is not None

            async def passed() -> bool:
                return datetime.now(UTC) > wake_at + timedelta(seconds=0.2)

            await until(passed)
            start(workers, 1)
            await ended_once(client, run, tmp_path)
