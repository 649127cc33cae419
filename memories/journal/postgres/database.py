"""Connections to a PostgreSQL server, and transactions in them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo, TransactionStatus

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.postgres.errors import explain
from agent_brain.memories.journal.postgres.layout import Layout
from agent_brain.memories.journal.sql.database import Database, Row, Transaction
from agent_brain.memories.journal.threaded import LostError

T = TypeVar("T")
log = get_logger(__name__)
GRACE = 5.0  # seconds that the server has to say that its time is over
SENT = 4_000_000  # characters that are sent at once, about
AT_ONCE = 1000  # entries that are sent at once
_ADD = (
    "INSERT INTO entries SELECT * FROM unnest(?::bigint[], ?::integer[], ?::bigint[], ?::text[], "
    "?::bigint[], ?::bigint[], ?::bigint[], ?::text[])"
)

# The server drops a client whose machine is gone, and the lock that it holds, as a client does.
_KEEPALIVE = (
    b"SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
)

_WRITE = "ISOLATION LEVEL READ COMMITTED; "
BEGIN = {
    # Entries are read in the order of their index; without statistics a server would sort them.
    "read": "ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_sort = off; "
    "SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off; ",
    "check": "ISOLATION LEVEL READ COMMITTED READ ONLY; ",  # sees tables and rows as they are now
    "memory": f"{_WRITE}SET LOCAL synchronous_commit = off; ",
    # A server that promises more than the disk by itself is left to it.
    "disk": f"{_WRITE}SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') = 'off'; ",
}


class NoAnswerError(psycopg.OperationalError):
    """The server is connected and does not answer."""


class _Connection(psycopg.Connection[Row]):
    """A connection that does not wait for ever for an answer."""

    patience = 60.0  # seconds

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return super().wait(self._limit(gen), *args, **kwargs)

    def _limit(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Pass on what ``gen`` waits for; it is told every tenth of a second that there is none."""
        deadline = time.monotonic() + self.patience
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > deadline:
                    raise NoAnswerError(f"no answer for {self.patience:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result


class PostgresTransaction(Transaction):
    """A transaction in a connection; it begins with the first statement.

    Attributes:
        in_doubt: Whether it writes, and its end was sent and not confirmed.
    """

    clock = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    lease_clock = clock
    lease_left = f"(ends - {clock})"
    lock = " FOR UPDATE"
    lock_free = " FOR UPDATE SKIP LOCKED"

    def __init__(self, connection: psycopg.Connection[Row], begin: str, *, writes: bool) -> None:
        self._connection = connection
        self._begin = begin
        self._writes = writes
        self._end: tuple[str, Sequence[int]] = "", ()
        self.in_doubt = False

    def execute(self, sql: str, params: Sequence[Any] = ()) -> psycopg.Cursor[Row]:
        """See :meth:`Transaction.execute`.

        What people wrote is always a parameter that is sent apart, as a server may log statements.
        """
        begin, self._begin = self._begin, ""
        if begin and any(type(param) is not int for param in params):
            self._connection.execute(begin.encode())
            begin = ""
        if begin or not params:
            return self._send(begin + sql, params)
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(sql.replace("?", "%s").encode(), params)

    def _send(self, sql: str, numbers: Sequence[int]) -> psycopg.Cursor[Row]:
        """Send several statements with numbers in them at once; the last one has the result."""
        cursor = psycopg.ClientCursor(self._connection)
        cursor.execute(sql.replace("?", "%s").encode(), numbers)
        while cursor.nextset():
            pass
        return cursor

    def get(self, sql: str, params: Sequence[Any] = ()) -> Row | None:
        """See :meth:`Transaction.get`; the statement may have no result."""
        cursor = self.execute(sql, params)
        return cursor.fetchone() if cursor.description else None

    def add_entries(self, rows: Sequence[Row]) -> None:
        """See :meth:`Transaction.add_entries`."""
        part: list[Row] = []
        size = 0
        for row in rows:
            part.append(row)
            size += len(row[-1])
            if size > SENT or len(part) >= AT_ONCE:
                self._add(part)
                part, size = [], 0
        self._add(part)

    def _add(self, rows: Sequence[Row]) -> None:
        if rows:
            self.execute(_ADD, [*map(list, zip(*rows, strict=True))])

    def at_end(self, sql: str, params: Sequence[int]) -> None:
        """See :meth:`Transaction.at_end`."""
        self._end = f"{sql}; ", params

    def commit(self) -> None:
        """End the transaction, unless nothing was done in it."""
        if not self._begin:
            self.in_doubt = self._writes
            sql, params = self._end
            self._send(f"{sql}COMMIT", params)
            self.in_doubt = False


class PostgresDatabase(Database):
    """The database of a journal; its connections are opened when they are needed, and kept.

    Args:
        params: Where it is, as libpq names it.
        place: The same for people.
        layout: The tables.
        size: How many connections are kept.
        timeout: Seconds to wait for the server.
        durability: What a write has reached when it is committed: ``"disk"`` or the server's
            ``"memory"``.
        readonly: Never create the tables.
    """

    def __init__(
        self,
        params: Mapping[str, str],
        place: str,
        layout: Layout,
        size: int,
        timeout: float,
        *,
        durability: str,
        readonly: bool,
    ) -> None:
        seconds = max(2, round(timeout))
        defaults = {
            "application_name": "agent-brain",
            "connect_timeout": seconds,
            "keepalives_idle": 30,  # a dead server, or a dead network, is noticed
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": seconds * 1000,
        }
        self._params = {**defaults, **params, "client_encoding": "utf8"}
        self.place = place
        self.layout = layout
        self._readonly = readonly
        self._kinds = {"write": durability, "lease": "memory"}
        self._size = size
        self._patience = timeout + 2 * GRACE
        # The server ends what takes too long, and a transaction whose client has gone.
        self._limits = (
            f"SET LOCAL lock_timeout = {round(timeout * 1000)}; "
            f"SET LOCAL statement_timeout = {round((timeout + GRACE) * 1000)}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {round((timeout + GRACE) * 1000)}; "
            f"SET LOCAL search_path = {layout.schema}, pg_temp; "
        )
        self._lock = threading.Lock()
        self._idle: list[psycopg.Connection[Row]] = []
        self._process = os.getpid()
        self._closed = False

    def open(self) -> None:
        """Check the tables, or create them."""
        layout, place = self.layout, self.place
        if self.run("check", lambda tx: layout.is_there(tx, place)):
            return
        if self._readonly:
            raise JournalError(f"The {place} does not exist")
        try:
            self.run("disk", lambda tx: layout.create(tx, place))
        except JournalError as error:
            if getattr(error.__cause__, "sqlstate", None) != "42501":
                raise
            raise JournalError(
                f"The {place} does not exist, and this user may not create it. Let one who may "
                "run this SQL once, which PostgresJournal.layout_sql(role=…) returns:\n\n"
                f"{layout.to_sql(role='the user of the journal')}"
            ) from error

    def run(self, kind: str, work: Callable[[PostgresTransaction], T], *, again: bool = False) -> T:
        """See :meth:`Database.run`; if nothing was committed, it is tried once again too."""
        try:
            return self._attempt(kind, work)
        except LostError as error:
            if error.in_doubt and not again:
                raise
        self._close_idle()  # they were lost as well
        return self._attempt(kind, work)

    def _attempt(self, kind: str, work: Callable[[PostgresTransaction], T]) -> T:
        connection = self._take()
        begin = f"BEGIN {BEGIN[self._kinds.get(kind, kind)]}{self._limits}"
        tx = PostgresTransaction(connection, begin, writes=kind not in ("read", "check"))
        try:
            done = work(tx)
            tx.commit()
        except NoAnswerError as error:
            connection.close()
            raise explain(self.place, error, in_doubt=tx.in_doubt) from error
        except psycopg.Error as error:
            lost = bool(connection.closed)
            raise explain(self.place, error, lost=lost, in_doubt=lost and tx.in_doubt) from error
        finally:
            self._give_back(connection)
        return done

    def scrub(self, *, removed: bool) -> None:
        """Free the space of removed rows; without the right to, the server does it later."""
        if not removed:
            return
        schema = self.layout.schema
        connection = self._take()
        try:
            connection.execute(f"VACUUM {schema}.entries, {schema}.sessions".encode())
        except psycopg.Error as error:
            if isinstance(error, NoAnswerError):
                connection.close()
            why = explain(self.place, error)
            log.warning("What was removed is not vacuumed yet, the server will do it: %s", why)
        finally:
            self._give_back(connection)

    def _take(self) -> psycopg.Connection[Row]:
        with self._lock:
            if self._closed:
                raise JournalError(f"The {self.place} is closed: make a new PostgresJournal")
            if self._process != os.getpid():  # those of the parent process are its own
                self._idle, self._process = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        try:
            connection = _Connection.connect(
                autocommit=True,
                prepare_threshold=None,  # a pooler may give each transaction another connection
                **self._params,  # type: ignore[arg-type]
            )
            connection.patience = self._patience
            try:
                connection.execute(_KEEPALIVE)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            raise explain(self.place, error, connecting=True) from error
        return connection

    def _give_back(self, connection: psycopg.Connection[Row]) -> None:
        """Keep a connection, after ending what is left of its transaction."""
        try:
            status = connection.info.transaction_status
            if status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
                connection.execute(b"ROLLBACK")
        except psycopg.Error:
            connection.close()
        with self._lock:
            if not (self._closed or connection.closed) and len(self._idle) < self._size:
                self._idle.append(connection)
                return
        connection.close()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections; those in use when they are given back."""
        self._closed = True
        self._close_idle()


def read_url(url: str) -> tuple[dict[str, str], str]:
    """Return what the URL of a database says, as libpq names it, and its place for people.

    The place has the server and the database, without the user and the password.

    Raises:
        MemoryDefinitionError: The URL cannot be read; it is not quoted, as it may have a password.
    """
    unreadable = MemoryDefinitionError(
        "The URL of a PostgresJournal cannot be read: it is like "
        "postgresql://user:password@host:5432/database, with characters such as @ : / % in the "
        "password as %40 %3A %2F %25"
    )
    try:
        given = conninfo_to_dict(url) if url.strip() else None
    except (AttributeError, psycopg.ProgrammingError, TypeError, ValueError):
        raise unreadable from None
    if given is None:
        raise unreadable
    params = {name: str(value) for name, value in given.items() if value is not None}
    known = {
        option.keyword.decode(): option.val.decode()
        for option in Conninfo.get_defaults()
        if option.val is not None
    } | params
    host = known.get("host") or known.get("hostaddr") or "localhost"
    port, database = known.get("port", "5432"), known.get("dbname") or known.get("user", "")
    if "@" in host + database or not port.replace(",", "").isdecimal():
        raise unreadable
    return params, f"{host}:{port}/{database}"
