"""Errors of PostgreSQL, as errors of a journal."""

from __future__ import annotations

import re

import psycopg

from agent_brain.common.secrets import scrub
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.threaded import LostError

_DAMAGED = "is damaged ({said}): restore the database from a backup. Nothing was changed"
_RIGHTS = (
    "may not be used by this user ({said}): grant it what PostgresJournal.layout_sql(role=…) says, "
    "or open it with readonly=True"
)
_READ_ONLY = (
    "may not be written to ({said}): the server is a replica, or this database, user or session is "
    "set to read only. Name the primary server in the URL, or open it with readonly=True"
)
_FULL = (
    "has no room ({said}): free space on the server. Nothing of this call was written, and what "
    "was written before is whole"
)
_TOO_MANY = (
    "takes no more connections ({said}). Nothing was written: close those that are not needed, "
    "lower pool_size= in each process, raise the limit of the server, the database or the user, or "
    "put a connection pooler in front of the server"
)
_MISSING = (
    "has lost a table or a column ({said}): somebody has changed its schema. Restore it from a "
    "backup, or choose another schema="
)
_ENDED = "was stopped by its server ({said}): try again when it runs. Nothing was written"
_SLOW = (
    "did not answer in time ({said}): the server is busy, or another process keeps the session "
    "locked. Nothing was written: try again, or raise timeout="
)
_NO_SERVER = (
    "cannot be reached ({said}): check that the server runs and takes more connections, and the "
    "host, the port, the database, the user and the password in the URL"
)
_LOST = "lost its connection ({said}). Nothing was written: try again"
_DOUBT = (
    "lost its connection while it was writing ({said}), so it is not known whether that was "
    "written: read the session to see"
)
_MEANINGS = {  # by what the SQLSTATE begins with
    "25006": _READ_ONLY,
    "25P03": _SLOW,
    "28": _NO_SERVER,
    "3D": _NO_SERVER,
    "3F": _MISSING,
    "42501": _RIGHTS,
    "42703": _MISSING,
    "42P01": _MISSING,
    "53100": _FULL,
    "53300": _TOO_MANY,
    "55P03": _SLOW,
    "57014": _SLOW,
    "57P": _ENDED,
    "58": "cannot be used: its server has a problem with its files ({said})",
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
}

# There is no SQLSTATE before there is a connection; what servers and poolers say instead.
_MANY = re.compile(
    "too many (clients|connections)|connection slots are reserved|no more connections allowed"
    "|max clients reached",
    re.IGNORECASE,
)


def explain(
    place: str,
    error: psycopg.Error,
    *,
    connecting: bool = False,
    lost: bool = False,
    in_doubt: bool = False,
) -> JournalError:
    """Return the error of a journal for an error of psycopg.

    Args:
        place: The journal, for people.
        error: The error.
        connecting: Whether there was no connection yet.
        lost: Whether there is no connection any more.
        in_doubt: Whether what was written may have been committed.
    """
    # The details of the server would quote the data.
    said = scrub(error.diag.message_primary or str(error).strip().replace("\n", " "))
    if in_doubt:
        meaning = _DOUBT
    else:
        state = error.sqlstate or ""
        default = _LOST if not state else "cannot be used ({said})"
        if connecting:
            default = _TOO_MANY if _MANY.search(said) else _NO_SERVER
        found = (said for start, said in _MEANINGS.items() if state.startswith(start))
        meaning = next(found, default)
    text = f"The {place} {meaning.format(said=said)}"
    return LostError(text, in_doubt=in_doubt) if lost else JournalError(text)
