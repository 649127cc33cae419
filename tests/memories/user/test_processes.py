"""Learning while others do, and while processes die: each fact is stored once, and none is lost."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from agent_brain import Brain, MessagesMemory
from agent_brain.memories import (
    Batch,
    Draft,
    Journal,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
    UserMemory,
)
from agent_brain.nets import learn
from agent_brain.states import StateExited
from tests.memories.user.support import by_rules, said
from tests.support.journals import Killed, MortalJournal
from tests.support.postgres_server import URL, new_schema
from tests.support.redis_server import journal_prefix, redis_url

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
USERS = ["ann", "bob", "cid", "dan", "eve"]


async def talk(journal: Journal, tenant: str, count: int = 2, messages: int = 25) -> list[str]:
    """Conversations of a user, and what they tell."""
    foods = [f"{tenant}{chat}{n}" for chat in range(count) for n in range(messages)]
    for chat in range(count):
        place = {"journal": journal, "session": f"chat {chat}", "tenant": tenant}
        async with MessagesMemory(**place) as memory:  # type: ignore[arg-type]
            mine = foods[chat * messages : (chat + 1) * messages]
            await memory.update([said(f"I like {food}", n) for n, food in enumerate(mine)])
    return sorted(f"Likes {food}" for food in foods)


async def known(journal: Journal, tenant: str) -> list[str]:
    user = UserMemory(journal=journal, tenant=tenant)
    return sorted(fact.text for fact in await user.facts(status="all"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_kill_at_each_write_of_learning(after: bool) -> None:
    write = 0
    while True:
        write += 1
        store = RamJournal()
        wanted = await talk(store, "ann")
        mortal = MortalJournal(store, write, after=after)
        try:
            await UserMemory(journal=mortal, tenant="ann", extract=by_rules).learn()
        except Killed:
            assert set(await known(store, "ann")) <= set(wanted)
            await UserMemory(journal=store, tenant="ann", extract=by_rules).learn()
            assert await known(store, "ann") == wanted
            continue
        assert write == 5  # four appends: two for each conversation
        break


@pytest.mark.parametrize("sessions", [["chat 0", "chat 0"], ["chat 0", "chat 1"]], ids=str)
async def test_two_that_learn_at_once(sessions: list[str], tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "agents.db") as journal:
        wanted = await talk(journal, "ann")
        learned: list[str] = []

        async def learn(session: str) -> None:
            user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
            learned.extend(fact.text for fact in (await user.learn(session)).facts)

        async with anyio.create_task_group() as group:
            for session in sessions:
                group.start_soon(learn, session)
        mine = wanted if "chat 1" in sessions else wanted[: len(wanted) // 2]
        assert await known(journal, "ann") == mine
        assert sorted(learned) == mine


async def test_what_is_said_while_facts_are_extracted_is_learned(tmp_path: Path) -> None:
    journal = RamJournal()
    chat = MessagesMemory(journal=journal, session="may", tenant="ann", shared=True)
    await chat.update([said("I like tea", 1)])

    async def slow(batch: Batch) -> list[Draft]:
        if len(await chat.messages()) == 1:
            await chat.update([said("I like jazz", 2)])
        return by_rules(batch)

    user = UserMemory(journal=journal, tenant="ann", extract=slow)
    await user.learn("may")
    assert await known(journal, "ann") == ["Likes jazz", "Likes tea"]


@contextmanager
def places(kind: str, folder: Path) -> Iterator[tuple[str, str]]:
    if kind == "sqlite":
        yield str(folder / "agents.db"), ""
    elif kind == "redis":
        with journal_prefix() as prefix:
            yield redis_url(), prefix
    else:
        with new_schema() as schema:
            yield URL, schema


def opened(kind: str, url: str, name: str) -> Journal:
    if kind == "sqlite":
        return SQLiteJournal(url)
    return RedisJournal(url, prefix=name) if kind == "redis" else PostgresJournal(url, schema=name)


async def learn_all(kind: str, url: str, name: str, seed: str) -> None:
    """What each process does."""
    order = random.Random(seed).sample(USERS, len(USERS))
    async with opened(kind, url, name) as journal:
        for tenant in order:
            await UserMemory(journal=journal, tenant=tenant, extract=by_rules).learn()


@pytest.mark.parametrize(
    ("kind", "processes"),
    [
        ("sqlite", 2),
        *(
            pytest.param(kind, 20, marks=pytest.mark.thorough)
            for kind in ("sqlite", "redis", "postgres")
        ),
    ],
)
async def test_processes_that_learn_about_five_users_at_once(
    kind: str, processes: int, tmp_path: Path
) -> None:
    with places(kind, tmp_path) as (url, name):
        async with opened(kind, url, name) as journal:
            wanted = {tenant: await talk(journal, tenant) for tenant in USERS}
            code = (
                "import sys, anyio; from tests.memories.user.test_processes import learn_all; "
                "anyio.run(learn_all, *sys.argv[1:])"
            )
            started = [
                subprocess.Popen([sys.executable, "-c", code, kind, url, name, str(number)])
                for number in range(processes)
            ]
            codes = [await anyio.to_thread.run_sync(process.wait) for process in started]
            assert codes == [0] * processes
            assert {tenant: await known(journal, tenant) for tenant in USERS} == wanted


async def test_what_is_said_between_the_steps_of_the_net_is_learned() -> None:
    journal = RamJournal()
    chat = MessagesMemory(journal=journal, session="may", tenant="ann", shared=True)
    await chat.update([said("I like tea", 1)])
    user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
    async for event in Brain(learn(user=user), MessagesMemory(tenant="ann")).stream("may"):
        at_write = isinstance(event, StateExited) and event.next == "WRITE"
        if at_write and len(await chat.messages()) == 1:
            await chat.update([said("I like jazz", 2)])
    assert await known(journal, "ann") == ["Likes jazz", "Likes tea"]


async def test_what_two_read_at_once_is_learned_by_one_of_them() -> None:
    journal, reading, learned = RamJournal(), 0, []
    both = anyio.Event()
    await MessagesMemory(journal=journal, session="s", tenant="ann").update(
        [said("I live in Porto")]
    )

    async def extract(batch: Batch) -> list[Draft]:
        nonlocal reading
        reading += 1
        if reading == 2:
            both.set()
        await both.wait()
        return by_rules(batch)

    async def read() -> None:
        user = UserMemory(journal=journal, tenant="ann", extract=extract)
        learned.append(await user.learn("s"))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(read)
    assert sorted(each.messages for each in learned) == [0, 1]
