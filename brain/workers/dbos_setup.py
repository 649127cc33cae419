"""DBOS as this package uses it: loaded when it is needed, with JSON and the log of the library."""

from __future__ import annotations

import json
import logging
from typing import Any

from agent_brain.errors import QueueError
from agent_brain.tools.secrets import get_logger

try:
    from dbos import DBOS, DBOSClient, Serializer
    from dbos import error as dbos_errors
except ModuleNotFoundError as missing:
    raise QueueError(
        f"The package {missing.name} is not installed: pip install 'agent-brain[dbos]'"
    ) from missing

__all__ = ["DBOS", "DBOSClient", "PlainJson", "config", "dbos_errors", "route_log"]

SCHEMA = "agent_brain_queue"
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


def config(url: str, *, name: str, version: str, worker: str, connections: int) -> dict[str, Any]:
    """Return the configuration of a worker."""
    return {
        "name": name,
        "system_database_url": url,
        "dbos_system_schema": SCHEMA,
        "sys_db_pool_size": connections,
        "application_version": version,
        "executor_id": worker,
        "serializer": PlainJson(),
        "log_level": "WARNING",
        "enable_otlp": False,
    }


class _ToOurLog(logging.Handler):
    """Passes records on to the log of the library, which hides secrets."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        log.log(record.levelno, "DBOS: %s", record.getMessage(), exc_info=record.exc_info)


def route_log() -> None:
    """Send what DBOS logs to the log of the library; DBOS then makes no handler of its own."""
    theirs = logging.getLogger("dbos")
    if not any(isinstance(handler, _ToOurLog) for handler in theirs.handlers):
        theirs.addHandler(_ToOurLog())
    theirs.propagate = False
    theirs.setLevel(logging.WARNING)
