"""DBOS: connect to the database of a queue, start and end it in a worker. All of it blocks.

Needs the extra ``dbos``, so this module is imported when it is needed.
"""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_brain.common.lazy_exports import extra
from agent_brain.common.secrets import get_logger, scrub
from agent_brain.errors import QueueError
from agent_brain.workers.workflows import RUN, SCHEDULED

if TYPE_CHECKING:
    from agent_brain.workers.queue import RunQueue
    from agent_brain.workers.worker import Worker

with extra("dbos", QueueError):
    from dbos import DBOS, DBOSClient, Serializer
    from dbos import error as dbos_errors
    from sqlalchemy import Engine, event

SCHEMA = "agent_brain_queue"
NOT_OURS = "outcome was not recorded: the workflow is no longer owned by this execution"
log = get_logger(__name__)


class PlainJson(Serializer):
    """Stores JSON: what DBOS does by default, pickles, are programs."""

    def serialize(self, data: Any) -> str:
        """Return data as JSON."""
        return json.dumps(data, default=str, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> Any:
        """Return the data."""
        return json.loads(serialized_data)

    def name(self) -> str:
        """Return what identifies the format in the database."""
        return "json"


def _unixepoch(moment: str) -> float | None:
    """Return the seconds since 1970 of a moment: ``unixepoch('subsec')`` is that of now."""
    if moment == "subsec":
        return int(time.time() * 8) / 8  # a thousand times it, which DBOS stores, is whole
    with closing(sqlite3.connect(":memory:")) as database:
        seconds: float | None = database.execute("SELECT unixepoch(?)", (moment,)).fetchone()[0]
        return seconds


if sqlite3.sqlite_version_info < (3, 42):  # which answers 'subsec', as DBOS uses it, with NULL

    @event.listens_for(Engine, "connect")
    def _add_unixepoch(connection: object, record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.create_function("unixepoch", 1, _unixepoch)


class _ToOurLog(logging.Handler):
    """Passes records on to the log of the library, which hides secrets."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on; that a run was cancelled or taken over is not a fault."""
        text, error = record.getMessage(), record.exc_info and record.exc_info[1]
        if NOT_OURS in text or isinstance(error, dbos_errors.DBOSAwaitedWorkflowCancelledError):
            log.info("DBOS: %s", text)
        else:
            log.log(record.levelno, "DBOS: %s", text, exc_info=record.exc_info)


def route_log() -> None:
    """Send what DBOS logs to the log of the library; DBOS then makes no handler of its own."""
    theirs = logging.getLogger("dbos")
    if not any(isinstance(handler, _ToOurLog) for handler in theirs.handlers):
        theirs.addHandler(_ToOurLog())
    theirs.propagate = False
    theirs.setLevel(logging.WARNING)


PATIENCE = 30.0  # seconds to wait for others that use a file
CONNECTIONS = 10  # of a worker to the database, for DBOS


def connect(url: str, name: str) -> DBOSClient:
    """Return a client of the database of a queue, whose tables are created if they are missing.

    Raises:
        QueueError: The database cannot be used, or DBOS is not installed.
    """
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
    DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=math.ceil(seconds) + 5)
