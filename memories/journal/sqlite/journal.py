"""A journal in a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias

from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.checks import check_timeout, ttl_milliseconds
from agent_brain.memories.journal.sql.database import Transaction
from agent_brain.memories.journal.sql.journal import SQLJournal
from agent_brain.memories.journal.sqlite.database import IN_RAM, SQLiteDatabase
from agent_brain.memories.journal.sqlite.errors import is_damage

Durability: TypeAlias = Literal["disk", "os", "memory"]


class SQLiteJournal(SQLJournal):
    """A journal in a SQLite file in write-ahead mode.

    The file is opened at the first use. Calls run in a worker thread, one at a time, on asyncio
    and trio. Several processes of one machine may use a file at once::

        async with SQLiteJournal("brain.db") as journal:
            memory = WindowedMemory(journal=journal, session="alice/42")

    A deletion with ``scrub=True`` rewrites the whole file and empties the ``-wal`` file, so that no
    byte of what was deleted is left in them; if another process reads the file meanwhile, it raises
    an error and is finished by the next such deletion or opening. Copies of the file, snapshots of
    the file system and freed blocks of the disk are out of its reach.

    Args:
        path: The file, created if it is missing; its folder is not. A relative path starts at the
            folder that the process is in now. ``":memory:"`` is a database in RAM.
        durability: ``"disk"`` (default): what was appended survives a power failure. ``"os"``: it
            survives the end of the process, however it ends; a power failure may take the last
            appends, and what is before them stays whole. ``"memory"`` is for ``":memory:"``, which
            has no other.
        ttl: How long a session is kept after the last append to it, in seconds or as a timedelta;
            None for ever. After that it is as if it were deleted. It is removed when the file is
            opened, at times during appends, and by :meth:`purge`, which also rewrites the file.
        busy_timeout: Seconds to wait while another process writes.
        readonly: Never write to the file or create it; for viewers and backups.
        accept_loss: Open the file although its ``-wal`` file is missing, without the writes that
            are lost with it. Otherwise that is an error, as the file may be put back.

    Raises:
        MemoryDefinitionError: The path, a time or ``durability`` cannot be used.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        durability: Durability | None = None,
        ttl: float | timedelta | None = None,
        busy_timeout: float = 30.0,
        readonly: bool = False,
        accept_loss: bool = False,
    ) -> None:
        self.path = _path(path)
        if self.path == IN_RAM and (readonly or accept_loss):
            raise MemoryDefinitionError(
                "readonly= and accept_loss= are for files: ':memory:' is new"
            )
        self.durability = _durability(self.path, durability)
        check_timeout("busy_timeout", busy_timeout, least=0)
        self._file = SQLiteDatabase(
            self.path,
            busy_timeout,
            readonly=readonly,
            synchronous="FULL" if self.durability == "disk" else "NORMAL",
            accept_loss=accept_loss,
        )
        super().__init__(
            self._file,
            at_once=1,
            patience=busy_timeout,
            ttl=ttl_milliseconds(ttl),
            readonly=readonly,
        )

    def __repr__(self) -> str:
        return f"SQLiteJournal({self.path!r})"

    async def readable_sessions(self) -> list[str]:
        """Return the keys that can be found in a damaged file; for ``salvage()``."""
        return sorted(await self._call(lambda: self._database.run("read", _readable_keys)))

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`; two objects may use one file."""
        if not isinstance(other, SQLiteJournal) or IN_RAM in (self.path, other.path):
            return self is other
        return os.path.realpath(self.path) == os.path.realpath(other.path)


def _readable_keys(tx: Transaction) -> set[str]:
    """Return the keys in the table and in its index, from both ends up to what cannot be read."""
    found: set[str] = set()
    for table in ("NOT INDEXED ORDER BY rowid", "INDEXED BY sessions_by_key ORDER BY key"):
        for direction in ("ASC", "DESC"):
            try:
                for (key,) in tx.execute(f"SELECT key FROM sessions {table} {direction}"):
                    found |= {key.decode(errors="replace")} if isinstance(key, bytes) else set()
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
    return found


def _durability(path: str, wanted: Durability | None) -> Durability:
    has: tuple[Durability, ...] = ("memory",) if path == IN_RAM else ("disk", "os")
    if wanted is not None and wanted not in has:
        why = (
            "':memory:' ends with the process"
            if path == IN_RAM
            else "a file is on a disk, and what was written survives the end of the process"
        )
        raise MemoryDefinitionError(
            f"SQLiteJournal({path!r}) has no durability={wanted!r}, as {why}: use "
            + " or ".join(map(repr, has))
        )
    return wanted or has[0]


def _path(path: object) -> str:
    """Return the absolute path, which stays the same when the process changes its folder."""
    text = fspath(path) if isinstance(path, str | PathLike) else path
    if not isinstance(text, str) or not text or "\0" in text:
        raise MemoryDefinitionError(
            f"SQLiteJournal takes the path of a file, or {IN_RAM!r}, not {path!r}"
        )
    return text if text == IN_RAM else str(Path(text).absolute())
