"""Numbers that make no sense are refused when the memory is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_brain.memories import (
    DurableMemory,
    Entry,
    Journal,
    JournalError,
    LayeredMemory,
    Memory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessageQueue,
    MessagesMemory,
    PostgresJournal,
    RamJournal,
    RedisJournal,
    SQLiteJournal,
    StoredMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.memories.journal.opening import open_journal
from agent_brain.memories.store.store import MessageStore
from tests.memories.durable.own import ListMemory
from tests.support import postgres_server, redis_server

OPTIONS = [
    ("windowed", "max_messages"),
    ("windowed", "max_tokens"),
    ("summary", "max_messages"),
    ("summary", "max_tokens"),
    ("summary", "keep"),
    ("summary", "max_summary_tokens"),
    ("vector", "recent"),
    ("vector", "max_tokens"),
    ("vector", "k"),
    ("vector", "recalled_tokens"),
    ("layered", "k"),
    ("layered", "max_messages"),
    ("todo", "ttl"),
    *[(name, "ttl") for name in ("messages", "windowed", "summary", "vector", "layered")],
]
WRONG: list[Any] = [1.5, True, False, float("nan"), float("inf"), "3", -1, [1]]


@pytest.mark.parametrize("name, option", OPTIONS)
def test_only_numbers_that_make_sense_are_taken(name, option) -> None:
    for wrong in WRONG:
        if option == "ttl" and wrong == 1.5:
            assert create_memory(name, ttl=wrong) is not None
            continue
        with pytest.raises(MemoryDefinitionError, match=f"{option}="):
            create_memory(name, **{option: wrong})


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_recall_tokens_are_a_whole_number(wrong) -> None:
    with pytest.raises(MemoryDefinitionError, match="recall_tokens="):
        LayeredMemory(WindowedMemory(), MessagesMemory(), recall_tokens=wrong)


@pytest.mark.parametrize("wrong", [1.5, True, float("nan"), "1", None], ids=repr)
def test_a_priority_is_a_whole_number(wrong) -> None:
    queue = MessageQueue()
    with pytest.raises(MemoryUseError, match="priority="):
        queue.push(Message.user("a"), priority=wrong)
    assert queue.empty()


def test_durations_are_taken_in_seconds_and_as_such() -> None:
    assert create_memory("messages", ttl=60) is not None
    assert create_memory("messages", ttl=timedelta(days=1)) is not None


class Kept(RamJournal):
    """A journal without history."""

    has_history = False


def stores_of(memory: Memory) -> list[MessageStore]:
    """The stores of a memory and of those that it wraps."""
    own = [memory.store] if isinstance(memory, StoredMemory) else []
    return [*own, *(store for inner in memory.wrapped for store in stores_of(inner))]


MADE: dict[str, Callable[..., Memory]] = {
    **{
        name: partial(create_memory, name)
        for name in ("messages", "windowed", "summary", "vector", "todo", "layered")
    },
    "durable": partial(DurableMemory, ListMemory),
}
NOT_SHARED = ("summary", "layered", "durable")
READ: dict[str, Callable[[MessageStore], object]] = {
    "ttl": lambda store: store.ttl,
    "readonly": lambda store: store.readonly,
    "shared": lambda store: store.shared,
    "history": lambda store: None if store.session is None else store.session.history,
    "lease_wait": lambda store: None if store.session is None else store.session.lease_wait,
    "clock": lambda store: store.clock,
}
GIVEN: dict[str, object] = {
    "ttl": timedelta(seconds=60),
    "readonly": True,
    "shared": True,
    "history": 7,
    "lease_wait": 2.5,
    "clock": lambda: datetime.now(UTC),
}


@pytest.mark.parametrize("option", GIVEN)
@pytest.mark.parametrize("name", MADE)
def test_an_option_is_used_by_every_store_of_a_memory_or_refused(name: str, option: str) -> None:
    value = GIVEN[option]
    options: dict[str, Any] = {"journal": RamJournal(), option: value}
    if option == "shared" and name in NOT_SHARED:
        with pytest.raises((MemoryDefinitionError, TypeError), match="shared"):
            MADE[name](**options)
        return
    stores = stores_of(MADE[name](**options))
    assert stores
    assert [READ[option](store) for store in stores] == [value] * len(stores)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MessagesMemory(lease_wait=1),
        lambda: MessagesMemory(journal=RamJournal(), shared=True, lease_wait=1),
        lambda: MessagesMemory(journal=RamJournal(), shared=True, history=3),
        lambda: MessagesMemory(journal=Kept(), history=3),
        lambda: MessagesMemory(journal=Kept(), history="all"),
        lambda: MessagesMemory(history=3),
        lambda: MessagesMemory(readonly=True),
        lambda: create_memory("layered", short=WindowedMemory(), long="messages", max_messages=2),
        lambda: create_memory("layered", short=WindowedMemory(), long=MessagesMemory(), ttl=60),
        lambda: SQLiteJournal(":memory:", readonly=True),
        lambda: SQLiteJournal(":memory:", accept_loss=True),
    ],
)
def test_an_option_that_could_not_be_used_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(MemoryDefinitionError, match="="):
        make()


Open = Callable[..., Journal]


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    if request.param == "sqlite":
        yield partial(SQLiteJournal, tmp_path / "journal.db")
    elif request.param == "redis":
        url = redis_server.redis_url()
        with redis_server.journal_prefix() as prefix:
            yield partial(RedisJournal, url, prefix=prefix)
    else:
        with postgres_server.new_schema() as schema:
            yield partial(PostgresJournal, postgres_server.URL, schema=schema)


WRITING: dict[str, Callable[[Journal], Awaitable[object]]] = {
    "append": lambda journal: journal.append("s", [Entry("a", 1)]),
    "append of nothing": lambda journal: journal.append("s", []),
    "delete": lambda journal: journal.delete("s"),
    "delete of some": lambda journal: journal.delete("s", [1], scrub=False),
    "retire": lambda journal: journal.retire("s", [1]),
    "trim": lambda journal: journal.trim("s"),
    "load": lambda journal: journal.load("t", [Entry("a", 1, seq=1)]),
    "exchange": lambda journal: journal.exchange(["s"], {}),
    "purge": lambda journal: journal.purge(),
    "acquire": lambda journal: journal.acquire("s"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_journal_that_is_opened_readonly_is_never_written_to(opened: Open) -> None:
    async with opened(readonly=True) as journal:
        with pytest.raises(JournalError):  # there is none, and none is made
            await journal.sessions()
        with pytest.raises(JournalError):
            await journal.last("s")
    async with opened() as journal:
        await journal.append("s", [Entry("a", 1), Entry("b", 2)])
        before = await journal.read("s", history=True)
    async with opened(readonly=True) as journal:
        for write in WRITING.values():
            with pytest.raises(JournalError, match="readonly=True"):
                await write(journal)
        assert await journal.read("s", history=True) == before
        assert [record.entries for record in await journal.records()] == [2]
        assert await journal.sessions() == ["s"]


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("place", ["journal.db", "redis://127.0.0.1:1/0", "postgresql://u@h/d"])
def test_a_place_is_opened_as_asked(place: str, readonly: bool) -> None:
    assert vars(open_journal(place, readonly=readonly))["readonly"] is readonly
