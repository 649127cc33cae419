"""A database of its own, and workers of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import anyio

from benchmarks.workers.crowd import Crowd, crowd
from tests.support.postgres_server import URL, needs_postgres, run_sql


@contextmanager
def new_database() -> Iterator[str]:
    """The URL of a new database, which is dropped in the end."""
    needs_postgres()
    name = f"test_{uuid4().hex}"
    run_sql(f"CREATE DATABASE {name}")
    try:
        yield URL.rpartition("/")[0] + f"/{name}"
    finally:
        run_sql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def new_workers(folder: Path, **options: object) -> Iterator[Crowd]:
    """Workers of a queue in a database of its own."""
    with new_database() as url, crowd(folder, url, **options) as workers:
        yield workers


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    """Wait until something holds."""
    while not await holds():
        await anyio.sleep(0.05)


async def until_ready(workers: Crowd, number: int) -> None:
    """Wait until that many workers take runs."""

    async def ready() -> bool:
        assert all(process.poll() is None for process in workers.processes[-1:]), workers.log()
        return workers.log().count("takes runs") >= number

    await until(ready)
