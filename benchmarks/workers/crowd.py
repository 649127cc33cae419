"""Worker processes that are killed and started again while they do runs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from agent_brain.workers import QueueClient, QueuedRun, RunEvent
from benchmarks.workers.program import CALLS

PROGRAM = Path(__file__).with_name("program.py")


class Crowd:
    """Workers of one queue.

    Args:
        folder: Where they log.
        environment: Of their processes.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = {**os.environ, **environment}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.killed = 0

    def start(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker."""
        command = [sys.executable, "-m", "agent_brain", "worker", f"{PROGRAM}:queue"]
        with (self.folder / f"worker{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    @property
    def alive(self) -> list[subprocess.Popen[bytes]]:
        """The workers that have not ended."""
        return [process for process in self.processes if process.poll() is None]

    def kill_one(self, by: random.Random) -> None:
        """Kill a worker."""
        process = by.choice(self.alive)
        process.kill()
        process.wait()
        self.killed += 1

    def log(self) -> str:
        """Return what all have logged."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("worker*.log")))

    def end(self) -> None:
        """Kill all."""
        for process in self.alive:
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self.processes:
            process.wait()


@contextmanager
def crowd(folder: Path, place: str, **options: Any) -> Iterator[Crowd]:
    """Yield workers of a queue at ``place``, which are killed in the end."""
    environment = {
        "WORKERS_PLACE": place,
        "WORKERS_TRACE": str(folder / "trace"),
        "WORKERS_OPTIONS": json.dumps(options),
    }
    os.environ.update(environment)
    workers = Crowd(folder, environment)
    try:
        yield workers
    finally:
        workers.end()


async def kill_and_start(workers: Crowd, kills: int, every: float, by: random.Random) -> None:
    """Kill a worker and start another one, ``kills`` times."""
    for _ in range(kills):
        await anyio.sleep(by.uniform(every / 2, every * 1.5))
        workers.kill_one(by)
        await anyio.sleep(by.uniform(0, every / 2))
        workers.start()


async def submit_all(client: QueueClient, sessions: int) -> list[QueuedRun]:
    """Submit a run in each of many sessions."""
    return [
        await client.submit(
            "clerk", f"Task {number}", session=f"session {number}", tenant=f"tenant {number % 5}"
        )
        for number in range(sessions)
    ]


def problems_of_events(events: list[RunEvent]) -> list[str]:
    """Return what is wrong with the events of a run that a late reader gets."""
    found = []
    numbers = [event.number for event in events]
    if numbers != sorted(set(numbers)):
        found.append(f"numbers {numbers}")
    kinds = Counter(event.event.kind for event in events)
    if kinds["run_finished"] != 1 or events[-1].event.kind != "run_finished":
        found.append(f"{kinds['run_finished']} ends")
    if kinds["action_started"] != CALLS or kinds["action_finished"] != CALLS:
        found.append(f"{kinds['action_started']}/{kinds['action_finished']} calls")
    states = [e.event for e in events if e.event.kind in ("state_entered", "state_exited")]
    pairs = [(state.kind, state.step) for state in states]
    steps = len(pairs) // 2
    expected = [(kind, step) for step in range(steps) for kind in ("state_entered", "state_exited")]
    if pairs != expected:
        found.append(f"steps {pairs}")
    text = "".join(e.event.text for e in events if e.event.kind == "text_delta")
    if text != "I am working. " * (CALLS + 1) + f"Done after {CALLS} calls.":
        found.append(f"text {text!r}")
    return found


def problems_of_trace(path: Path, sessions: int) -> list[str]:
    """Return what is wrong with the traces of the calls."""
    calls = [json.loads(line) for line in path.read_text().splitlines()]
    keys: dict[tuple[str, int], set[str]] = {}
    for session, number, key in calls:
        keys.setdefault((session, number), set()).add(key)
    wanted = {(f"session {s}", n) for s in range(sessions) for n in range(CALLS)}
    found = [f"missing or more: {wanted ^ keys.keys()}"] if wanted != keys.keys() else []
    return found + [f"{call}: keys {found}" for call, found in keys.items() if len(found) > 1]
