"""New places to store sessions in, which know how much was written to them and how big they are.

A place is removed in the end. Runs in the environment of either library, on Linux.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from uuid import uuid4

from scripts.link_package import ROOT


class Place(ABC):
    """Where a library stores its sessions.

    Attributes:
        address: The path of the file, or the URL of the server.
        prefix: What the names of all keys begin with, in Redis.
        prepared: The tables have been created, where a library does not look for itself.
    """

    address = ""
    prefix = ""
    prepared = False

    @abstractmethod
    def written(self) -> int:
        """Return how many bytes have been written so far; only differences count."""

    @abstractmethod
    def size(self) -> int:
        """Return its bytes on disk, or in the memory of Redis."""


class Nowhere(Place):
    """The memory of this process."""

    def written(self) -> int:
        return 0

    def size(self) -> int:
        return 0


class File(Place):
    """A SQLite file; what this process writes to any file counts as written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = str(folder / "sessions.db")

    def written(self) -> int:
        lines = Path("/proc/self/io").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())


class Database(Place):
    """A PostgreSQL database; what the server adds to its write-ahead log counts as written."""

    def __init__(self, server: str, name: str) -> None:
        self.address = urlsplit(server)._replace(path=f"/{name}").geturl()

    def written(self) -> int:
        return self._ask("SELECT pg_current_wal_insert_lsn() - '0/0'")

    def size(self) -> int:
        return self._ask(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' "
            "AND nspname NOT IN ('pg_catalog', 'information_schema')"
        )

    def _ask(self, query: str) -> int:
        import psycopg

        with psycopg.connect(self.address) as connection:
            row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return int(row[0])


class Keys(Place):
    """The keys with a prefix on a Redis server; what the server receives counts as written."""

    def __init__(self, server: str, prefix: str) -> None:
        import redis

        self.address = server
        self.prefix = prefix
        self.client = redis.Redis.from_url(server)

    def written(self) -> int:
        return int(self.client.info("stats")["total_net_input_bytes"])

    def size(self) -> int:
        return sum(self.client.memory_usage(key, samples=0) or 0 for key in self._keys())

    def remove(self) -> None:
        for key in self._keys():
            self.client.unlink(key)
        self.client.close()

    def _keys(self) -> list[bytes]:
        return list(self.client.scan_iter(match=f"{self.prefix}*", count=1000))


@contextmanager
def new_place(storage: str, server: str) -> Iterator[Place]:
    """Yield a new place: ``storage`` is "none", "ram", "sqlite", "postgres" or "redis"."""
    name = f"bench_{uuid4().hex}"
    if storage == "sqlite":
        build = ROOT / "build"  # on a disk, where /tmp may be in memory
        build.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix="bench", dir=build) as folder:
            yield File(Path(folder))
    elif storage == "postgres":
        run_sql(server, f"CREATE DATABASE {name}")
        try:
            yield Database(server, name)
        finally:
            run_sql(server, f"DROP DATABASE {name} WITH (FORCE)")
    elif storage == "redis":
        keys = Keys(server, name)
        try:
            yield keys
        finally:
            keys.remove()
    else:
        yield Nowhere()


def run_sql(server: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())
