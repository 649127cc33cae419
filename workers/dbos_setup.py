"""DBOS as this package uses it: loaded when it is needed, with JSON and the log of the library."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from contextlib import closing
from typing import Any

from agent_brain.common.extras import extra
from agent_brain.common.secrets import get_logger
from agent_brain.errors import QueueError

with extra("dbos", QueueError):
    from dbos import DBOS, DBOSClient, Serializer
    from dbos import error as dbos_errors
    from sqlalchemy import Engine, event

__all__ = ["DBOS", "DBOSClient", "PlainJson", "dbos_errors", "route_log"]

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
