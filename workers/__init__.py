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

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.errors import QueuedRunError as QueuedRunError
    from agent_brain.errors import QueueError as QueueError
    from agent_brain.errors import RunConflictError as RunConflictError
    from agent_brain.errors import RunNotFoundError as RunNotFoundError
    from agent_brain.errors import WorkerLostError as WorkerLostError
    from agent_brain.workers.client import QueueClient as QueueClient
    from agent_brain.workers.client import RunInfo as RunInfo
    from agent_brain.workers.event_log import RunEvent as RunEvent
    from agent_brain.workers.handle import QueuedRun as QueuedRun
    from agent_brain.workers.queue import RunQueue as RunQueue
    from agent_brain.workers.workflows import Status as Status
