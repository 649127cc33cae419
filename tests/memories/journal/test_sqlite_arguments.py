"""What a journal in a SQLite file is given, and what it says about it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent_brain.memories import Entry, JournalError, SQLiteJournal
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.checks import NESTED
from agent_brain.memories.journal.entry import from_line, to_line
from agent_brain.memories.journal.sql.database import Transaction

pytestmark = pytest.mark.anyio


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SQLiteJournal]:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        await journal.append("s", [Entry("k", number) for number in range(4)])
        yield journal


async def pages(journal: SQLiteJournal, *arguments: Any, **options: Any) -> list[list[Entry]]:
    return [[*page] async for page in journal.pages(*arguments, **options)]


WRONG: dict[str, Any] = {
    "append to None": lambda j: j.append(None, [Entry("k", 1)]),
    "append no entry": lambda j: j.append("s", [Entry("k", 1), {"k": 1}]),
    "append a kind": lambda j: j.append("s", [Entry(None, 1)]),  # type: ignore[arg-type]
    "append a version": lambda j: j.append("s", [Entry("k", 1, version=1.5)]),  # type: ignore[arg-type]
    "append true": lambda j: j.append("s", [Entry("k", 1, version=True)]),
    "expect": lambda j: j.append("s", [Entry("k", 1)], expect=4.0),
    "load to None": lambda j: j.load(None, [Entry("k", 1, 1)]),
    "load true": lambda j: j.load("t", [Entry("k", 1, True)]),
    "load a float": lambda j: j.load("t", [Entry("k", 1, 1.5)]),  # type: ignore[arg-type]
    "load a version": lambda j: j.load("t", [Entry("k", 1, 1, version=1.0)]),  # type: ignore[arg-type]
    "read None": lambda j: j.read(None),
    "read after nan": lambda j: j.read("s", math.nan),
    "read after None": lambda j: j.read("s", None),
    "rows after nan": lambda j: j.rows("s", math.nan),
    "rows of None": lambda j: j.rows(None, history=True),
    "pages of 0": lambda j: pages(j, "s", size=0),
    "pages of -1": lambda j: pages(j, "s", size=-1),
    "pages after nan": lambda j: pages(j, "s", math.nan),
    "pages of None": lambda j: pages(j, None),
    "last": lambda j: j.last(None),
    "delete None": lambda j: j.delete(None),
    "delete texts": lambda j: j.delete("s", ["x"]),
    "retire": lambda j: j.retire("s", [1.0]),
    "trim": lambda j: j.trim("s", "x"),
    "sessions": lambda j: j.sessions(None),
    "records": lambda j: j.records(None),
    "acquire": lambda j: j.acquire(None),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_argument_is_refused_and_the_journal_goes_on(
    name: str, journal: SQLiteJournal
) -> None:
    with pytest.raises(MemoryUseError) as kept:  # with the frames that it went through
        await WRONG[name](journal)
    async with SQLiteJournal(journal.path) as other:
        await other.append("other", [Entry("k", 1)])
    await journal.append("s", [Entry("k", 4)])
    assert [entry.data for entry in await journal.read("s")] == [0, 1, 2, 3, 4]
    assert await journal.sessions() == ["other", "s"]
    assert kept.value is not None


def halfway(tx: Transaction) -> None:
    next(iter(tx.execute("SELECT key FROM sessions")))
    raise TypeError("halfway")


async def test_a_list_that_is_left_halfway_does_not_block_writing(journal: SQLiteJournal) -> None:
    for number in range(3):
        await journal.append(f"t{number}", [Entry("k", 1)])
    with pytest.raises(TypeError) as kept:
        await journal._call(lambda: journal._database.run("read", halfway))
    async with SQLiteJournal(journal.path) as other:
        await other.append("other", [Entry("k", 1)])
    await journal.append("s", [Entry("k", 4)])
    assert kept.value is not None


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth > 1 else []


@pytest.mark.parametrize("depth", [1, 2, NESTED])
async def test_data_that_is_nested_is_read_again(depth: int, journal: SQLiteJournal) -> None:
    data = nested(depth)
    await journal.append("s", [Entry("k", data)])
    assert (await journal.read("s"))[-1].data == data == from_line(to_line(data))


@pytest.mark.parametrize("form", ["lists", "objects", "itself", "doubled"])
async def test_data_that_is_nested_too_deeply_is_refused(form: str, journal: SQLiteJournal) -> None:
    data: Any = nested(NESTED + 1)
    if form == "objects":
        data = {"k": {"k": nested(NESTED - 1)}}
    elif form == "itself":
        data = []
        data.append(data)
    elif form == "doubled":
        for _ in range(NESTED + 1):
            data = [data, data]
    for call in (journal.append("t", [Entry("k", data)]), journal.load("t", [Entry("k", data, 1)])):
        with pytest.raises(MemoryUseError, match=f"entry 0 .*nested more than {NESTED} deep"):
            await call
    assert await journal.sessions() == ["s"]


@pytest.mark.parametrize("again", ["not", "appended", "loaded"])
@pytest.mark.parametrize("history", [False, True])
async def test_a_session_that_is_removed_while_it_is_read_is_noticed(
    again: str, history: bool, journal: SQLiteJournal
) -> None:
    reading = journal.pages("s", size=2, history=history)
    assert [entry.seq for entry in await anext(reading)] == [1, 2]
    await journal.delete("s")
    if again == "appended":
        await journal.append("s", [Entry("new", 1)] * 3)
    elif again == "loaded":
        await journal.load("s", [Entry("new", 1, seq) for seq in range(1, 9)])
    with pytest.raises(JournalError, match="was removed while it was read"):
        await anext(reading)


async def test_a_session_that_is_written_while_it_is_read_is_read_on(
    journal: SQLiteJournal,
) -> None:
    found = []
    async for page in journal.pages("s", size=2):
        found += [entry.seq for entry in page]
        if len(found) == 2:
            await journal.append("s", [Entry("k", 4)])
            await journal.retire("s", [3])
    assert found == [1, 2, 4, 5]


async def test_a_session_that_begins_after_an_empty_page_is_not_removed(
    journal: SQLiteJournal,
) -> None:
    assert await pages(journal, "unknown") == []
    assert await pages(journal, "s", 4) == []
