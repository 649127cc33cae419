"""Errors of SQLite as errors of a journal."""

from __future__ import annotations

import sqlite3

from agent_brain.memories.errors import JournalDamagedError, JournalError

_DAMAGED = (
    "is damaged or not a SQLite file ({said}): restore it from a backup, or copy what can be read "
    "into a new one with 'agent-brain sessions salvage'. Nothing was changed"
)
_LOCKED = "stayed locked by another process ({said}): try again, or raise busy_timeout="
_MEANINGS = {
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: _DAMAGED,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened ({said}): check that it and its folder exist and may be written to"
    ),
    sqlite3.SQLITE_READONLY: (
        "may not be written to ({said}): check the permissions of the file and its folder and how "
        "the file system is mounted, or open it with readonly=True"
    ),
    sqlite3.SQLITE_PERM: "may not be opened ({said}): check the permissions of the file",
    sqlite3.SQLITE_FULL: (
        "has no room ({said}): free space on its file system. Nothing of this call was written, "
        "and what was written before is whole"
    ),
    sqlite3.SQLITE_IOERR: (
        "could not be read or written by the operating system ({said}): check the file system, its "
        "free space and its limits, then try again. Leave the file and its -wal file where they "
        "are: what was written before is in them"
    ),
    sqlite3.SQLITE_TOOBIG: "cannot hold an entry as large as this one ({said}): split it",
}


def is_damage(error: Exception) -> bool:
    """Return whether an error says that the file is not what was written."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the high bits have the details
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT):
        return True
    undecodable = str(error).startswith("Could not decode to UTF-8")
    return undecodable or isinstance(error, UnicodeDecodeError)


def corrupt(said: str) -> sqlite3.DatabaseError:
    """Return the error of SQLite for a file that is not what was written."""
    error = sqlite3.DatabaseError(said)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def explain(place: str, error: Exception) -> JournalError:
    """Return the error of a journal for an error of SQLite."""
    said = str(error)
    if isinstance(error, OverflowError):
        return JournalError(f"A number is too large for the {place}: {said}")
    if isinstance(error, UnicodeDecodeError) or said.startswith("Could not decode to UTF-8"):
        said = "a text in it is not UTF-8"  # without quoting it
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    meaning = _DAMAGED if is_damage(error) else _MEANINGS.get(code, "cannot be used ({said})")
    message = f"The {place} {meaning.format(said=said)}"
    if meaning is _DAMAGED:
        return JournalDamagedError(message, session="")
    return JournalError(message)
