"""The SQLite file of a journal: opening it, its transactions, and rewriting it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from agent_brain.common.ids import new_id
from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalDamagedError, JournalError
from agent_brain.memories.journal.base import ADVICE
from agent_brain.memories.journal.lease import Owner
from agent_brain.memories.journal.sql.database import (
    ENTRIES,
    SESSIONS,
    Database,
    Kind,
    Row,
    Transaction,
)
from agent_brain.memories.journal.sqlite.errors import corrupt, explain, is_damage
from agent_brain.memories.journal.sqlite.log import Log, check_log, log_of, unmark

log = get_logger(__name__)
T = TypeVar("T")
IN_RAM = ":memory:"
APPLICATION_ID = 0x41425250  # says in the file's header that it is a journal of Agent Brain
VERSION = 4
HURRIED = 1000  # milliseconds to wait for other processes when closing
TABLES = (
    """CREATE TABLE journal (
    id text NOT NULL,          -- tells this file from others
    open integer NOT NULL,     -- whether the -wal file has writes
    deleted bigint NOT NULL,   -- the highest number of a session that was deleted
    to_scrub bigint NOT NULL,  -- how many removals wanted the file to be rewritten
    scrubbed bigint NOT NULL   -- how many of them are done with
)""",
    SESSIONS.format(schema="", bytes="blob"),
    ENTRIES.format(schema=""),
    "CREATE INDEX sessions_by_key ON sessions (key)",  # a copy of the keys, for salvage()
)
_ADD = f"INSERT INTO entries VALUES ({', '.join('?' * 8)})"


class SQLiteTransaction(Transaction):
    """A transaction on a SQLite file, which has the whole file."""

    clock = "clock()"
    lease_clock = "lease_clock()"
    lease_left = "lease_left(owner, lasts, ends)"

    def __init__(self, db: sqlite3.Connection) -> None:
        self.cursor = db.cursor()  # one, as a result that is left halfway keeps a transaction open
        self.end: tuple[str, Sequence[int]] | None = None

    def execute(self, sql: str, params: Sequence[Any] = ()) -> sqlite3.Cursor:
        """See :meth:`Transaction.execute`."""
        return self.cursor.execute(sql, params)

    def add_entries(self, rows: Sequence[Row]) -> None:
        """See :meth:`Transaction.add_entries`."""
        self.cursor.executemany(_ADD, rows)

    def at_end(self, sql: str, params: Sequence[int]) -> None:
        """See :meth:`Transaction.at_end`."""
        self.end = sql, params

    def is_damage(self, error: Exception) -> bool:
        """See :meth:`Transaction.is_damage`."""
        return is_damage(error)

    def check_sessions(self) -> None:
        """See :meth:`Transaction.check_sessions`."""
        if (found := self.get_one("PRAGMA integrity_check(sessions)")[0]) != "ok":
            raise JournalDamagedError(
                f"The list of the sessions is damaged: {found}. {ADVICE}", session=""
            )


class _Connection(sqlite3.Connection):
    """Closes with the journal that has it: from Python 3.13 on, SQLite's own warns instead."""

    def __del__(self) -> None:
        with suppress(sqlite3.Error):  # of a file that could not be opened
            self.close()


class SQLiteDatabase(Database):
    """The file of a journal, with a connection for leases beside that for everything else.

    Args:
        path: The file's absolute path, or :data:`IN_RAM`.
        busy_timeout: Seconds to wait for other processes.
        readonly: Whether it must not be written to.
        synchronous: SQLite's name of how durable a write is.
        accept_loss: Whether writes in a lost log may be missing.
    """

    def __init__(
        self,
        path: str,
        busy_timeout: float,
        *,
        readonly: bool = False,
        synchronous: str = "FULL",
        accept_loss: bool = False,
    ) -> None:
        self.path = path
        self.place = f"journal {path!r}"
        self._busy_timeout = busy_timeout
        self._readonly = readonly
        self._synchronous = synchronous
        self._accept_loss = accept_loss
        self._in_ram = path == IN_RAM
        self.main: sqlite3.Connection | None = None
        self.beside: sqlite3.Connection | None = None  # does not wait for the disk
        self._lock = threading.Lock()
        self._beside_lock = self._lock if self._in_ram else threading.Lock()
        self._files = _Files([])
        self._log = Log(None if self._in_ram else path)

    def open(self) -> None:
        """Open the file; create it if it is missing or empty.

        Raises:
            JournalError: It is not a journal, or one of another version.
        """
        if not self._in_ram:
            check_log(self.path, accept_loss=self._accept_loss)
        with self._lock, self._explained():
            db = self._connect("ro" if self._readonly else "rwc")
            try:
                self._prepare(db)
            except BaseException:
                db.close()
                raise
            self.main = db
            if not self._in_ram:
                self._files = _Files([Path(self.path), log_of(self.path)])

    def _connect(self, mode: str) -> sqlite3.Connection:
        db = sqlite3.connect(
            IN_RAM if self._in_ram else f"{Path(self.path).as_uri()}?mode={mode}",
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            factory=_Connection,
            uri=not self._in_ram,
        )
        db.create_function("clock", 0, _clock)
        db.create_function("lease_clock", 0, _lease_clock)
        db.create_function("lease_left", 3, _lease_left)
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        is_new = self._is_empty(db)
        if self._readonly:
            return
        _write_ahead(db, self._busy_timeout)
        _set_up(db, self._synchronous)
        if is_new:
            with _writing(db):
                if not db.execute("SELECT 1 FROM sqlite_master").fetchone():  # or another one did
                    _create(db)
        unmark(db)
        try:
            self._scrub(db)  # a process was stopped between removing and rewriting
        except sqlite3.OperationalError as error:  # the note stays, and so does the journal
            log.warning("Deleted entries could not be wiped from the file yet: %s", error)

    def _is_empty(self, db: sqlite3.Connection) -> bool:
        """Return whether the file is empty; refuse what is not a journal of this layout."""
        with _reading(db):  # another process may be creating the tables
            application = db.execute("PRAGMA application_id").fetchone()[0]
            version = db.execute("PRAGMA user_version").fetchone()[0]
            objects = db.execute("SELECT rootpage, sql FROM sqlite_master").fetchall()
        if not (application or version or objects):
            return True
        if application != APPLICATION_ID:
            raise JournalError(
                f"{self.path!r} is a SQLite database of something else, not a journal: choose "
                "another file"
            )
        if version != VERSION:
            raise JournalError(
                f"The {self.place} has layout version {version}; this library reads version "
                f"{VERSION}. Open it with the library that wrote it"
            )
        # A damaged page number would lead to the rows of another table.
        pages = [page for page, _ in objects]
        if [sql for _, sql in objects if sql] != [*TABLES] or pages != [
            *range(pages[0], pages[0] + len(pages))
        ]:
            raise corrupt("its tables are not those of a journal")
        return False

    def run(self, kind: Kind, work: Callable[[Transaction], T], *, again: bool = False) -> T:
        """See :meth:`Database.run`."""
        leasing = kind == "lease"
        with self._beside_lock if leasing else self._lock, self._explained():
            self._files.check()
            db = self._beside() if leasing else self._open_main()
            if kind != "read":
                self._log.before_write(db)
            done = _do(db, work, writes=kind != "read")
            self._files.check()
            return done

    def _open_main(self) -> sqlite3.Connection:
        if self.main is None:
            raise JournalError(f"The {self.place} is closed: make a new SQLiteJournal")
        return self.main

    def _beside(self) -> sqlite3.Connection:
        if self._in_ram:
            return self._open_main()
        if self.beside is None:
            self._open_main()
            self.beside = self._connect("rw")  # which never creates it
            _set_up(self.beside, "NORMAL")
        return self.beside

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, OverflowError) as error:  # its message may not be text
            raise explain(self.place, error) from error

    def note_removal(self, tx: Transaction) -> None:
        """See :meth:`Database.note_removal`."""
        tx.execute("UPDATE journal SET to_scrub = to_scrub + 1")

    def scrub(self, *, removed: bool) -> None:
        """Rewrite the file without free space, and empty the log, if a removal wanted it."""
        with self._lock, self._explained():
            self._scrub(self._open_main())

    def _scrub(self, db: sqlite3.Connection) -> None:
        """``PRAGMA secure_delete`` alone is not enough: pages that were split keep old rows."""
        noted, scrubbed = db.execute("SELECT to_scrub, scrubbed FROM journal").fetchone()
        if noted <= scrubbed:
            return
        deadline = time.monotonic() + self._busy_timeout
        try:
            db.execute("VACUUM")
        except sqlite3.OperationalError as error:
            raise sqlite3.OperationalError(
                "the entries are deleted, but the file could not be rewritten without their bytes "
                f"({error}), which takes as much space as it has; the next deletion, or the next "
                "opening of the file, does it"
            ) from error
        # SQLite waits for readers here, but not for another process that is emptying the log.
        while db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > deadline:
                raise sqlite3.OperationalError(
                    "the entries are deleted, but the write-ahead log is being read by another "
                    "process and could not be emptied; the next deletion, or the next opening of "
                    "the file, does it"
                )
            time.sleep(0.005)
        db.execute("UPDATE journal SET scrubbed = max(scrubbed, ?)", (noted,))
        self._log.mark(db)

    def hurry(self) -> None:
        """See :meth:`Database.hurry`."""
        if self.beside is not None:
            self.beside.execute(f"PRAGMA busy_timeout = {HURRIED}")

    def close(self) -> None:
        """See :meth:`Database.close`."""
        for name, lock in (("beside", self._beside_lock), ("main", self._lock)):
            with lock:
                connection: sqlite3.Connection | None = getattr(self, name)
                if connection is not None:
                    connection.close()
                setattr(self, name, None)


def _clock() -> int:
    """Return the time in milliseconds since 1970."""
    return int(time.time() * 1000)


def _lease_clock() -> int:
    """Return the milliseconds since the boot, or since 1970 if the boot is unknown.

    All processes of a machine have that clock in common, and nobody sets it.
    """
    return int((time.monotonic() if Owner.here().boot else time.time()) * 1000)


def _lease_left(owner: object, lasts: object, ends: object) -> int:
    """Return how long a lease still lasts; one from before the boot has ended."""
    if not isinstance(owner, str) or not isinstance(lasts, int) or not isinstance(ends, int):
        return 0
    if Owner.from_text(owner).boot != Owner.here().boot:
        return 0
    return min(ends - _lease_clock(), lasts)  # the calendar may be set back


def _do(db: sqlite3.Connection, work: Callable[[Transaction], T], *, writes: bool) -> T:
    tx = SQLiteTransaction(db)
    with _writing(db) if writes else _reading(db):
        try:
            done = work(tx)
            if tx.end is not None:
                tx.execute(*tx.end)
        finally:
            tx.cursor.close()
    return done


@contextmanager
def _reading(db: sqlite3.Connection) -> Iterator[None]:
    """Read one state of the file, whatever others write meanwhile."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


@contextmanager
def _writing(db: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction that takes the write lock at once and is rolled back on errors."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some errors, such as that of a full disk, have ended it already
            db.execute("ROLLBACK")
        raise


def _create(db: sqlite3.Connection) -> None:
    for statement in TABLES:
        db.execute(statement)
    db.execute("INSERT INTO journal VALUES (?, 0, 0, 0, 0)", (new_id("journal"),))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def _set_up(db: sqlite3.Connection, synchronous: str) -> None:
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA wal_autocheckpoint = 0")  # see log.py


def _write_ahead(db: sqlite3.Connection, busy_timeout: float) -> None:
    """Turn on write-ahead logging. SQLite does not wait for other processes here, so this does."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


class _Files:
    """The identity of the files of a connection.

    SQLite continues to write to a file that was deleted or replaced, and all of it would be lost.

    Args:
        names: The files, which were just opened.
    """

    def __init__(self, names: Sequence[Path]) -> None:
        self._known = {name: found for name in names if (found := _identity(name)) is not None}

    def check(self) -> None:
        """Check that the files are where they were.

        Raises:
            JournalError: One was deleted or replaced.
        """
        for name, known in self._known.items():
            found = _identity(name)
            if found != known:
                what = "deleted or moved away" if found is None else "replaced by another file"
                raise JournalError(
                    f"The journal's file {str(name)!r} was {what} while it was open, so nothing "
                    "can be read or written any more: put it back, or restore it from a backup, "
                    "and open it with a new SQLiteJournal"
                )


def _identity(name: Path) -> tuple[int, int] | None:
    try:
        status = name.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
