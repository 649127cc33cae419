"""What another client changes in the tables of a PostgresJournal is noticed."""

from __future__ import annotations

import pytest

from agent_brain.memories import Entry, JournalError, PostgresJournal
from agent_brain.memories.errors import JournalDamagedError
from tests.support.postgres_server import URL, clear, new_schema, run_sql

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]


@pytest.fixture(scope="module")
def schema():
    with new_schema() as name:
        yield name


@pytest.fixture
async def journal(schema):
    clear(schema)
    async with PostgresJournal(URL, schema=schema) as opened:
        await opened.append("s", [Entry(f"kind {n}", {"n": n}) for n in range(6)])
        await opened.append("other", [Entry("a", n) for n in range(9)])
        await opened.retire("s", [1, 3])
        yield opened


ENTRY = {  # a change of the entry 5: the entries of the page before the damage
    "data = '{\"n\":5}'": [2, 4],
    "data = ''": [2, 4],
    "kind = 'kind 5'": [2, 4],
    "seq = 7": [2, 4, 6],
    "version = 2": [2, 4],
    "time = time + 1": [2, 4],
    "checksum = checksum + 1": [2, 4],
}
MISSING = [
    "UPDATE entries SET retired = 1 WHERE session = $s AND seq = 5",
    "UPDATE entries SET session = 12345 WHERE session = $s AND seq = 5",
    "UPDATE entries SET session = $other, seq = 99 WHERE session = $s AND seq = 5",
    "DELETE FROM entries WHERE session = $s AND seq = 6",
    "UPDATE entries SET retired = 0 WHERE session = $s AND seq = 1",
]
ROW = [
    "key = 'r'", "base = 1", "last = 5", "last = 7", "live = 3", "retired = 0", "version = 2", "created = 1", "updated = 1",
    "written = 1", "checksum = 1",
]  # fmt: skip


def change(schema: str, statement: str) -> None:
    for session in ("s", "other"):
        found = run_sql(f"SELECT id FROM {schema}.sessions WHERE key = '{session}'")[0][0]
        statement = statement.replace(f"${session}", f"'{found}'")
    run_sql(
        f"SET search_path = {schema}, pg_catalog",
        statement.replace(" entries ", f" {schema}.entries "),
    )


async def pages(journal, **options) -> tuple[list[int], JournalDamagedError]:
    found: list[int] = []

    async def read() -> None:
        async for page in journal.pages("s", size=2, **options):
            found.extend(entry.seq for entry in page)

    with pytest.raises(JournalDamagedError) as caught:
        await read()
    return found, caught.value


@pytest.mark.parametrize("what", ENTRY)
async def test_a_changed_entry_is_noticed(journal, schema, what) -> None:
    change(schema, f"UPDATE entries SET {what} WHERE session = $s AND seq = 5")
    seq = 7 if "seq" in what else 5
    for call in (journal.read("s"), journal.rows("s"), journal.rows("s", 4)):
        with pytest.raises(JournalDamagedError, match=f"Entry {seq} of session 's' in the jour"):
            await call
    found, error = await pages(journal)
    assert found == ENTRY[what]
    assert (error.session, error.seq) == ("s", seq)
    assert len(await journal.read("other")) == 9


@pytest.mark.parametrize("statement", MISSING)
async def test_an_entry_that_is_missing_or_in_the_wrong_place_is_noticed(
    journal, schema, statement
) -> None:
    change(schema, statement)
    for history in (False, True):
        for call in (journal.read("s", history=history), journal.rows("s", history=history)):
            with pytest.raises(JournalDamagedError):
                await call
        found, error = await pages(journal, history=history)
        assert error.session == "s"
        assert found == sorted(set(found))
    if "99" in statement:
        with pytest.raises(JournalDamagedError, match="Entry 99 of session 'other'"):
            await journal.read("other")


@pytest.mark.parametrize("what", ROW)
async def test_a_changed_row_of_a_session_is_noticed(journal, schema, what) -> None:
    change(schema, f"UPDATE sessions SET {what} WHERE id = $s")
    for call in (
        journal.read("s"), journal.rows("s"), journal.last("s"), journal.append("s", [Entry("a", 1)], expect=5),
        journal.retire("s", [2]), journal.delete("s", [2]), journal.trim("s"), journal.load("s", [Entry("a", 1, 9)]),
        journal.acquire("s"), journal.sessions(),
    ):  # fmt: skip
        with pytest.raises(JournalDamagedError, match=r"is damaged: the checksum of its row is wr"):
            await call
    assert (await pages(journal))[0] == [2, 4, 5, 6]
    assert await journal.delete("s") == 6
    assert await journal.sessions() == ["other"]
    assert await journal.append("s", [Entry("a", 1)], expect=0) > 6


async def test_a_removed_row_of_a_session_is_noticed(journal, schema) -> None:
    change(schema, "DELETE FROM sessions WHERE id = $s")
    for call in (
        journal.read("s"), journal.rows("s"), journal.last("s"), journal.append("s", [Entry("a", 1)]),
        journal.load("s", [Entry("a", 1, 9)]),
    ):  # fmt: skip
        with pytest.raises(JournalDamagedError, match="its row is missing"):
            await call
    assert (await pages(journal))[0] == [2, 4, 5, 6]
    assert (await pages(journal, history=True))[0] == [1, 2, 3, 4, 5, 6]
    assert await journal.delete("s") == 6
    assert await journal.append("s", [Entry("a", 1)], expect=0) > 6


async def test_reading_changes_nothing(journal, schema) -> None:
    tables = [
        f"SELECT *, xmin FROM {schema}.{name} ORDER BY 1, 2" for name in ("sessions", "entries")
    ]
    before = [run_sql(table) for table in tables]
    await journal.read("s", history=True)
    await journal.rows("s")
    await journal.records()
    await journal.last("unknown")
    async for _ in journal.pages("s", size=1):
        pass
    assert [run_sql(table) for table in tables] == before


async def test_a_session_that_is_removed_while_it_is_read_is_noticed(journal) -> None:
    reading = journal.pages("s", size=2)
    await anext(reading)
    await journal.delete("s")
    with pytest.raises(JournalError, match="was removed while it was read"):
        await anext(reading)


async def test_a_session_that_is_written_while_it_is_read_is_not_damaged(journal) -> None:
    seqs = []
    async for page in journal.pages("s", size=2):
        seqs += [entry.seq for entry in page]
        if len(seqs) < 6:
            await journal.append("s", [Entry("a", 1)])
            await journal.delete("s", [2])
    assert seqs == [2, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("table", ["journal", "entries", "sessions"])
async def test_a_missing_table_is_told(journal, schema, table) -> None:
    run_sql(f"ALTER TABLE {schema}.{table} RENAME TO gone")
    try:
        async with PostgresJournal(URL, schema=schema) as again:
            for each in (journal, again):
                with pytest.raises(JournalError, match=r"lost a table|tables of something else"):
                    await each.append("new", [Entry("a", 1)])
    finally:
        run_sql(f"ALTER TABLE {schema}.gone RENAME TO {table}")
