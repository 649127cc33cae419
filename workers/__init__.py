"""Runs on many machines: a queue of runs, and the workers that do them, over DBOS.

::

    queue = RunQueue("postgresql://me@db.example/app", {"support": Brain("react", tools=[…])})

    async with queue.client() as client:
        run = await client.submit("support", "Where is my order?", session="42")
        print((await run.result()).answer)

``agent-brain worker app:queue`` starts a worker. Needs ``pip install "agent-brain[dbos]"``, which
is loaded when a queue is first used.
"""

from __future__ import annotations

from agent_brain.errors import (
    QueuedRunError,
    QueueError,
    RunConflictError,
    RunNotFoundError,
    WorkerLostError,
)
from agent_brain.workers.client import QueueClient, RunInfo
from agent_brain.workers.event_log import RunEvent
from agent_brain.workers.handle import QueuedRun
from agent_brain.workers.queue import RunQueue
from agent_brain.workers.workflows import Status

__all__ = [
    "QueueClient",
    "QueueError",
    "QueuedRun",
    "QueuedRunError",
    "RunConflictError",
    "RunEvent",
    "RunInfo",
    "RunNotFoundError",
    "RunQueue",
    "Status",
    "WorkerLostError",
]
