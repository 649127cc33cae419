"""Transactions on a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction that takes the write lock at once and is rolled back on errors."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some errors, such as that of a full disk, have ended it already
            db.execute("ROLLBACK")
        raise


@contextmanager
def reading(db: sqlite3.Connection) -> Iterator[None]:
    """Read one state of the file, whatever others write meanwhile."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
