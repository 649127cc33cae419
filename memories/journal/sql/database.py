"""What the statements of a journal need of a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    import sqlite3

    import psycopg

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Cursor: TypeAlias = "sqlite3.Cursor | psycopg.Cursor[Row]"  # the result of a statement
Kind: TypeAlias = Literal["read", "write", "lease"]  # of a transaction

SESSIONS = """\
CREATE TABLE {schema}sessions (
    id bigint PRIMARY KEY,   -- the first half of 128 bits of the SHA-256 of the key
    key {bytes} NOT NULL,    -- in UTF-8; in some databases a text has no NUL
    base bigint NOT NULL,    -- the number that its entries come after
    last bigint NOT NULL,    -- the last number; 0 for a session that has a lease and no entries yet
    live bigint NOT NULL,    -- how many entries it has
    retired bigint NOT NULL, -- how many its history has
    version bigint NOT NULL, -- the highest version of an entry
    created bigint NOT NULL, -- the times of its first and its last entry
    updated bigint NOT NULL,
    written bigint NOT NULL, -- when it was last written to
    checksum bigint NOT NULL,
    lease text,              -- its token, its owner, how long it lasts and when it ends
    owner text,
    lasts bigint,
    ends bigint
)"""
ENTRIES = """\
CREATE TABLE {schema}entries (
    session bigint NOT NULL,
    retired integer NOT NULL, -- 1 for an entry of the history
    seq bigint NOT NULL,
    kind text NOT NULL,
    version bigint NOT NULL,
    time bigint NOT NULL,
    checksum bigint NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (session, retired, seq)
)"""


class Transaction(ABC):
    """A transaction, and what the database writes in its own way.

    Parameters of a statement are written as ``?``. A result is read before the next statement.

    Attributes:
        clock: The time in milliseconds since 1970, as SQL.
        lease_clock: The clock that leases go by, in milliseconds, as SQL.
        lease_left: How many milliseconds a session's lease still lasts, as SQL.
        lock: What a SELECT ends with that locks its rows.
        lock_free: What a SELECT ends with that locks those rows that nobody else has locked.
    """

    clock: ClassVar[str]
    lease_clock: ClassVar[str]
    lease_left: ClassVar[str]
    lock: ClassVar[str] = ""
    lock_free: ClassVar[str] = ""

    @abstractmethod
    def execute(self, sql: str, params: Sequence[Any] = ()) -> Cursor:
        """Run a statement."""

    @abstractmethod
    def add_entries(self, rows: Sequence[Row]) -> None:
        """Add rows to the table of entries."""

    @abstractmethod
    def at_end(self, sql: str, params: Sequence[int]) -> None:
        """Run a statement when the transaction is committed."""

    def get(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        """Return the first row of the result, if there is one."""
        return self.execute(sql, params).fetchone()

    def get_one(self, sql: str, params: Sequence[Any] = ()) -> Row:
        """Return the row of a statement that always has one."""
        row = self.get(sql, params)
        assert row is not None
        return row

    def is_damage(self, error: Exception) -> bool:
        """Return whether an error of a statement says that the database is damaged."""
        return False

    def check_sessions(self) -> None:
        """Check that the table of sessions has all rows, where the database may lose some.

        Raises:
            JournalDamagedError: It has not.
        """


class Database(ABC):
    """A database with the tables of a journal.

    Attributes:
        place: Where it is, for people.
    """

    place: str

    @abstractmethod
    def open(self) -> None:
        """Connect, and check or create the tables. Called once, before anything else."""

    @abstractmethod
    def run(self, kind: Kind, work: Callable[[Transaction], T], *, again: bool = False) -> T:
        """Run ``work`` in a transaction and commit it.

        Args:
            kind: What for.
            work: Receives the transaction.
            again: Run it again if it is not known whether it was committed.

        Raises:
            LostError: The connection broke, and it may have been committed.
            JournalError: The database cannot do it.
        """

    def note_removal(self, tx: Transaction) -> None:
        """Note, in the transaction that removes entries, that :meth:`scrub` is to follow."""

    @abstractmethod
    def scrub(self, *, removed: bool) -> None:
        """Leave no copy of removed entries behind, as far as the database can.

        Args:
            removed: Whether the call has removed something; an earlier one may have failed here.
        """

    def hurry(self) -> None:
        """Wait for others only shortly from now on, as the journal is being closed."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections, when what runs in them has ended."""
