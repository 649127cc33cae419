"""The PostgreSQL server that tests use: the local one, with a schema for each test module."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from uuid import uuid4

import psycopg
import pytest

URL = "postgresql://postgres@127.0.0.1:5432/test"


@cache
def _problem() -> str:
    try:
        psycopg.connect(URL, connect_timeout=5).close()
    except psycopg.Error as error:
        return str(error)
    return ""


def needs_postgres() -> None:
    """Skip the test if there is no server; in CI it fails instead."""
    if problem := _problem():
        fail = pytest.fail if os.environ.get("CI") else pytest.skip
        fail(f"PostgreSQL does not answer at 127.0.0.1:5432: {problem}")


def run_sql(*statements: str, url: str = URL) -> list[tuple]:
    """Run statements as another client would; return the rows of the last one."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = []
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
    return rows


@contextmanager
def new_schema() -> Iterator[str]:
    """A schema's name, which is dropped in the end."""
    needs_postgres()
    name = f"test_{uuid4().hex}"
    try:
        yield name
    finally:
        drop(name)


def drop(schema: str) -> None:
    """Drop a schema with everything in it."""
    run_sql(f"SET client_min_messages = error; DROP SCHEMA IF EXISTS {schema} CASCADE")


def clear(schema: str) -> None:
    """Make a journal in a schema as it was when it was created, if it was."""
    if run_sql(f"SELECT to_regclass('{schema}.layout')") != [(None,)]:
        run_sql(
            f"TRUNCATE {schema}.sessions, {schema}.entries; UPDATE {schema}.layout SET deleted = 0"
        )
