"""The PostgreSQL servers that tests use: the local one, and ones of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

import psycopg
import pytest

from tests.support.ports import free_port

URL = "postgresql://postgres@127.0.0.1:5432/test"
PASSWORD = "p@ss:w/rd%1"  # of the user postgres of a server of our own


@cache
def _problem() -> str:
    try:
        psycopg.connect(URL, connect_timeout=60).close()
    except psycopg.Error as error:
        return str(error)
    return ""


def unavailable(reason: str) -> None:
    """Skip the test; in CI it fails instead."""
    fail = pytest.fail if os.environ.get("CI") else pytest.skip
    fail(reason)


def needs_postgres() -> None:
    """Skip the test if there is no local server."""
    if problem := _problem():
        unavailable(f"PostgreSQL does not answer at 127.0.0.1:5432: {problem}")


def run_sql(*statements: str, url: str = URL) -> list[tuple]:
    """Run statements as another client would; return the rows of the last one."""
    rows = []
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
    return rows


@contextmanager
def new_schema() -> Iterator[str]:
    """The name of a schema, which is dropped in the end."""
    needs_postgres()
    name = f"test_{uuid4().hex}"
    try:
        yield name
    finally:
        drop(name)


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of a database of our own, where no other test keeps old rows with its snapshots."""
    needs_postgres()
    name = f"test_{uuid4().hex}"
    run_sql(f"CREATE DATABASE {name}")
    try:
        yield f"{URL.rpartition('/')[0]}/{name}"
    finally:
        run_sql(f"DROP DATABASE {name} WITH (FORCE)")


def drop(schema: str) -> None:
    """Drop a schema with everything in it."""
    run_sql(f"SET client_min_messages = error; DROP SCHEMA IF EXISTS {schema} CASCADE")


def clear(schema: str) -> None:
    """Make a journal in a schema as it was when it was created, if it was."""
    if run_sql(f"SELECT to_regclass('{schema}.journal')") != [(None,)]:
        run_sql(
            f"SET synchronous_commit = off; DELETE FROM {schema}.sessions; "
            f"DELETE FROM {schema}.entries; UPDATE {schema}.journal SET deleted = 0"
        )


class Server:
    """A server of our own, with the user ``postgres`` and his password; not started.

    Args:
        folder: An empty folder, which the server's user may be given.
        small: The megabytes of a folder ``small`` in it, for a tablespace; None for no such folder.
    """

    def __init__(self, folder: Path, small: int | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self._small = small
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
            shutil.chown(secret, "postgres")
        data = str(folder / "data")
        self._run(
            "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={secret}"
        )

    def url(self, password: str = "p%40ss%3Aw%2Frd%251", database: str = "postgres") -> str:
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._control("start", "-o", options, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """Stop it as if it had crashed."""
        self._control("stop", "-m", "immediate")

    def _control(self, *command: str) -> None:
        self._run("pg_ctl", "-w", "-D", str(self.folder / "data"), *command)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(_programs() / program), *arguments]
        if os.getuid() == 0:
            command = [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                *command,
            ]
        if self._small is not None and program == "pg_ctl" and "start" in arguments:
            small = self.folder / "small"
            small.mkdir(exist_ok=True)
            mount = f"mount -t tmpfs -o size={self._small}m,uid=postgres,mode=700 none {small}"
            # in a namespace of its own: the mount ends with the server
            command = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *command]
        with (self.folder / "output").open("a") as output:
            subprocess.run(
                command,
                check=True,
                cwd=self.folder,
                timeout=180,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def new_server(small: int | None = None) -> Iterator[Server]:
    """A running server of our own, which is stopped and removed in the end."""
    if _programs() == Path():
        unavailable("initdb and pg_ctl are not installed: no server of our own")
    folder = Path(mkdtemp(prefix="postgres"))
    try:
        server = Server(folder, small)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def _programs() -> Path:
    """The folder of initdb and pg_ctl; an empty path if there is none."""
    known = shutil.which("initdb")
    if known is not None:
        return Path(known).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else Path()
