"""Connect to the database of a queue, and start and end DBOS in a worker. All of it blocks."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_brain.common.secrets import scrub
from agent_brain.errors import QueueError
from agent_brain.workers.workflows import RUN, SCHEDULED

if TYPE_CHECKING:
    from dbos import DBOSClient

    from agent_brain.workers.queue import RunQueue
    from agent_brain.workers.worker import Worker

PATIENCE = 30.0  # seconds to wait for others that use a file
CONNECTIONS = 10  # of a worker to the database, for DBOS


def connect(url: str, name: str) -> DBOSClient:
    """Return a client of the database of a queue, whose tables are created if they are missing.

    Raises:
        QueueError: The database cannot be used, or DBOS is not installed.
    """
    from agent_brain.workers.dbos_setup import DBOS, SCHEMA, DBOSClient, PlainJson, route_log

    route_log()
    try:
        if url.startswith("sqlite:///"):
            _prepare_file(Path(url.removeprefix("sqlite:///")))
        DBOS.migrate(url, schema=SCHEMA)
        return DBOSClient(
            system_database_url=url,
            dbos_system_schema=SCHEMA,
            serializer=PlainJson(),
            application_name=name,
        )
    except Exception as error:
        raise QueueError(
            f"The database of the queue cannot be used: {scrub(str(error))}"
        ) from error


def _prepare_file(path: Path) -> None:
    """Let readers and writers of a new SQLite file not wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")


def launch(queue: RunQueue, worker: Worker, client: DBOSClient, name: str) -> None:
    """Start DBOS in this process, as a worker of that name.

    Raises:
        QueueError: The process uses DBOS already, or the database cannot be used.
    """
    from agent_brain.workers.dbos_setup import DBOS, SCHEMA, PlainJson

    _register(queue, client)
    DBOS(
        config={
            "name": queue.name,
            "system_database_url": queue.url,
            "dbos_system_schema": SCHEMA,
            "sys_db_pool_size": CONNECTIONS,
            "application_version": queue.version,
            "executor_id": name,
            "serializer": PlainJson(),
            "log_level": "WARNING",
            "enable_otlp": False,
        }
    )
    if DBOS.executor_id != name:
        raise QueueError("This process uses DBOS already: start the worker in one of its own")

    async def run(data: Any) -> Any:
        return await worker.run_workflow(data)

    async def scheduled(due: str, data: Any) -> None:
        await worker.run_scheduled(due, data)

    DBOS.workflow(name=RUN, max_recovery_attempts=None)(run)
    DBOS.workflow(name=SCHEDULED)(scheduled)
    DBOS.launch()


def _register(queue: RunQueue, client: DBOSClient) -> None:
    """Store the limits and the schedules of a queue."""
    most = queue.in_all or math.inf
    client.register_queue(
        queue.name,
        worker_concurrency=int(min(queue.at_once, most)),
        global_concurrency=queue.in_all,
        partition_concurrency=queue.per_tenant and int(min(queue.per_tenant, most)),
        polling_interval_sec=queue.poll,
    )
    schedules: list[Any] = [
        {
            "schedule_name": f"{queue.name}:{name}",
            "workflow_name": SCHEDULED,
            "schedule": schedule.cron,
            "cron_timezone": schedule.timezone,
            "context": schedule.run.to_json(),
        }
        for name, schedule in queue.schedules.items()
    ]
    if schedules:
        client.apply_schedules(schedules)


def rewrite_file(url: str) -> None:
    """Rewrite the file of a queue without what was removed from it; for a server, do nothing.

    Raises:
        QueueError: Others use the file all the time.
    """
    path = url.removeprefix("sqlite:///")
    if path == url or not Path(path).exists():
        return
    try:
        with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as database:
            database.execute("VACUUM")
            busy = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite3.OperationalError as error:
        busy = error
    if busy:
        raise QueueError(
            f"The runs are removed, but bytes of them may be left in {path}: others use the file. "
            "Call it again"
        )


def end(seconds: float) -> None:
    """End DBOS in this process, once its workflows have ended.

    Args:
        seconds: How long to wait for them, before they are given up.
    """
    from agent_brain.workers.dbos_setup import DBOS

    DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=math.ceil(seconds) + 5)
