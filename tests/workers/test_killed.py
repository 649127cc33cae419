"""Workers are killed and stopped while they do runs; others continue these."""

from __future__ import annotations

import signal
from pathlib import Path
from subprocess import Popen

import anyio
import pytest

from agent_brain.workers import QueueClient
from benchmarks.workers.crowd import Crowd, problems_of_events, problems_of_trace, submit_all
from benchmarks.workers.program import make_queue
from tests.workers.support import new_workers, until, until_ready

pytestmark = [pytest.mark.thorough, pytest.mark.anyio]
SESSIONS = 20


async def test_each_run_ends_once_although_workers_are_killed_and_stopped(tmp_path: Path) -> None:
    with new_workers(tmp_path, at_once=8, poll=0.05, dead_after=3) as workers:
        killed, stopped, _ = [workers.start() for _ in range(3)]
        await until_ready(workers, 3)
        async with make_queue().client() as client:
            runs = await submit_all(client, SESSIONS)
            await until_it_runs(client, killed)
            killed.kill()
            await until_it_runs(client, stopped)
            stopped.send_signal(signal.SIGSTOP)

            async with anyio.create_task_group() as group:
                group.start_soon(keep_one, workers, stopped)
                results = [await run.result() for run in runs]
                group.cancel_scope.cancel()
            stopped.send_signal(signal.SIGCONT)
            await until(lambda: has_ended(stopped))
            events = {run.id: [event async for event in run.events()] for run in runs}

    assert {result.stop_reason for result in results} == {"done"}
    assert [bad for of in events.values() if (bad := problems_of_events(of))] == []
    assert problems_of_trace(tmp_path / "trace", SESSIONS) == []
    assert stopped.returncode == 1
    assert "This worker was silent for more than 3 s" in (tmp_path / "worker1.log").read_text()


async def keep_one(workers: Crowd, stopped: Popen[bytes]) -> None:
    """Start a worker if all others have ended: a busy machine may keep one silent for 3 seconds."""
    while True:
        await anyio.sleep(0.5)
        if workers.alive == [stopped]:
            workers.start()


async def until_it_runs(client: QueueClient, worker: Popen[bytes]) -> None:
    """Wait until a worker does a run, or none is left to do."""

    async def runs() -> bool:
        infos = await client.list(limit=SESSIONS)
        if all(info.status == "ended" for info in infos):
            return True
        infos = await client.list(limit=SESSIONS, status="running")
        return any(f"-{worker.pid}_" in (info.worker or "") for info in infos)

    await until(runs)


async def has_ended(worker: Popen[bytes]) -> bool:
    return worker.poll() is not None
