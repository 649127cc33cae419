"""A journal in a PostgreSQL database."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.checks import check_timeout, ttl_milliseconds
from agent_brain.memories.journal.postgres.layout import Layout
from agent_brain.memories.journal.sql.journal import SQLJournal

DURABILITIES = {
    "disk": "an append is on the server's disk when it returns",
    "memory": "the server may lose its last second if it dies",
}


class PostgresJournal(SQLJournal):
    """A journal in a PostgreSQL database, for any number of processes and machines.

    It connects at the first use and creates its tables, in a schema of their own. Calls run in
    worker threads, on asyncio and trio; those on different sessions do not wait for each other.
    Needs PostgreSQL 12 or newer, and ``pip install "agent-brain[postgres]"``::

        async with PostgresJournal("postgresql://me@db.example/app") as journal:
            memory = WindowedMemory(journal=journal, session="alice/42")

    A call whose connection breaks is repeated once where that is safe: if nothing was committed,
    and also at the end of a transaction for reading, leases, the removal of single entries, and an
    append with ``expect=``, which is recognised if it was done. Any other, and one that has no
    answer in time, raises a JournalError if it may have been done; a memory finds out by reading.

    What :meth:`delete` scrubs is gone for every client of the database when it returns, and the
    tables were vacuumed if the user owns them (or has ``MAINTAIN``) and no older transaction needs
    the rows. PostgreSQL does not overwrite: bytes remain in the free space of pages until new rows
    take it (``VACUUM FULL`` of the tables writes new files), and in its write-ahead log, the
    archive of that, replicas and backups until those are replaced.

    Args:
        url: The database, such as ``"postgresql://user:password@host:5432/database"``, with any
            parameters of libpq. What is missing comes from the environment (``PGHOST`` …).
        schema: The schema of the tables: ASCII letters, digits and underscores.
        pool_size: How many calls of an event loop may run at once, each in a connection.
        timeout: Seconds to wait for the server: to connect, while another process writes to the
            session, or for an answer.
        ttl: Seconds without a write after which a session is removed; None keeps it.
        durability: ``"disk"``: what was appended is on the server's disk. ``"memory"``: it is in
            the server's memory, which is faster, and what was appended in the last second may be
            lost if the server dies; nothing is ever written in part.
        readonly: Never write; for viewers, backups and replicas.

    Raises:
        MemoryDefinitionError: An argument is wrong.
        JournalError: The package psycopg is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "agent_brain",
        pool_size: int = 8,
        timeout: float = 30.0,
        ttl: float | timedelta | None = None,
        durability: Literal["disk", "memory"] = "disk",
        readonly: bool = False,
    ) -> None:
        _check_arguments(pool_size, timeout, durability)
        kept = ttl_milliseconds(ttl)
        try:
            from agent_brain.memories.journal.postgres.database import PostgresDatabase, read_url
        except ImportError as error:
            raise JournalError(
                f"PostgresJournal needs the package psycopg ({error}): "
                "pip install 'agent-brain[postgres]'"
            ) from error
        params, place = read_url(url)
        self._where = f"{place}, schema {schema}"
        self._server = PostgresDatabase(
            params,
            f"journal at {self._where}",
            Layout(schema),
            pool_size,
            timeout,
            durability=durability,
            readonly=readonly,
        )
        super().__init__(
            self._server, at_once=pool_size, patience=timeout, ttl=kept, readonly=readonly
        )

    def __repr__(self) -> str:
        return f"PostgresJournal({self._where})"

    @staticmethod
    def layout_sql(schema: str = "agent_brain", *, role: str | None = None) -> str:
        """Return the SQL that creates the tables, for a user that may not do it.

        Args:
            schema: The schema of the tables.
            role: A user who is granted what a journal needs.
        """
        return Layout(schema).to_sql(role)

    def same_as(self, other: Journal) -> bool:
        """See :meth:`Journal.same_as`: whether host, port, database and schema are the same."""
        return isinstance(other, PostgresJournal) and self._where == other._where


def _check_arguments(pool_size: int, timeout: float, durability: str) -> None:
    if durability not in DURABILITIES:
        has = "; ".join(f"{name!r}: {meaning}" for name, meaning in DURABILITIES.items())
        raise MemoryDefinitionError(
            f"durability={durability!r}: a PostgresJournal has {has}. PostgreSQL cannot leave a "
            "commit to the operating system, between the two"
        )
    if type(pool_size) is not int or pool_size < 1:
        raise MemoryDefinitionError(f"pool_size={pool_size!r}: give a whole number from 1")
    check_timeout("timeout", timeout)
