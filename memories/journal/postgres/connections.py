"""Connections to a PostgreSQL server, and transactions in them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.postgres.errors import explain

T = TypeVar("T")
Row = tuple[Any, ...]
GRACE = 5.0  # seconds that the server has to say that its time is over

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


class Transaction:
    """A transaction in a connection; it begins with the first statement.

    Attributes:
        in_doubt: Whether it writes, and its end was sent and not confirmed.
    """

    def __init__(self, connection: psycopg.Connection[Row], kind: str, limits: str) -> None:
        self._connection = connection
        self._opening = f"BEGIN {BEGIN[kind]}{limits}"
        self._writes = kind in ("disk", "memory")
        self._ended = False
        self.in_doubt = False

    def execute(self, sql: str, params: Sequence[Any] | None = None) -> psycopg.Cursor[Row]:
        """Run a statement. Without parameters it may be several; the last one has the result.

        What people wrote is always a parameter, as a server may log statements.
        """
        opening, self._opening = self._opening, ""
        if opening and params is not None:
            self._connection.execute(opening.encode())
            opening = ""
        cursor = self._connection.cursor(binary=params is not None)
        cursor.execute((opening + sql).encode(), params)
        while cursor.nextset():
            pass
        return cursor

    def get(self, sql: str, params: Sequence[Any] | None = None) -> Row | None:
        """Return the first row of what :meth:`execute` returns, if there is one."""
        cursor = self.execute(sql, params)
        return cursor.fetchone() if cursor.description else None

    def get_one(self, sql: str, params: Sequence[Any] | None = None) -> Row:
        """Return the row of a statement that always has one."""
        row = self.get(sql, params)
        assert row is not None
        return row

    def commit(self, sql: str = "") -> None:
        """End the transaction, after ``sql``. It may be called twice."""
        if self._opening or self._ended:
            return
        self.in_doubt = self._writes
        self.execute(f"{sql}COMMIT")
        self.in_doubt, self._ended = False, True


class Connections:
    """The connections of a journal, opened when they are needed and kept.

    Args:
        params: Where to, as libpq names it.
        place: The same for people.
        size: How many are kept.
        timeout: Seconds to wait for the server.
    """

    def __init__(self, params: Mapping[str, str], place: str, size: int, timeout: float) -> None:
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
        self._place = place
        self._size = size
        self._patience = timeout + 2 * GRACE
        # The server ends what takes too long, and a transaction whose client has gone.
        self._limits = (
            f"SET LOCAL lock_timeout = {round(timeout * 1000)}; "
            f"SET LOCAL statement_timeout = {round((timeout + GRACE) * 1000)}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {round((timeout + GRACE) * 1000)}; "
        )
        self._lock = threading.Lock()
        self._idle: list[psycopg.Connection[Row]] = []
        self._process = os.getpid()
        self._closed = False

    def run(
        self,
        kind: str,
        work: Callable[[Transaction], T],
        again: Callable[[Transaction], T] | None = None,
    ) -> T:
        """Run ``work`` in a transaction and commit it.

        If the connection was lost, it is tried once again, with ``again`` if it may be committed.

        Args:
            kind: ``"read"`` or ``"check"``; to write, what it has reached when it is committed:
                ``"disk"`` or the server's ``"memory"``.
            work: Receives the transaction; it may commit it.
            again: What to run if ``work`` may have been committed; None to raise an error.

        Raises:
            JournalError: The server cannot do it, or is not there.
        """
        try:
            return self._attempt(kind, work)
        except _LostError as error:
            if error.in_doubt and again is None:
                raise explain(self._place, error.why, in_doubt=True) from error.why
            following = again if again is not None and error.in_doubt else work
        self._close_idle()  # they were lost as well
        try:
            return self._attempt(kind, following)
        except _LostError as error:
            raise explain(self._place, error.why, in_doubt=error.in_doubt) from error.why

    def _attempt(self, kind: str, work: Callable[[Transaction], T]) -> T:
        connection = self._take()
        tx = Transaction(connection, kind, self._limits)
        try:
            done = work(tx)
            tx.commit()
        except NoAnswerError as error:
            connection.close()
            raise explain(self._place, error, in_doubt=tx.in_doubt) from error
        except psycopg.Error as error:
            if connection.closed:
                raise _LostError(error, in_doubt=tx.in_doubt) from error
            raise explain(self._place, error) from error
        finally:
            self._give_back(connection)
        return done

    def execute(self, sql: str) -> None:
        """Run a statement that no transaction may have."""
        connection = self._take()
        try:
            connection.execute(sql.encode())
        except psycopg.Error as error:
            if isinstance(error, NoAnswerError):
                connection.close()
            raise explain(self._place, error) from error
        finally:
            self._give_back(connection)

    def _take(self) -> psycopg.Connection[Row]:
        with self._lock:
            if self._closed:
                raise JournalError(f"The {self._place} is closed: make a new PostgresJournal")
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
        except psycopg.Error as error:
            raise explain(self._place, error, connecting=True) from error
        connection.patience = self._patience
        return connection

    def _give_back(self, connection: psycopg.Connection[Row]) -> None:
        """Keep a connection, after ending what is left of its transaction."""
        try:
            if connection.info.transaction_status not in (
                TransactionStatus.IDLE,
                TransactionStatus.UNKNOWN,
            ):
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


class _LostError(Exception):
    """The connection was lost; ``in_doubt`` says whether the transaction may be committed."""

    def __init__(self, why: psycopg.Error, *, in_doubt: bool) -> None:
        super().__init__(why)
        self.why = why
        self.in_doubt = in_doubt
