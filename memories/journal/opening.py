"""Journals by their place: the path of a file, or the URL of a server."""

from __future__ import annotations

from os import PathLike, fspath

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.journal.base import Journal


def open_journal(place: str | PathLike[str], *, readonly: bool = False) -> Journal:
    """Return the journal at a place; its caller closes it.

    Args:
        place: The path of a SQLite file, ``redis://…`` (or ``rediss://…``), or ``postgresql://…``.
        readonly: Never write to it.

    Raises:
        MemoryDefinitionError: It is a URL of something else.
        JournalError: The extra for it is not installed.
    """
    text = fspath(place)
    scheme, separator, _ = text.partition("://")
    if not separator:
        from agent_brain.memories.journal.sqlite.journal import SQLiteJournal

        return SQLiteJournal(place, readonly=readonly)
    if scheme in ("redis", "rediss", "unix"):
        from agent_brain.memories.journal.redis.journal import RedisJournal

        return RedisJournal(text, readonly=readonly)
    if scheme in ("postgres", "postgresql"):
        from agent_brain.memories.journal.postgres.journal import PostgresJournal

        return PostgresJournal(text, readonly=readonly)
    raise MemoryDefinitionError(
        f"journal='{scheme}://…' is not the place of a journal: give the path of a SQLite file, "
        "redis://… or postgresql://…"
    )
