"""Work for a worker thread that a cancelled caller abandons."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.sqlite.errors import explain

T = TypeVar("T")


class Job(Generic[T]):
    """Work for the thread.

    A caller that is cancelled abandons it: it does not start any more. If it has started, the next
    job waits for its end, as it holds the lock.
    """

    def __init__(self, work: Callable[[], T], lock: threading.Lock, path: str) -> None:
        self._work = work
        self._lock = lock
        self._path = path
        self.abandoned = False

    def __call__(self) -> T:
        """Do the work, unless it was abandoned."""
        with self._lock:
            if self.abandoned:
                raise JournalError("The call was cancelled before it began")
            try:
                return self._work()
            except (sqlite3.Error, ValueError, OverflowError) as error:
                raise explain(self._path, error) from error
