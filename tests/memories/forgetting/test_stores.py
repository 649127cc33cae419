"""A forgetting that is killed at each of its writes, on every store, down to the bytes of files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agent_brain import MessagesMemory
from agent_brain.memories import (
    Journal,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    UserMemory,
    forget_in_sessions,
)
from tests.memories.forgetting.killed_vectors import GONE, open_memory
from tests.memories.forgetting.places import PLACES, SECRET, TEXT
from tests.memories.forgetting.stores import STORES, Store, files_of_postgres, on_disk, open_store
from tests.memories.forgetting.test_kills import everything_in
from tests.memories.forgetting.test_memories import MEMORIES, fill
from tests.memories.forgetting.test_tenants import fill as fill_sessions
from tests.memories.user.support import said
from tests.support.journals import Killed, MortalJournal
from tests.support.postgres_server import new_database, run_sql
from tests.support.redis_server import own_server

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]
BYTES = SECRET.encode()
PLAIN = ("--appendonly", "yes", "--aof-use-rdb-preamble", "no")  # a file that is not compressed


@asynccontextmanager
async def open_files(kind: str, folder: Path) -> AsyncIterator[Store]:
    """A store whose scan reads its files, after what the documentation says is to be done."""
    if kind == "redis":
        with own_server(folder, *PLAIN) as server:

            async def rewritten() -> bytes:
                with server.client() as client:
                    client.bgrewriteaof()
                    while client.info("persistence")["aof_rewrite_in_progress"]:
                        client.ping()
                return on_disk(folder)

            async with RedisJournal(server.url) as redis:
                yield Store(redis, rewritten)
    elif kind == "postgres":
        with new_database() as url:

            async def vacuumed() -> bytes:
                run_sql("VACUUM FULL a.entries", "VACUUM FULL a.sessions", url=url)
                return files_of_postgres("a", url)

            async with PostgresJournal(url, schema="a") as journal:
                yield Store(journal, vacuumed)
    else:
        async with open_store(kind, folder) as store:
            yield store


async def refill(journal: Journal, filled: RamJournal) -> None:
    """Make a journal hold what another one does."""
    for key in await journal.sessions():
        await journal.delete(key, scrub=False)
    for key in await filled.sessions():
        await journal.load(key, await filled.read(key, history=True))


async def kill_at_each_write(
    store: Store,
    filled: RamJournal,
    forget: Callable[[Journal], Awaitable[object]],
    finish: Callable[[Journal], Awaitable[object]],
    every: int = 1,
) -> None:
    """Forget, killed at each write, and finish it: nothing is there, at last not in files either.

    ``every`` is the distance between the writes that are tried.
    """
    await refill(store.journal, filled)
    assert BYTES in await store.scan()
    at, done = 1 - every, False
    while not done:
        at += every
        for after in (False, True):
            await refill(store.journal, filled)
            with suppress(Killed):
                await forget(MortalJournal(store.journal, at, after=after))
                done = True
            await finish(store.journal)
            assert SECRET not in await everything_in(store.journal), (at, after)
    assert at > 2
    assert BYTES not in await store.scan()


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("place", [*PLACES, *MEMORIES])
async def test_a_killed_forgetting_leaves_no_byte(kind: str, place: str, tmp_path: Path) -> None:
    filled = RamJournal()
    make = MEMORIES.get(place, MessagesMemory)
    await (PLACES[place](filled) if place in PLACES else fill(make(journal=filled)))

    async def forget(journal: Journal) -> None:
        await make(journal=journal).forget(text=TEXT)

    async def finish(journal: Journal) -> None:
        async with make(journal=journal) as memory:
            await memory.open()
            if SECRET in await everything_in(journal):  # it was killed before its first write
                await memory.forget(text=TEXT)

    async with open_files(kind, tmp_path) as store:
        await kill_at_each_write(store, filled, forget, finish, 7 if kind == "postgres" else 1)


async def forget_in_all(journal: Journal) -> None:
    await forget_in_sessions(journal, tenant="ann", text=TEXT)


async def forget_what_is_known(journal: Journal) -> None:
    await UserMemory(journal=journal, tenant="ann").forget(text=TEXT)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("forget", [forget_in_all, forget_what_is_known])
async def test_a_killed_forgetting_for_a_user_is_finished_by_the_next(
    kind: str, forget: Callable[[Journal], Awaitable[None]], tmp_path: Path
) -> None:
    """Sessions, a fork, traces, waiting brains, events of a queue's run, a title, facts, blocks."""
    async with open_store("ram", tmp_path) as made:
        filled: Any = made.journal
        await fill_sessions(made)
        for tenant in ("bob", "anna"):
            await MessagesMemory(journal=filled, session="chat", tenant=tenant).clear()
    user = UserMemory(journal=filled, tenant="ann")
    await user.remember(f"Owns {SECRET}", slot="animal", source=said(f"I own {SECRET}"))
    await user.remember("Owns a cat", slot="animal", source=said("I own a cat now", 1))
    await user.edit_block("project", f"A stable for {SECRET}")

    async with open_files(kind, tmp_path) as store:
        every = {"ram": 1, "postgres": 29}.get(kind, 7)  # filling one again takes long
        await kill_at_each_write(store, filled, forget, forget, every)
        known = UserMemory(journal=store.journal, tenant="ann")
        assert [fact.text for fact in await known.facts()] == ["Owns a cat"]


@pytest.mark.parametrize("at", range(1, 5))
async def test_a_killed_forgetting_leaves_no_vector(at: int, tmp_path: Path) -> None:
    async with open_memory(tmp_path) as memory:
        await memory.update([said(f"I am {SECRET}.", id=GONE), said("A fine day.", id="fine")])

    def rows() -> bytes:
        return b"".join(file.read_bytes() for file in tmp_path.rglob("chroma.sqlite3*"))

    assert GONE.encode() in rows()
    program = [sys.executable, "-m", "tests.memories.forgetting.killed_vectors"]
    ended = subprocess.run([*program, str(tmp_path), str(at)], check=False)
    assert ended.returncode in (0, 9)
    async with open_memory(tmp_path) as memory:
        await memory.recall("Who is it?")
        assert [m.id for m in await memory.messages()] == ["fine"]
    assert GONE.encode() not in rows()
    assert b"fine" in rows()
