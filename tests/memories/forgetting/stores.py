"""Journals of every kind, and all that they have stored, as bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from agent_brain.memories import Journal, PostgresJournal, RamJournal, RedisJournal, SQLiteJournal
from tests.support.postgres_server import URL as POSTGRES
from tests.support.postgres_server import new_schema, run_sql
from tests.support.redis_server import journal_prefix, redis_url

STORES = ("ram", "sqlite", "redis", "postgres")


def on_disk(folder: Path) -> bytes:
    """The bytes of all files in a folder, free pages and write-ahead logs included."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


@dataclass(frozen=True)
class Store:
    """A journal, and what returns all that it has stored."""

    journal: Journal
    scan: Callable[[], Awaitable[bytes]]


@asynccontextmanager
async def open_store(kind: str, folder: Path) -> AsyncIterator[Store]:
    if kind == "ram":
        ram = RamJournal()

        async def in_ram() -> bytes:
            keys = await ram.sessions()
            return repr((keys, [await ram.read(key, history=True) for key in keys])).encode()

        yield Store(ram, in_ram)
    elif kind == "sqlite":

        async def in_file() -> bytes:
            return on_disk(folder)

        async with SQLiteJournal(folder / "journal.db") as file:
            yield Store(file, in_file)
    elif kind == "redis":
        with journal_prefix() as prefix:
            async with RedisJournal(redis_url(), prefix=prefix) as server:
                yield Store(server, lambda: _in_redis(prefix))
    else:
        with new_schema() as schema:
            async with PostgresJournal(POSTGRES, schema=schema) as database:
                yield Store(database, lambda: _in_postgres(schema))


async def _in_redis(prefix: str) -> bytes:
    with redis.Redis.from_url(redis_url()) as client:
        keys = [*client.scan_iter(match=f"{prefix}*", count=1000)]
        return b"".join([*keys, *(repr(_value(client, key)).encode() for key in keys)])


def _value(client: redis.Redis, key: bytes) -> object:
    kind = client.type(key)
    if kind == b"hash":
        return client.hgetall(key)
    if kind == b"zset":
        return client.zrange(key, 0, -1)
    if kind == b"list":
        return client.lrange(key, 0, -1)
    if kind == b"set":
        return client.smembers(key)
    if kind == b"stream":
        return client.xrange(key)
    assert kind == b"string", kind
    return client.get(key)


def files_of_postgres(schema: str, url: str = POSTGRES) -> bytes:
    """The bytes of the files of a schema's tables, long values and free space included."""
    tables = (
        "SELECT unnest(ARRAY[oid, nullif(reltoastrelid, 0)]) FROM pg_class "
        f"WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
    )
    files = run_sql(
        "CHECKPOINT",
        f"SELECT pg_read_binary_file(pg_relation_filepath(oid)) FROM ({tables}) AS these(oid) "
        "WHERE oid IS NOT NULL",
        url=url,
    )
    return b"".join(bytes(file) for (file,) in files)


async def _in_postgres(schema: str) -> bytes:
    tables = run_sql(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
    rows = [row for (table,) in tables for row in run_sql(f"SELECT * FROM {schema}.{table}")]
    return repr(
        [[bytes(v) if isinstance(v, memoryview) else v for v in row] for row in rows]
    ).encode()
