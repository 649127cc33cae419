"""Real stores that fail at any request: they leave what a kill leaves, and the run continues."""

from __future__ import annotations

import resource
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from agent_brain.memories import Journal, JournalError, PostgresJournal, RedisJournal, SQLiteJournal
from agent_brain.memories.journal.ram import RamJournal
from tests.memories.durable.paying import Life, killed, record_of
from tests.memories.durable.paying_agents import life_of
from tests.support import postgres_server, redis_server
from tests.support.cutting_proxy_threads import CuttingProxy
from tests.support.journals import MortalJournal
from tests.support.thorough import THOROUGH, first_of

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

ORDERED = {  # one agent works at a time: the entries have the same order in every life
    "approval mapped": "a",
    "approval parallel": "a",
    "approval handoff": "ab",
    "approval brains at once": "a",
    "approval brains mapped": "a",
    "approval plan": "ab",
    "approval router": "ab",
    "approval team": "a",
    "tree": "ab",
}
KINDS = {  # and their agents
    **ORDERED,
    "approval nested in branch": "a",
    "approval nested": "ab",
    "approval handoff with brains": "ab",
    "approval handoffs at once": "ab",
    "approval handoff as a tool": "ab",
    "approval debate": "ab",
    "approval vote": "ab",
    "team": "ab",
}
OFTEN = ("approval mapped", "approval parallel")  # the others are disturbed at fewer places
AT_ONCE = 8  # lives: some wait for a server that does not answer
Left = tuple[list[str], Counter[str]]  # what is stored, and what was paid


async def left_by_kills(kind: str) -> tuple[Life, list[Left], int]:
    """A whole life, what kills before and behind each of its writes leave, and how many it has."""
    whole, journal = life_of(kind, KINDS[kind]), MortalJournal(RamJournal())
    async with whole.process(journal) as brain:
        await whole.go_on(brain)
    left = []
    for write in range(1, journal.writes + 1):
        for after in (False, True):
            life, store = life_of(kind, KINDS[kind]), RamJournal()
            await killed(life, MortalJournal(store, write, after=after))
            left.append((await record_of(store), life.paid))
    return whole, left, journal.writes


async def live(life: Life, journal: Journal, failed: Callable[[], Any]) -> int:
    """Live to the end; return how often the store has failed, which is told to ``failed``."""
    errors = 0
    while life.result is None:
        try:
            async with life.process(journal) as brain:
                while life.result is None:
                    try:
                        await life.go_on(brain)  # also again, with the same memory object
                    except JournalError:
                        errors += 1
                        await failed()
        except JournalError:  # while the session was opened
            errors += 1
            await failed()
        assert errors < 20, "it does not get on"
    return errors


# SQLite


class Disturbed(MortalJournal):
    """Something happens to the store before one of its writes, which is then tried nevertheless.

    Args:
        store: The store.
        dies_at: The number of the write.
        disturb: What happens.
    """

    def __init__(self, store: Journal, dies_at: int, disturb: Callable[[], object]) -> None:
        super().__init__(store, dies_at)
        self._disturb = disturb

    def _die(self) -> None:
        self._disturb()


Trouble = tuple[Callable[[], object], Callable[[], object]]
"""What makes a store fail, and what makes it work again."""


@contextmanager
def locked(path: Path) -> Iterator[Trouble]:
    """Another process locks the file for longer than the journal waits."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        yield lambda: other.execute("BEGIN IMMEDIATE"), other.rollback


@contextmanager
def full(_: Path) -> Iterator[Trouble]:
    """Nothing can be written to any file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def set_limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    try:
        yield lambda: set_limit(0), lambda: set_limit(soft)
    finally:
        set_limit(soft)


@pytest.mark.parametrize("trouble", [locked, full])
@pytest.mark.parametrize("kind", first_of(KINDS, "approval nested in branch"))
async def test_a_file_that_cannot_be_written(
    kind: str, trouble: Callable[[Path], Any], tmp_path: Path
) -> None:
    whole, left, writes = await left_by_kills(kind)
    every = (1 if kind in OFTEN else 3) if THOROUGH else 7
    for write in range(1, writes + 1, every):
        path = tmp_path / f"{write}.db"
        async with SQLiteJournal(path, busy_timeout=0.02, durability="os") as journal:
            await journal.last("s")  # the file is made
            with trouble(path) as (disturb, mend):
                life = life_of(kind, KINDS[kind])

                async def failed(life: Life = life, mend: Any = mend, at: int = write) -> None:
                    mend()
                    found = await record_of(journal), life.paid
                    assert kind not in ORDERED or found == left[2 * at - 2], at

                assert await live(life, Disturbed(journal, write, disturb), failed) == 1
            await life.check(whole, journal)


# Servers


@asynccontextmanager
async def behind_a_proxy(store: str, how: str) -> AsyncIterator[tuple[Journal, Journal, Any]]:
    """A journal behind a proxy, the same one without it, and the proxy."""
    silent = how in ("never", "unanswered")
    if store == "redis":
        target = urlsplit(redis_server.redis_url())
        with (
            redis_server.journal_prefix() as prefix,
            CuttingProxy("127.0.0.1", target.port or 6379) as proxy,
        ):
            url = f"redis://127.0.0.1:{proxy.port}/0"
            async with (
                RedisJournal(target.geturl(), prefix=prefix) as direct,
                RedisJournal(url, prefix=prefix, timeout=3 if silent else 30) as journal,
            ):
                await direct.last("s")
                yield journal, direct, proxy
    else:
        target = urlsplit(postgres_server.URL)
        with (
            postgres_server.new_schema() as schema,
            CuttingProxy("127.0.0.1", target.port or 5432) as proxy,
        ):
            url = f"postgresql://{target.username}@127.0.0.1:{proxy.port}{target.path}"
            url += "?sslmode=disable&gssencmode=disable"
            async with (
                PostgresJournal(target.geturl(), schema=schema) as direct,
                PostgresJournal(url, schema=schema, timeout=1 if silent else 30) as journal,
            ):
                await direct.last("s")  # the tables are made
                yield journal, direct, proxy


async def disturbed_at(
    request: int, kind: str, store: str, how: str, left: list[Left], whole: Life
) -> tuple[int, int]:
    """Live with a fault at a request of the connection, 0 for none; return errors and requests."""
    async with behind_a_proxy(store, how) as (journal, direct, proxy):
        life = life_of(kind, KINDS[kind])

        async def failed() -> None:
            proxy.mend()
            found = await record_of(direct), life.paid
            assert kind not in ORDERED or found in left, "it is not what a kill leaves"

        if request:
            proxy.at, proxy.how, proxy.passed = b"", how, request - 1
            proxy.times = 1 if how in ("never", "unanswered") else 2  # a lost one is tried again
        errors = await live(life, journal, failed)
        await life.check(whole, direct)
        return errors, proxy.requests


FAULTS = [  # the store, what happens to a request, and to which: every one, every fourth …
    ("redis", "before", 1),
    ("redis", "after", 1),
    ("redis", "never", 4),
    ("redis", "unanswered", 4),
    ("postgres", "before", 9),
    ("postgres", "after", 11),
]
HALF_OPEN = [  # a fault of these takes 11 seconds
    ("approval mapped", "postgres", "never", 30),
    ("approval team", "postgres", "unanswered", 12),
]
CASES = [(kind, *fault) for kind in KINDS for fault in FAULTS] + HALF_OPEN


@pytest.mark.parametrize(
    ("kind", "store", "how", "every"),
    first_of(CASES, *CASES[: len(FAULTS)]),
)
async def test_a_request_that_a_server_does_not_answer(
    kind: str, store: str, how: str, every: int
) -> None:
    whole, left, _ = await left_by_kills(kind)
    _, requests = await disturbed_at(0, kind, store, how, left, whole)
    failed, at_once = 0, anyio.CapacityLimiter(AT_ONCE)
    every *= 1 if kind in OFTEN else 5

    async def try_at(request: int) -> None:
        nonlocal failed
        async with at_once:
            errors, _ = await disturbed_at(request, kind, store, how, left, whole)
        failed += bool(errors)

    async with anyio.create_task_group() as lives:
        for request in range(1 + every // 2, requests + 1, every if THOROUGH else 5 * every + 4):
            lives.start_soon(try_at, request)
    assert failed or kind not in OFTEN  # at few requests, all may be repeated unnoticed
